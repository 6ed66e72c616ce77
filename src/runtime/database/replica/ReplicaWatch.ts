/**
 * Watches a read replica: the position of the write-ahead log up to which it has replayed, and the maximum age of its data.
 * The age needs no synchronized clocks: it is the time since the primary was last seen at a position that the replica has
 * reached. So it grows when the replica lags, loses its primary or stops responding, but not while the primary is idle.
 * Positions are bytes since the beginning of the log. After a failover they say nothing of a replica that had replayed more than the new
 * primary: it is used again once it shows a heartbeat of a process that was written after the failover. Decision D-58.
 */
import { Duration, Effect, type Redacted, Schedule, Schema } from "effect"
import type pg from "pg"
import { batched } from "../Batch.ts"
import { acquirePool, type PoolShape } from "../Database.ts"
import { decodeRows } from "../decodeRows.ts"
import { LOST_SETTINGS, rejectedSettings } from "../pooler.ts"

/** The state of a replica. */
export interface Standing {
  /** Everything up to this position is visible on the replica. */
  readonly position: number
  /** Seconds by which its data may be behind the primary. */
  readonly lag: number
}

/** Interval of checks, how long one may take, and how long a request waits for one. */
const EVERY = Duration.millis(250),
  LIMIT = Duration.seconds(1),
  WAIT = Duration.millis(100)
/** Checks of the primary that are kept: those of 30 seconds. */
const KEPT = 120

const POOLED = "It is behind a connection pooler"

/** Its own connection: a busy pool would look like an unavailable server. */
const shape: PoolShape = { name: "replica-watch", connections: 1, statement: LIMIT, acquire: LIMIT, planner: [] }

const PrimaryRow = Schema.Struct({
  inserted: Schema.Number,
  flushed: Schema.Number,
  cluster: Schema.String,
  timeline: Schema.NullOr(Schema.String),
  heartbeats: Schema.Array(Schema.String)
})
const ReplicaRow = Schema.Struct({
  position: Schema.NullOr(Schema.Number),
  heartbeats: Schema.Array(Schema.String),
  standby: Schema.Boolean,
  cluster: Schema.String,
  pooled: Schema.Boolean
})

const CLUSTER = "(SELECT system_identifier::text FROM pg_control_system()) AS cluster"
/** The latest heartbeat of each of the service's processes. */
const HEARTBEATS = "ARRAY(SELECT id || ' ' || extract(epoch FROM seen_at) FROM processes LIMIT 100) AS heartbeats"
/** The timeline of the write-ahead log of a primary: each failover begins another. */
export const TIMELINE = "CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END"
const ofPrimary = `SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS inserted, (pg_current_wal_flush_lsn() - '0/0')::float8 AS flushed,
  ${CLUSTER}, ${TIMELINE} AS timeline, ${HEARTBEATS}`
const ofReplica = `SELECT (pg_last_wal_replay_lsn() - '0/0')::float8 AS position, pg_is_in_recovery() AS standby, ${CLUSTER}, ${HEARTBEATS},
  ${LOST_SETTINGS} AS pooled`

/** The first row of a statement. Fails if the server does not answer in time. */
const ask = <A, I>(row: Schema.Schema<A, I>, text: string) => {
  const decode = decodeRows(row)
  return (pool: pg.Pool) =>
    decode(Effect.tryPromise(async (): Promise<ReadonlyArray<unknown>> => (await pool.query(text)).rows)).pipe(
      Effect.flatMap(([first]) => Effect.fromNullable(first)),
      Effect.timeout(LIMIT)
    )
}
const askPrimary = ask(PrimaryRow, ofPrimary),
  askReplica = ask(ReplicaRow, ofReplica)

/** Watches the replica while the scope is open. */
export const watchReplica = (primaryUrl: Redacted.Redacted, replicaUrl: Redacted.Redacted) =>
  Effect.gen(function* () {
    const primary = yield* acquirePool(primaryUrl, shape)
    const replica = yield* acquirePool(replicaUrl, shape)
    /** Flushed positions of the primary on this timeline, each with the time before its check and the heartbeats, oldest first. */
    const seen: Array<{ readonly at: number; readonly flushed: number; readonly heartbeats: ReadonlyArray<string> }> = []
    let cluster: string | undefined,
      timeline: string | null | undefined,
      /** The heartbeats that were there when the timeline was first seen: they may be of the one before. */
      inherited: ReadonlySet<string> = new Set(),
      failedOver = false,
      heartbeats: ReadonlyArray<string> = []
    let position: number | string = "It has not responded yet",
      freshAt = Number.NEGATIVE_INFINITY

    const positionOf = (row: typeof ReplicaRow.Type): number | string =>
      row.pooled
        ? POOLED
        : !row.standby || row.position === null
          ? "It is not a standby"
          : cluster !== undefined && row.cluster !== cluster
            ? "It is not a standby of DATABASE_URL"
            : row.position

    const read = Effect.match(askReplica(replica), {
      onFailure: (error) => (rejectedSettings(error) ? POOLED : "It cannot be reached"),
      onSuccess: (row) => {
        heartbeats = row.heartbeats
        return positionOf(row)
      }
    })
    /** A position of the replica that was read after the call; calls share statements. */
    const current = yield* batched((calls: ReadonlyArray<void>) => Effect.map(read, (found) => calls.map(() => found)), {
      size: 1_000,
      parallel: 1
    })

    const look = Effect.gen(function* () {
      const found = yield* current(undefined)
      const at = performance.now()
      const now = yield* Effect.orElseSucceed(askPrimary(primary), () => undefined)
      cluster = now?.cluster ?? cluster
      position = found
      if (now !== undefined && now.timeline !== timeline) {
        failedOver ||= timeline !== undefined
        timeline = now.timeline
        inherited = new Set(now.heartbeats)
        seen.length = 0
        freshAt = Number.NEGATIVE_INFINITY
      }
      // After a failover, a replica may have replayed changes that the new primary never had.
      if (typeof position === "number" && now !== undefined && position > now.inserted) position = "It is ahead of the primary"
      if (now !== undefined) seen.push({ at, flushed: now.flushed, heartbeats: now.heartbeats })
      // Without rate limits and workers, there are no heartbeats.
      const known = new Set(seen.flatMap((one) => one.heartbeats)).difference(inherited)
      const follows = now?.heartbeats.length === 0 ? !failedOver : heartbeats.some((one) => known.has(one))
      if (typeof position !== "number") freshAt = Number.NEGATIVE_INFINITY
      else if (follows) for (const one of seen) if (one.flushed <= position) freshAt = Math.max(freshAt, one.at)
      if (seen.length > KEPT) seen.shift()
    })
    yield* Effect.forkScoped(Effect.schedule(look, Schedule.spaced(EVERY)))

    return {
      /** The primary's timeline at the last check. */
      timeline: () => timeline,

      /** The current state of the replica, or why it cannot be used. */
      standing: (): Standing | string =>
        typeof position === "string" ? position : { position, lag: (performance.now() - freshAt) / 1_000 },

      /** Checks again for a request that needs a position which the replica had not reached. Returns whether it has now. */
      reached: (needed: number): Effect.Effect<boolean> =>
        current(undefined).pipe(
          Effect.map((found) => typeof found === "number" && typeof position === "number" && found >= needed),
          Effect.timeoutTo({ duration: WAIT, onSuccess: (reached) => reached, onTimeout: () => false })
        )
    }
  })
