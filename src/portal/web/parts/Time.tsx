/** Times as people read them, with the exact time at hand; and what is left until one. */
import { useEffect, useState } from "react"

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" })
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" })
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" })
const units: ReadonlyArray<readonly [Intl.RelativeTimeFormatUnit, number]> = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000]
]

/** Runs again every so many milliseconds, for what depends on the time. */
export const useNow = (every: number): number => {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every)
    return () => clearInterval(timer)
  }, [every])
  return now
}

/** “3 min. ago”, “in 2 hr.” */
const distance = (at: number, now: number): string => {
  const ms = at - now
  const [unit, size] = units.find(([, one]) => Math.abs(ms) >= one) ?? ["second", 1_000]
  return Math.abs(ms) < 1_000 ? "now" : relative.format(Math.trunc(ms / size), unit)
}

export interface TimeProps {
  readonly at: string
  /** `exact`: date and time; `day`: the date; `ago`: how far it is away. */
  readonly as?: "exact" | "day" | "ago"
}

export const Time = ({ as = "exact", at }: TimeProps) => {
  const now = useNow(as === "ago" ? 10_000 : 3_600_000)
  const date = new Date(at)
  const text = as === "exact" ? exact.format(date) : as === "day" ? day.format(date) : distance(date.getTime(), now)
  return (
    <time dateTime={at} title={as === "ago" ? exact.format(date) : at}>
      {text}
    </time>
  )
}

const two = (value: number) => String(value).padStart(2, "0")

/** What is left until a time, to the second. */
export const Countdown = ({ until }: { readonly until: string }) => {
  const now = useNow(1_000)
  const left = Math.max(0, Math.ceil((Date.parse(until) - now) / 1_000))
  return (
    <time className="digits" dateTime={until}>
      {`${two(Math.floor(left / 3_600))}:${two(Math.floor(left / 60) % 60)}:${two(left % 60)}`}
    </time>
  )
}

/** Milliseconds as people say them. */
export const took = (ms: number): string => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`)
