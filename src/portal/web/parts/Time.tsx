/**
 * Times with their zone, in UTC or in the browser's zone as the user chose; seconds and the exact text are in the title.
 * All relative times of a page use one clock, so that they agree.
 */
import { useSyncExternalStore } from "react"
import { preference } from "../preference.ts"

const zone = preference("custody.zone", ["local", "utc"])
type Zone = ReturnType<typeof zone.current>
/** Whether times are shown in the browser's zone or in UTC. */
export const useZone = zone.use

const formats = new Map<string, Intl.DateTimeFormat>()
const format = (at: Date, inZone: Zone, options: Intl.DateTimeFormatOptions): string => {
  const key = inZone + JSON.stringify(options)
  const known = formats.get(key) ?? new Intl.DateTimeFormat(undefined, { ...options, ...(inZone === "utc" ? { timeZone: "UTC" } : {}) })
  formats.set(key, known)
  return known.format(at)
}
const date = { day: "numeric", month: "short", year: "numeric" } as const
const minute = { hour: "2-digit", minute: "2-digit", timeZoneName: "short" } as const

/** Date and time to the second, with the zone. */
export const exactly = (at: Date, inZone: Zone): string => format(at, inZone, { ...date, ...minute, second: "2-digit" })

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" })
const units: ReadonlyArray<readonly [Intl.RelativeTimeFormatUnit, number]> = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000]
]

const ticks = new Set<() => void>()
let now = Date.now()
setInterval(() => {
  now = Date.now()
  for (const tick of ticks) tick()
}, 1_000)
const subscribe = (tick: () => void) => {
  ticks.add(tick)
  return () => ticks.delete(tick)
}

/** The page's clock in ms, in steps. */
export const useNow = (every: number): number => useSyncExternalStore(subscribe, () => now - (now % every))

/** “3 min. ago”, “in 2 hr.” */
const distance = (ms: number): string => {
  if (Math.abs(ms) < 5_000) return "just now"
  const [unit, size] = units.find(([, one]) => Math.abs(ms) >= one) ?? ["second", 1_000]
  return relative.format(Math.trunc(ms / size), unit)
}

export interface TimeProps {
  readonly at: string
  /** `exact`: date and time to the minute; `second`: to the second, where order matters; `day`: the date; `ago`: relative time. */
  readonly as?: "exact" | "second" | "day" | "ago"
}

export const Time = ({ as = "exact", at }: TimeProps) => {
  const current = useNow(as === "ago" ? 1_000 : 3_600_000)
  const [inZone] = useZone()
  const time = new Date(at)
  const text =
    as === "exact"
      ? format(time, inZone, { ...date, ...minute })
      : as === "second"
        ? exactly(time, inZone)
        : as === "day"
          ? format(time, inZone, date)
          : distance(time.getTime() - current)
  return (
    <time dateTime={at} title={`${exactly(time, inZone)} · ${at}`}>
      {text}
    </time>
  )
}

/** Time left in its largest units: “12 days”, “23 h”, “40 s”. */
export const left = (until: string, from: number): string => {
  const ms = Math.max(0, Date.parse(until) - from)
  const [days, hours, minutes] = [Math.floor(ms / 86_400_000), Math.floor(ms / 3_600_000), Math.floor(ms / 60_000)]
  return days >= 2 ? `${days} days` : hours >= 1 ? `${hours} h` : minutes >= 2 ? `${minutes} min` : `${Math.ceil(ms / 1_000)} s`
}

/** Milliseconds for people. */
export const took = (ms: number): string => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`)
