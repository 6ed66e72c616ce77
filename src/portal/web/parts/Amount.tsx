/** Amounts: grouped thousands, aligned decimals, every digit in the title or on demand. Never a float. */
import { useSyncExternalStore } from "react"

/** Decimals in a table, unless every digit is shown. */
const SHORT = 8
const DIGITS = "custody.digits"

let all = localStorage.getItem(DIGITS) === "all"
const listeners = new Set<() => void>()

/** Whether amounts are shown with every digit. */
export const useAllDigits = (): readonly [boolean, (all: boolean) => void] => [
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => all
  ),
  (wanted) => {
    all = wanted
    localStorage.setItem(DIGITS, wanted ? "all" : "short")
    for (const listener of listeners) listener()
  }
]

const split = (amount: string): readonly [whole: string, fraction: string] => {
  const [whole = "0", fraction = ""] = amount.split(".")
  return [whole, fraction]
}

/** Digits in groups of three before the point. */
export const grouped = (amount: string): string => {
  const [whole, fraction] = split(amount)
  return `${whole.replaceAll(/\B(?=(\d{3})+$)/g, ",")}${fraction === "" ? "" : `.${fraction}`}`
}

/** Whether an amount is zero, whatever its decimals. */
export const isZero = (amount: string): boolean => !/[1-9]/.test(amount)

/** The decimals of a column of amounts, so that their points are aligned. */
export const placesOf = (amounts: ReadonlyArray<string>, everyDigit: boolean): number =>
  Math.min(everyDigit ? 99 : SHORT, Math.max(0, ...amounts.map((amount) => split(amount)[1].length)))

/** Compares two amounts exactly. */
export const compareAmounts = (a: string, b: string): number => {
  const places = placesOf([a, b], true)
  const scaled = (amount: string) => BigInt(split(amount)[0] + split(amount)[1].padEnd(places, "0"))
  const [one, other] = [scaled(a), scaled(b)]
  return one < other ? -1 : one > other ? 1 : 0
}

/** The exact sum of amounts. */
export const sum = (amounts: ReadonlyArray<string>): string => {
  const places = placesOf(amounts, true)
  const total = amounts.reduce((so, amount) => so + BigInt(split(amount)[0] + split(amount)[1].padEnd(places, "0")), 0n)
  const digits = total.toString().padStart(places + 1, "0")
  const fraction = digits.slice(digits.length - places).replace(/0+$/, "")
  return `${digits.slice(0, digits.length - places)}${places === 0 || fraction === "" ? "" : `.${fraction}`}`
}

export interface AmountProps {
  readonly amount: string
  /** Absent if the row names the asset. */
  readonly symbol?: string
  /** Decimals of its column; default: its own. */
  readonly places?: number
  /** Sign before the digits: inbound or outbound. */
  readonly sign?: "+" | "−"
}

export const Amount = ({ amount, places, sign, symbol }: AmountProps) => {
  const [everyDigit] = useAllDigits()
  const [whole, fraction] = split(grouped(amount))
  const room = places ?? placesOf([amount], everyDigit)
  const cut = fraction.length > room
  const digits = cut ? fraction.slice(0, Math.max(1, room - 1)) : fraction
  const padding = Math.max(0, room - digits.length - (cut ? 1 : 0)) + (room > 0 && digits === "" ? 1 : 0)
  return (
    <span
      className={everyDigit ? "amount all" : "amount"}
      title={`${sign ?? ""}${grouped(amount)}${symbol === undefined ? "" : ` ${symbol}`}`}
    >
      <span className="number">
        {sign}
        {whole}
        {digits === "" ? "" : `.${digits}`}
        {cut ? "…" : ""}
        {padding === 0 || places === undefined || everyDigit ? null : (
          <span className="pad" aria-hidden>
            {"0".repeat(padding)}
          </span>
        )}
      </span>
      {symbol === undefined ? null : (
        <>
          {" "}
          <span className="symbol">{symbol}</span>
        </>
      )}
    </span>
  )
}
