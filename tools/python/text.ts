/** Names, values and docstrings of the API as Python has them. */

/** Python's keywords among words that a field may have as its name. */
const KEYWORDS = new Set(["as", "class", "for", "from", "global", "import", "in", "is", "not", "or", "pass", "with"])
/** Longest line. */
const WIDTH = 130

/** Text whose first letter is a capital. */
export const upper = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

/** A name of the API in Python: `occurredAfter` is `occurred_after`. The client derives the API's name from it again. */
export const snake = (name: string): string => {
  const text = /^[A-Z_]+$/.test(name) ? name : name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  const [first = "", ...rest] = text.split("_")
  if (text !== name && first + rest.map(upper).join("") !== name) throw new Error(`${name} cannot be derived from ${text}`)
  return KEYWORDS.has(text) ? `${text}_` : text
}

/** Text in lines of at most `WIDTH` characters; those after the first may be indented more. */
export const wrapped = (text: string, indent: string, more = ""): string => {
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(/\s+/)) {
    if (line.trim() !== "" && indent.length + line.length + 1 + word.length > WIDTH) {
      lines.push(line)
      line = more
    }
    line += line.trim() === "" ? word : ` ${word}`
  }
  return [...lines, line].map((one) => `${indent}${one}`).join("\n")
}

const escaped = (text: string) => text.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"')

/** A docstring of paragraphs; empty without text. */
export const docstring = (indent: string, ...paragraphs: ReadonlyArray<string>): string => {
  const [first, ...rest] = paragraphs.filter((text) => text !== "").map(escaped)
  if (first === undefined) return ""
  const whole = `${indent}"""${first}"""`
  if (rest.length === 0 && whole.length <= WIDTH && !first.endsWith('"')) return `${whole}\n`
  // An indented paragraph is laid out already.
  const body = rest.map((text) => (text.startsWith(" ") ? text : wrapped(text, indent)))
  return `${wrapped(`"""${first}`, indent)}\n${body.map((text) => `\n${text}\n`).join("")}${indent}"""\n`
}

/** A description with names and values as Python has them. */
export const inPython = (text: string) =>
  text
    .replaceAll(/`([^`]+)`/g, (_, name) => `\`\`${/^[a-z]+[A-Z]\w*$/.test(name) ? snake(name) : name}\`\``)
    .replaceAll(/\bnull\b/g, "None")
