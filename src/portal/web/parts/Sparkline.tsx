/** A sparkline of a day of deliveries; the numbers are beside it. */
import type { Traffic } from "../../server/Overview.ts"

const WIDTH = 96,
  HEIGHT = 24

export const Sparkline = ({ traffic }: { readonly traffic: Traffic | undefined }) => {
  if (traffic === undefined) return <span className="sparkline" />
  const { delivered, failed } = traffic
  const top = Math.max(1, ...delivered.map((count, index) => count + (failed[index] ?? 0)))
  const width = WIDTH / delivered.length
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
      {delivered.map((count, index) => bar(0, count, index, "delivered"))}
      {failed.map((count, index) => bar(delivered[index] ?? 0, count, index, "failed"))}
    </svg>
  )
}
