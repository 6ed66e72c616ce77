/** Text for a screen: widths, columns, spans of time, and the few ways in which something is set off. */

/** Columns that a text takes, control sequences not counted. */
export const widthOf = (text: string) => Bun.stringWidth(text)

/** The text in exactly or, where it is the last column, at most so many columns; what does not fit ends in `…`. */
export const cut = (text: string, columns: number): string => {
  if (widthOf(text) <= columns) return text
  let kept = ""
  for (const character of text) {
    if (widthOf(kept + character) > columns - 1) break
    kept += character
  }
  return `${kept}…`
}

/** Cut and padded on the right. */
export const left = (text: string, columns: number): string => {
  const fitting = cut(text, columns)
  return fitting + " ".repeat(columns - widthOf(fitting))
}

/** Cut and padded on the left. */
export const right = (text: string, columns: number): string => {
  const fitting = cut(text, columns)
  return " ".repeat(columns - widthOf(fitting)) + fitting
}

/** Milliseconds as people say them: `840 ms`, `2.1 s`, `3 min`. */
export const span = (ms: number): string =>
  ms < 1_000 ? `${Math.round(ms)} ms` : ms < 100_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`

/** How text is set off. */
export interface Styles {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
  readonly link: (text: string) => string
}

/** The styles, or text as it is. */
export const styles = (coloured: boolean): Styles => {
  const sgr = (on: number, off: number) => (text: string) => (coloured ? `\u001b[${on}m${text}\u001b[${off}m` : text)
  return { bold: sgr(1, 22), dim: sgr(2, 22), good: sgr(32, 39), bad: sgr(31, 39), link: sgr(4, 24) }
}

/** The text in lines of at most so many columns, broken between words; a longer word has a line of its own. */
export const wrap = (text: string, columns: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1)
    if (last !== undefined && widthOf(last) + 1 + widthOf(word) <= columns) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
