/** Text for a terminal: widths, columns, durations, and styles. */

/** Text from elsewhere, with escapes such as `\u001b` for what would control the terminal or the direction of writing. */
export const printable = (text: string): string =>
  text.replace(/[\p{Cc}\p{Bidi_Control}]/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** Printable, and cut to at most this many columns; a longer text then ends in `…`. */
export const cut = (given: string, columns: number): string => {
  const text = printable(given)
  if (Bun.stringWidth(text) <= columns) return text
  let kept = ""
  for (const character of text) {
    if (Bun.stringWidth(kept + character) > columns - 1) break
    kept += character
  }
  return `${kept}…`
}

/** Cut and padded on the right. */
export const left = (text: string, columns: number): string => {
  const fitting = cut(text, columns)
  return fitting + " ".repeat(columns - Bun.stringWidth(fitting))
}

/** Cut and padded on the left. */
export const right = (text: string, columns: number): string => {
  const fitting = cut(text, columns)
  return " ".repeat(columns - Bun.stringWidth(fitting)) + fitting
}

/** Milliseconds for people: `840 ms`, `2.1 s`, `3 min`. */
export const span = (ms: number): string =>
  ms < 1_000 ? `${Math.round(ms)} ms` : ms < 100_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`

/** Text styles. */
export interface Styles {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
  readonly link: (text: string) => string
}

/** The styles, or plain text. */
export const styles = (coloured: boolean): Styles => {
  const sgr = (on: number, off: number) => (text: string) => (coloured ? `\u001b[${on}m${text}\u001b[${off}m` : text)
  return { bold: sgr(1, 22), dim: sgr(2, 22), good: sgr(32, 39), bad: sgr(31, 39), link: sgr(4, 24) }
}
