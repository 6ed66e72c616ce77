/** A chart of a balance over time as steps: it holds from one record to the next. The page's table has the exact amounts. */
import uPlot from "uplot"
import { grouped } from "./Amount.tsx"
import { axis, HEIGHT, resolved, usePlot } from "./plot.ts"
import { exactly } from "./Time.tsx"

/** A balance since a time. */
export interface Step {
  readonly at: string
  readonly amount: string
}

export interface Balances {
  readonly steps: ReadonlyArray<Step>
  readonly symbol: string
}

const DAY = 86_400

const draw = (place: HTMLElement, { steps, symbol }: Balances, utc: boolean): uPlot => {
  const times = steps.map(({ at }) => Date.parse(at) / 1_000)
  const [from = 0, until = 0] = [times[0], times.at(-1)]
  const short = until - from < 3 * DAY
  const label = new Intl.DateTimeFormat(undefined, {
    ...(short
      ? { hour: "2-digit", minute: "2-digit" }
      : { month: "short", ...(until - from > 300 * DAY ? { year: "numeric" } : { day: "numeric" }) }),
    ...(utc ? { timeZone: "UTC" } : {})
  })
  const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumSignificantDigits: 4 })
  const stepped = uPlot.paths.stepped?.({ align: 1 })
  return new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      cursor: { drag: { x: false, y: false }, y: false },
      legend: { live: true },
      ...(utc ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), "UTC") } : {}),
      scales: { x: { range: [from, Math.max(until, from + 1)] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [
        { ...axis(), grid: { show: false }, space: 80, values: (_, splits) => splits.map((seconds) => label.format(seconds * 1_000)) },
        { ...axis(), size: 62, values: (_, splits) => splits.map((value) => compact.format(value)) }
      ],
      series: [
        { label: "Time", value: (_, seconds) => (seconds === null ? "–" : exactly(new Date(seconds * 1_000), utc ? "utc" : "local")) },
        {
          label: symbol,
          stroke: resolved("--chart"),
          fill: `color-mix(in srgb, ${resolved("--chart")} 14%, transparent)`,
          width: 2,
          ...(stepped === undefined ? {} : { paths: stepped }),
          points: { show: false },
          value: (_, __, ___, index) => (index === null ? "–" : grouped(steps[index]?.amount ?? ""))
        }
      ]
    },
    // Floating point is exact enough for pixels.
    [times, steps.map(({ amount }) => Number(amount))],
    place
  )
}

export const BalanceChart = ({ balances }: { readonly balances: Balances }) => {
  const place = usePlot(balances, draw)
  return (
    <figure className="chart">
      <div ref={place} aria-hidden />
      <figcaption className="unseen">
        {balances.symbol} since {balances.steps[0]?.at.slice(0, 10)}. The table below has every record.
      </figcaption>
    </figure>
  )
}
export default BalanceChart
