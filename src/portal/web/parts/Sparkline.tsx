/** A sparkline of a day of attempts, those that succeeded and those that failed; the numbers are beside it. */
import type { Traffic } from "../../server/Overview.ts"
import { failedOf } from "./attempts.ts"

const WIDTH = 96,
  HEIGHT = 24

export const Sparkline = ({ traffic }: { readonly traffic: Traffic | undefined }) => {
  if (traffic === undefined) return <span className="sparkline" />
  const { succeeded } = traffic
  const failed = failedOf(traffic)
  const top = Math.max(1, ...succeeded.map((count, index) => count + (failed[index] ?? 0)))
  const width = WIDTH / succeeded.length
  const bar = (from: number, count: number, index: number, name: string) =>
    count === 0 ? null : (
      <rect
        key={`${name}${index}`}
        className={name}
        x={index * width}
        width={Math.max(1, width - 1)}
        y={HEIGHT - ((from + count) / top) * HEIGHT}
        height={Math.max(1, (count / top) * HEIGHT)}
      />
    )
  return (
    <svg className="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden>
      <line x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
      {succeeded.map((count, index) => bar(0, count, index, "delivered"))}
      {failed.map((count, index) => bar(succeeded[index] ?? 0, count, index, "failed"))}
    </svg>
  )
}
