/** A chart of deliveries over time, with a table for people who cannot see it. */
import uPlot from "uplot"
import type { Traffic } from "../../server/Overview.ts"
import { axis, HEIGHT, resolved, usePlot } from "./plot.ts"
import { exactly, useZone } from "./Time.tsx"

/** Bars are stacked: the one behind is drawn as the sum. */
const draw = (place: HTMLElement, { delivered, failed, from, stepSeconds }: Traffic, utc: boolean): uPlot => {
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
      cursor: { drag: { x: false, y: false }, y: false },
      legend: { live: true },
      ...(utc ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), "UTC") } : {}),
      scales: {
        x: { range: [start, start + delivered.length * stepSeconds] },
        y: { range: (_, __, max) => [0, Math.max(4, Math.ceil(max * 1.1))] }
      },
      axes: [
        { ...axis(), grid: { show: false }, space: 70, values: (_, splits) => splits.map((seconds) => label.format(seconds * 1_000)) },
        { ...axis(), size: 46, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 10_000, 50_000, 100_000] }
      ],
      series: [
        {
          label: "Time",
          value: (_, seconds) => (seconds === null ? "–" : exactly(new Date(seconds * 1_000), utc ? "utc" : "local"))
        },
        {
          label: "Failed",
          fill: resolved("--bad"),
          ...(bars === undefined ? {} : { paths: bars }),
          points: { show: false },
          value: (_, __, ___, index) => (index === null ? "–" : String(failed[index] ?? 0))
        },
        {
          label: "Delivered",
          fill: resolved("--chart"),
          ...(bars === undefined ? {} : { paths: bars }),
          points: { show: false },
          value: (_, __, ___, index) => (index === null ? "–" : String(delivered[index] ?? 0))
        }
      ]
    },
    [
      delivered.map((_, index) => start + index * stepSeconds),
      delivered.map((count, index) => count + (failed[index] ?? 0)),
      [...delivered]
    ],
    place
  )
}

export const Chart = ({ label, traffic }: { readonly label: string; readonly traffic: Traffic }) => {
  const place = usePlot(traffic, draw)
  const [zone] = useZone()
  const start = Date.parse(traffic.from)
  const rows = traffic.delivered
    .map((delivered, index) => ({
      at: new Date(start + index * traffic.stepSeconds * 1_000),
      delivered,
      failed: traffic.failed[index] ?? 0
    }))
    .filter(({ delivered, failed }) => delivered + failed > 0)
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
              <th scope="col">Delivered</th>
              <th scope="col">Failed</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ at, delivered, failed }) => (
              <tr key={at.getTime()}>
                <th scope="row">{exactly(at, zone)}</th>
                <td>{delivered}</td>
                <td>{failed}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length === 0 ? <p className="hint">No deliveries in this period.</p> : null}
      </details>
    </figure>
  )
}
export default Chart
