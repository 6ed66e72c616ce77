/**
 * What a statement's content must satisfy, whoever signed it: a day that exists, amounts that are plain decimals, and lines
 * that add up. Amounts are compared exactly, as integers of their smallest digit. C-9, C-10.
 */
import type { Statement } from "./generated/custody.ts"
import { isObject } from "./signedClaims.ts"

const DAY = 86_400_000

/** Whether text is a day that exists, as `YYYY-MM-DD`. */
export const isDay = (text: unknown): text is string => {
  const at = typeof text === "string" && /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined
  return at !== undefined && !Number.isNaN(at.getTime()) && at.toISOString().slice(0, 10) === text
}

/** The day after a day. */
const dayAfter = (day: string): string => new Date(Date.parse(`${day}T00:00:00Z`) + DAY).toISOString().slice(0, 10)

/** The number of digits after the point. */
const scaleOf = (amount: string): number => amount.split(".")[1]?.length ?? 0

/** An amount as an integer, in units of its digit at this place after the point. */
const unitsOf = (amount: string, scale: number): bigint => {
  const [whole = "", fraction = ""] = amount.split(".")
  return BigInt(whole + fraction.padEnd(scale, "0"))
}

/** Whether plain decimals are equal. */
const sameAmount = (one: string, other: string): boolean => {
  const scale = Math.max(scaleOf(one), scaleOf(other))
  return unitsOf(one, scale) === unitsOf(other, scale)
}

/** The amounts of a line that are never negative. */
const unsigned = ["opening", "inbound", "outbound", "fees", "closing"] as const

/** Why a line is not valid; undefined if it is. Lines that were sealed before fees had a field of their own have none. */
const lineFault = (line: Readonly<Record<string, unknown>>): string | undefined => {
  const given: Readonly<Record<string, unknown>> = { fees: "0", ...line }
  const names = [...unsigned, "other"] as const
  const wrong = names.find((name) => {
    const value = given[name]
    return typeof value !== "string" || !(name === "other" ? /^-?\d+(\.\d+)?$/ : /^\d+(\.\d+)?$/).test(value)
  })
  if (wrong !== undefined) return `${wrong} is not a decimal`
  const scale = Math.max(...names.map((name) => scaleOf(String(given[name]))))
  const units = (name: (typeof names)[number]) => unitsOf(String(given[name]), scale)
  return units("closing") === units("opening") + units("inbound") - units("outbound") - units("fees") + units("other")
    ? undefined
    : "closing is not opening + inbound − outbound − fees + other"
}

/** Why a statement's content is not valid; undefined if it is. */
export const contentFault = ({ assets, date, revision }: Statement): string | undefined => {
  const which = `the statement of ${date}, revision ${revision}`
  if (!isDay(date)) return `${which}: ${date} is not a day`
  if (!Number.isSafeInteger(revision) || revision < 1) return `${which}: ${revision} is not the number of a revision`
  const known = new Set<unknown>()
  const lines: unknown = assets
  if (!Array.isArray(lines)) return `${which} has no lines`
  for (const line of lines) {
    if (!isObject(line) || typeof line["asset"] !== "string") return `${which} has a line without an asset`
    const { asset } = line
    if (known.has(asset)) return `${which} has two lines of ${asset}`
    known.add(asset)
    const fault = lineFault(line)
    if (fault !== undefined) return `${which}, the line of ${asset}: ${fault}`
  }
  return undefined
}

/** The day without a statement between the first and the last of these; undefined if there is none. */
export const missingDay = (inOrder: ReadonlyArray<Statement>): string | undefined => {
  const gap = inOrder.findIndex(({ date }, at) => at > 0 && date !== dayAfter(inOrder[at - 1]?.date ?? ""))
  return gap < 0 ? undefined : dayAfter(inOrder[gap - 1]?.date ?? "")
}

/** Why the statement of a day does not begin with the balances that the day before ended with; undefined if it does. */
export const openingFault = (previous: Statement, { assets, date }: Statement): string | undefined => {
  const closings = new Map(previous.assets.map(({ asset, closing }) => [asset, closing]))
  const openings = new Map(assets.map(({ asset, opening }) => [asset, opening]))
  for (const asset of new Set([...closings.keys(), ...openings.keys()])) {
    // A line of zeros may be absent.
    const [closing = "0", opening = "0"] = [closings.get(asset), openings.get(asset)]
    if (!sameAmount(closing, opening))
      return `the opening of ${asset} on ${date} is ${opening}, but the closing of the day before is ${closing}`
  }
  return undefined
}
