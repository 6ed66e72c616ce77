/** The sections of the documentation, for the contents of a page and for the search. */

/** The text of rendered Markdown. */
export const plainText = (html: string): string =>
  html
    .replace(/<[^>]*>/g, "")
    .replace(/&(lt|gt|quot|#39|amp);/g, (_, name: string) => ({ lt: "<", gt: ">", quot: '"', "#39": "'", amp: "&" })[name] ?? "")

export interface Section {
  readonly page: string
  readonly title: string
  readonly href: string
  readonly text: string
}

/** The headings of a page with the text below each; `level` is 1 to 3. */
export const headingsOf = (html: string) =>
  html.split(/(?=<h[1-3] id=")/).flatMap((part) => {
    const [, level, id = "", title = "", rest = ""] = /^<h([1-3]) id="([^"]*)">(.*?)<\/h\1>(.*)$/s.exec(part) ?? []
    return level === undefined
      ? []
      : [
          {
            level: Number(level),
            id,
            title: plainText(title),
            text: plainText(rest.replaceAll(/<\/(td|th|p|li|pre)>/g, " ")).replace(/\s+/g, " ")
          }
        ]
  })

/** How many words of a query count, how many results it shows, and how much text around a match, in characters. */
const WORDS = 8,
  RESULTS = 20,
  BEFORE = 60,
  LENGTH = 220

export interface Result {
  readonly section: Section
  readonly excerpt: string
}

/** The sections that have every word of a query, of the first eight, at the beginning of a word, those with the words in their title first. */
export const search = (sections: ReadonlyArray<Section>, query: string): ReadonlyArray<Result> => {
  const words = query.split(/\s+/).filter(Boolean)
  if (words.length === 0) return []
  const patterns = words.slice(0, WORDS).map((word) => new RegExp(`(?<![\\p{L}\\d])${RegExp.escape(word)}`, "iu"))
  const found = sections.flatMap((section) => {
    const places = patterns.map((pattern) => section.text.search(pattern))
    const titles = patterns.map((pattern) => pattern.test(section.title))
    if (!patterns.every((pattern, index) => titles[index] || (places[index] ?? -1) >= 0 || pattern.test(section.page))) return []
    const match = places.find((place) => place >= 0) ?? 0
    const from = match <= BEFORE ? 0 : Math.max(0, section.text.lastIndexOf(" ", match - BEFORE))
    const end = from + LENGTH
    const excerpt = `${from > 0 ? "… " : ""}${section.text.slice(from, end).trim()}${end < section.text.length ? " …" : ""}`
    return [{ section, excerpt, rank: titles.filter(Boolean).length }]
  })
  return found.sort((a, b) => b.rank - a.rank).slice(0, RESULTS)
}
