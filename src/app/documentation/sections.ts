/** What the documentation's pages say, by section: for the contents of a page and for the search. */

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

/** The headings of a page and what stands under each: `level` is 1 to 3. */
export const headingsOf = (html: string) =>
  html.split(/(?=<h[1-3] id=")/).flatMap((part) => {
    const [, level, id = "", title = "", rest = ""] = /^<h([1-3]) id="([^"]*)">(.*?)<\/h\1>(.*)$/s.exec(part) ?? []
    return level === undefined ? [] : [{ level: Number(level), id, title: plainText(title), text: plainText(rest).replace(/\s+/g, " ") }]
  })

/** How many results one search shows, and how much text around a match, in characters. */
const RESULTS = 20,
  BEFORE = 60,
  LENGTH = 220

export interface Result {
  readonly section: Section
  readonly excerpt: string
}

/** The sections that contain every word of a query, those with the words in their title first. */
export const search = (sections: ReadonlyArray<Section>, query: string): ReadonlyArray<Result> => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return []
  const found = sections.flatMap((section) => {
    const title = `${section.page} ${section.title}`.toLowerCase()
    const text = section.text.toLowerCase()
    if (!words.every((word) => title.includes(word) || text.includes(word))) return []
    const from = Math.max(0, text.indexOf(words.find((word) => text.includes(word)) ?? "") - BEFORE)
    const excerpt = section.text
      .slice(from, from + LENGTH)
      .replace(/\s+/g, " ")
      .trim()
    const rank = words.filter((word) => section.title.toLowerCase().includes(word)).length
    return [{ section, excerpt, rank }]
  })
  return found.sort((a, b) => b.rank - a.rank).slice(0, RESULTS)
}
