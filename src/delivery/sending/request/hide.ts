/**
 * Removes secret values from a response: an endpoint may return the headers that it got. They are found whatever the case of their
 * letters, and as JSON, a URL or HTML writes them. The time is linear in what is read, whatever the endpoint sends and whatever the
 * values are. C-12.
 */
import { SNIPPET_BYTES } from "./Answer.ts"

/** A part of a value, and the beginning of one at the end of what was read, are hidden if they have this many characters. */
const PART = 8
/** Most parts of a value. Each costs a search, and an access token may have any number. */
const PARTS = 64
/** Shorter values are in many words: where one is found, the whole response is hidden, so that nobody can read it off. */
const SHORT = 4
/** Most characters that stand for one of a value: one that is escaped twice. */
const ESCAPED = 12

/** Characters, and for each the place in the response where it begins; the last place is the end. */
interface Layer {
  readonly text: string
  readonly places: ReadonlyArray<number>
}

const escapes =
  /\\u00([0-9a-f]{2})|\\(["\\/])|%([0-9a-f]{2})|&#0{0,4}([0-9]{1,3});|&#x0{0,4}([0-9a-f]{1,2});|&(amp|lt|gt|quot|apos);|[\s\S]/gi
const named: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }

/** The characters with each escape replaced by what it stands for. */
const unescaped = (layer: Layer): Layer => {
  const { places, text } = layer
  if (!/[\\%&]/.test(text)) return layer
  const characters: Array<string> = [],
    starts: Array<number> = []
  for (const { 0: all, 1: json, 2: slashed, 3: percent, 4: decimal, 5: hex, 6: name, index } of text.matchAll(escapes)) {
    const code = json ?? percent ?? hex
    characters.push(
      slashed ??
        named[name?.toLowerCase() ?? ""] ??
        (code === undefined && decimal === undefined ? all : String.fromCharCode(code === undefined ? Number(decimal) : parseInt(code, 16)))
    )
    starts.push(places[index] ?? 0)
  }
  return { text: characters.join(""), places: [...starts, places.at(-1) ?? 0] }
}

/** A response, or a value, as its characters stand. */
const literal = (text: string): Layer => ({ text, places: Array.from({ length: text.length + 1 }, (_, place) => place) })

/** As it stands, and with its escapes replaced once and twice. */
const layersOf = (text: string): ReadonlyArray<Layer> => {
  const whole = literal(text),
    once = unescaped(whole)
  // Without an escape, these are one.
  return [...new Set([whole, once, unescaped(once)])]
}

/** What to look for if a value itself has what looks like an escape. */
const variants = (value: string): ReadonlyArray<string> => [
  value,
  ...layersOf(value).flatMap(({ text }) => (text.length < SHORT ? [] : [text]))
]

/** Text as it is compared: a form writes a space as a plus sign. */
const folded = (text: string) => text.toLowerCase().replaceAll("+", " ")

/** What is hidden of a value: the credential after a scheme such as `Bearer`, those inside, and the two of `Basic`, too. */
const parts = (value: string): ReadonlyArray<string> => {
  const credential = /^[A-Za-z][A-Za-z0-9-]* +([^ ].*)$/.exec(value)?.[1]
  const basic = /^basic +([^ ]+)$/i.exec(value)?.[1]
  const decoded = basic === undefined ? "" : Buffer.from(basic, "base64").toString("latin1")
  const inside = [...value.split(/[;,="\s]/), decoded, decoded.slice(decoded.indexOf(":") + 1)]
  return [value, ...(credential === undefined ? [] : [credential]), ...inside.filter((part) => part.length >= PART).slice(0, PARTS)]
}

/** What is read: a value that begins in the snippet is complete, or at least its first {@link PART} characters are. */
const READ_BYTES = SNIPPET_BYTES + ESCAPED * (PART + 2)

/** For each beginning of a value: the length of the longest shorter beginning that it ends with. */
const bordersOf = (value: string): Int32Array => {
  const borders = new Int32Array(value.length)
  let length = 0
  for (let at = 1; at < value.length; at++) {
    while (length > 0 && value[at] !== value[length]) length = borders[length - 1] ?? 0
    if (value[at] === value[length]) length++
    borders[at] = length
  }
  return borders
}

/** Finds a value in a text, and its beginning at the end, where the text may be cut off within it. After Knuth, Morris and Pratt. */
const search = (text: string, value: string, found: (from: number, to: number) => void) => {
  if (!text.includes(value.slice(0, PART))) return
  const borders = bordersOf(value)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    while (length > 0 && text[at] !== value[length]) length = borders[length - 1] ?? 0
    if (text[at] === value[length]) length++
    const isWhole = length === value.length
    if (isWhole || (length >= PART && at >= text.length - ESCAPED)) found(at + 1 - length, at + 1)
    if (isWhole) length = borders[length - 1] ?? 0
  }
}

/** The part of a response that a snippet shows, with `***` for each of the values, which are visible ASCII. */
export const hide = (bytes: Buffer, values: ReadonlyArray<string>): Buffer => {
  if (values.length === 0) return bytes
  const hidden = [...new Set(values.flatMap(parts).flatMap(variants).map(folded))]
  const read = bytes.subarray(0, READ_BYTES).toString("latin1")
  /** How many values begin less those that end at each place. */
  const edges = new Int32Array(read.length + 1)
  const change = (place: number, by: number) => {
    edges[place] = (edges[place] ?? 0) + by
  }
  for (const { places, text } of layersOf(read)) {
    const compared = folded(text)
    for (const value of hidden) {
      if (value.length < SHORT && compared.includes(value)) return Buffer.from("***")
      search(compared, value, (from, to) => {
        change(places[from] ?? 0, 1)
        change(places[to] ?? 0, -1)
      })
    }
  }
  // Behind that, a value may go on after what was searched.
  const end = read.length < bytes.length ? SNIPPET_BYTES : read.length
  let shown = ""
  let inside = 0
  for (let place = 0; place < end; place++) {
    const before = inside
    inside += edges[place] ?? 0
    if (inside > 0 && before === 0) shown += "***"
    if (inside === 0) shown += read[place]
  }
  return Buffer.from(shown, "latin1")
}
