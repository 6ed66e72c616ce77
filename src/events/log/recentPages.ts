/**
 * Pages of a partitioned log. The newest days are searched first: most pages are in them, and a search of the whole log opens
 * an index of every day. Callers whose last page was not in them are remembered for a minute. Decision D-31.
 */
import { Effect } from "effect"
import { LRUCache } from "lru-cache"

const REMEMBERED = { max: 10_000, ttl: 60_000 }

/** Which part of a log is searched first. */
interface Recent {
  /** Its length, in ms. */
  readonly searchMs: number
  /** How far the time in a row's id can be behind the time that the log is ordered by, in ms. */
  readonly slackMs: number
}

/** A row, with the number of rows `behind` it if the page ends at a size. */
interface Logged {
  readonly id: string
  readonly behind?: number
}

/** A requested page. */
interface Wanted<Row, E, R> {
  /** The caller and the filters. */
  readonly caller: string
  /** Times after which the page has no rows. */
  readonly before: ReadonlyArray<string | null | undefined>
  readonly take: number
  /** The newest rows whose ids are not older than this time, in ms since the epoch: `take`, or the first of them up to a size. */
  readonly search: (since: number) => Effect.Effect<ReadonlyArray<Row>, E, R>
  /** The time that the log is ordered by. */
  readonly timeOf: (row: Row) => string
}

/** Returns a page if all of it is certainly in the newest days; undefined if the whole log must be searched. */
export const recentPages = ({ searchMs, slackMs }: Recent) => {
  const older = new LRUCache<string, true>(REMEMBERED)
  return <Row extends Logged, E, R>({
    before,
    caller,
    search,
    take,
    timeOf
  }: Wanted<Row, E, R>): Effect.Effect<ReadonlyArray<Row> | undefined, E, R> =>
    Effect.suspend(() => {
      if (older.has(caller)) return Effect.succeed(undefined)
      const since = Math.min(Date.now(), ...before.flatMap((time) => (time == null ? [] : [Date.parse(time)]))) - searchMs
      return Effect.map(search(since), (rows) => {
        const last = rows.at(-1)
        if (last !== undefined && rows.length + (last.behind ?? 0) === take && Date.parse(timeOf(last)) >= since + slackMs) return rows
        older.set(caller, true)
        return undefined
      })
    })
}
