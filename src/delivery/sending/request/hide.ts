/** Removes secret values from a response: an endpoint may return the headers that it got. C-12. */

/** A prefix of a value is hidden at the end of what was read, if it has this many characters. */
const PREFIX = 8

/** A character as it is, and as JSON, a URL or HTML writes it. */
const forms = (char: string): string => {
  if (/[A-Za-z0-9]/.test(char)) return char
  const hex = char.charCodeAt(0).toString(16)
  const either = `(?:${[...hex].map((digit) => `[${digit}${digit.toUpperCase()}]`).join("")})`
  const space = char === " " ? "|\\+" : ""
  // Longer forms first: an ampersand is also the beginning of its entity.
  return `(?:\\\\u00${either}|%${either}|&#0*${char.charCodeAt(0)};|&#[xX]0*${either};|&(?:${named[char] ?? "#"});|\\\\?\\x${hex}${space})`
}
const named: Readonly<Record<string, string>> = { "&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos" }

/** What is hidden of a value: after a scheme such as `Bearer`, the credential by itself, too. */
const parts = (value: string): ReadonlyArray<string> => {
  const credential = /^[A-Za-z][A-Za-z0-9-]* +(.+)$/.exec(value)?.[1]
  return credential === undefined ? [value] : [value, credential]
}

/** Bytes of a response with `***` for each of the values, which are visible ASCII. */
export const hide = (bytes: Buffer, values: ReadonlyArray<string>): Buffer => {
  if (values.length === 0) return bytes
  const hidden = values.flatMap(parts).toSorted((a, b) => b.length - a.length)
  let text = bytes.toString("latin1")
  for (const value of hidden) text = text.replace(new RegExp([...value].map(forms).join(""), "g"), "***")
  for (const value of hidden) {
    for (let length = value.length - 1; length >= PREFIX; length--) {
      if (text.endsWith(value.slice(0, length))) text = `${text.slice(0, -length)}***`
    }
  }
  return Buffer.from(text, "latin1")
}
