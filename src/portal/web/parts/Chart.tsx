/** A chart of attempts over time by result, with a table for people who cannot see it. */
import uPlot from "uplot"
import type { Traffic } from "../../server/Overview.ts"
import { results } from "./attempts.ts"
import { axis, HEIGHT, resolved, usePlot } from "./plot.ts"
import { exactly, useZone } from "./Time.tsx"

/** Distances of the axis' lines: whole numbers. */
const INCREMENTS = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat()
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumSignificantDigits: 4 })

/** Bars are stacked: each one is drawn as the sum of those below it, behind them. */
const draw = (place: HTMLElement, traffic: Traffic, utc: boolean): uPlot => {
  const { from, stepSeconds } = traffic
  const sums = results.map((_, top) =>
    traffic.succeeded.map((__, step) => results.slice(0, top + 1).reduce((sum, [name]) => sum + (traffic[name][step] ?? 0), 0))
  )
  const start = Date.parse(from) / 1_000
  const bars = uPlot.paths.bars?.({ size: [0.7, 28], align: 1 })
  const zoneOf = utc ? { timeZone: "UTC" } : {}
  const label = new Intl.DateTimeFormat(
    undefined,
    stepSeconds < 3_600 ? { hour: "2-digit", minute: "2-digit", ...zoneOf } : { day: "numeric", month: "short", ...zoneOf }
  )
  return new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      // Half of the last label, which is centered at the end of the axis.
      padding: [null, 32, null, null],
      cursor: { drag: { x: false, y: false }, y: false },
      legend: { live: true },
      ...(utc ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), "UTC") } : {}),
      scales: {
        x: { range: [start, start + traffic.succeeded.length * stepSeconds] },
        y: { range: (_, __, max) => [0, Math.max(4, Math.ceil(max * 1.1))] }
      },
      axes: [
        { ...axis(), grid: { show: false }, space: 70, values: (_, splits) => splits.map((seconds) => label.format(seconds * 1_000)) },
        { ...axis(), size: 62, incrs: INCREMENTS, values: (_, splits) => splits.map((value) => compact.format(value)) }
      ],
      series: [
        {
          label: "Time",
          value: (_, seconds) => (seconds === null ? "–" : exactly(new Date(seconds * 1_000), utc ? "utc" : "local"))
        },
        ...results
          .map(([name, label, color]) => ({
            label,
            fill: resolved(color),
            ...(bars === undefined ? {} : { paths: bars }),
            points: { show: false },
            value: (_: uPlot, __: number, ___: number, index: number | null) => (index === null ? "–" : String(traffic[name][index] ?? 0))
          }))
          .reverse()
      ]
    },
    [traffic.succeeded.map((_, index) => start + index * stepSeconds), ...sums.reverse()],
    place
  )
}

export const Chart = ({ label, traffic }: { readonly label: string; readonly traffic: Traffic }) => {
  const place = usePlot(traffic, draw)
  const [zone] = useZone()
  const start = Date.parse(traffic.from)
  const rows = traffic.succeeded
    .map((_, step) => ({
      at: new Date(start + step * traffic.stepSeconds * 1_000),
      counts: results.map(([name, label]) => [label, traffic[name][step] ?? 0] as const)
    }))
    .filter(({ counts }) => counts.some(([_, count]) => count > 0))
  return (
    <figure className="chart">
      <div ref={place} aria-hidden />
      <details>
        <summary>Show as a table</summary>
        <table>
          <caption className="unseen">{label}</caption>
          <thead>
            <tr>
              <th scope="col">From</th>
              {results.map(([name, label]) => (
                <th key={name} scope="col">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ at, counts }) => (
              <tr key={at.getTime()}>
                <th scope="row">{exactly(at, zone)}</th>
                {counts.map(([label, count]) => (
                  <td key={label}>{count}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length === 0 ? <p className="hint">No attempts in this period.</p> : null}
      </details>
    </figure>
  )
}
export default Chart
