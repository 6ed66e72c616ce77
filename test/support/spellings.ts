/**
 * How an IPv4 address can be written in the host of a URL: in other bases and groupings, in other digits, with other
 * full stops, percent-encoded, and carried inside IPv6.
 */

const hex = (value: number, width = 0) => value.toString(16).padStart(width, "0")
const octal = (value: number, zeros = 1) => `${"0".repeat(zeros)}${value.toString(8)}`
const percent = (text: string) => [...new TextEncoder().encode(text)].map((byte) => `%${hex(byte, 2)}`).join("")
const inDigits = (alphabet: string) => (text: string) => text.replace(/\d/g, (digit) => [...alphabet][Number(digit)] ?? digit)

/** Every spelling with its name: each is parsed as this very address, or as an IPv6 address that carries it. */
export const spellings = (address: string): ReadonlyArray<readonly [trick: string, host: string]> => {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number)
  const number = ((a * 256 + b) * 256 + c) * 256 + d
  const [high, low] = [a * 256 + b, c * 256 + d]
  const six = `${hex(high)}:${hex(low)}`
  return [
    ["dotted decimal", address],
    ["one decimal number", String(number)],
    ["one hexadecimal number", `0x${hex(number)}`],
    ["one hexadecimal number, padded", `0x${hex(number, 20)}`],
    ["one octal number", octal(number)],
    ["two parts", `${a}.${(b * 256 + c) * 256 + d}`],
    ["three parts", `${a}.${b}.${low}`],
    ["hexadecimal parts", [a, b, c, d].map((part) => `0x${hex(part)}`).join(".")],
    ["upper-case hexadecimal parts", [a, b, c, d].map((part) => `0X${hex(part).toUpperCase()}`).join(".")],
    ["octal parts", [a, b, c, d].map((part) => octal(part)).join(".")],
    ["padded octal parts", [a, b, c, d].map((part) => octal(part, 6)).join(".")],
    ["parts of mixed bases", `0x${hex(a)}.${octal(b)}.${c}.0x${hex(d)}`],
    ["hexadecimal and one rest", `0x${hex(a)}.0x${hex((b * 256 + c) * 256 + d)}`],
    ["full-width digits", inDigits("０１２３４５６７８９")(address)],
    ["circled digits", inDigits("⓪①②③④⑤⑥⑦⑧⑨")(address)],
    ["superscript digits", inDigits("⁰¹²³⁴⁵⁶⁷⁸⁹")(address)],
    ["subscript digits", inDigits("₀₁₂₃₄₅₆₇₈₉")(address)],
    ["mathematical digits", inDigits("𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗")(address)],
    ["double-struck digits", inDigits("𝟘𝟙𝟚𝟛𝟜𝟝𝟞𝟟𝟠𝟡")(address)],
    ["ideographic full stops", address.replaceAll(".", "。")],
    ["full-width full stops", address.replaceAll(".", "．")],
    ["half-width full stops", address.replaceAll(".", "｡")],
    ["percent-encoded", percent(address)],
    ["percent-encoded full stops", address.replaceAll(".", "%2E")],
    ["percent-encoded full-width digits", percent(inDigits("０１２３４５６７８９")(address))],
    ["a full stop at the end", `${address}.`],
    ["IPv4-mapped IPv6", `[::ffff:${address}]`],
    ["IPv4-mapped IPv6 in hexadecimal", `[::FFFF:${six.toUpperCase()}]`],
    ["IPv4-mapped IPv6, written out", `[0000:0000:0000:0000:0000:ffff:${hex(high, 4)}:${hex(low, 4)}]`],
    ["IPv4-compatible IPv6", `[::${address}]`],
    ["IPv4-translated IPv6", `[::ffff:0:${six}]`],
    ["6to4", `[2002:${six}::1]`],
    ["NAT64", `[64:ff9b::${six}]`],
    ["local NAT64", `[64:ff9b:1::${six}]`],
    ["Teredo", `[2001:0:4136:e378:8000:63bf:${hex(high ^ 0xffff)}:${hex(low ^ 0xffff)}]`],
    ["ISATAP", `[fe80::5efe:${six}]`]
  ]
}
