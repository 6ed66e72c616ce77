/**
 * Moves the transactions of an older database into the partitioned table (migration 34) while the service runs. Each database
 * transaction copies a part of the rows and records its progress, so any process can continue a move that was killed. The
 * old table stays complete and in use until every row is copied. Then both are compared, and one transaction replaces the
 * old table by the new one. Decision D-60.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Schedule, Schema } from "effect"
import { TRANSACTION_DELETERS, TRANSACTIONS_MOVE } from "./advisoryLocks.ts"
import { decodeRows } from "./decodeRows.ts"
import { DEADLOCK, hasSqlState, LOCK_NOT_AVAILABLE } from "./hasSqlState.ts"
import { exchange } from "./migrations/0034_transactions_by_vault.ts"

/** Rows per part. While a part is copied, writers of its rows wait, and so do all deletes. */
const PART = 200
/** The pause after a part: a multiple of the part's duration, and a minimum. So a move takes a third of a core, and less of a busy one. */
const PAUSE = 2,
  LEAST = Duration.millis(5)
/**
 * How long the move waits for locks, in ms: a part for writers of its rows, which may in turn wait for the part, and the
 * exchange for readers, with all other statements behind it. Much shorter than `deadlock_timeout`.
 */
const PATIENCE = 100
/** A transaction that is older than this, in ms, may run for long. */
const USUAL = 100
/** The time between two attempts, and between two checks of another process's progress. */
const AGAIN = Duration.millis(500)
/** How long replicas get to replay the last part before the exchange, in seconds. */
const REPLAY = 10
/** How often a process checks whether rows are to be moved. */
const LOOK = "30 seconds"

/** The progress of a move. */
export interface Progress {
  readonly rows: number
  /** Share of the ids that are done, in percent. */
  readonly percent: number
  /** Whether it waits for reads that began before the last part; false while rows are copied. */
  readonly waits: boolean
}

const Move = Schema.Struct({ lastId: Schema.Number, endId: Schema.Number, moved: Schema.Number })
type Move = typeof Move.Type
const decodeMoves = decodeRows(Move),
  decodeFound = decodeRows(Schema.Struct({ found: Schema.Boolean })),
  decodeMine = decodeRows(Schema.Struct({ mine: Schema.Boolean })),
  decodeSeen = decodeRows(Schema.Struct({ seen: Schema.Boolean })),
  decodeUsed = decodeRows(Schema.Struct({ used: Schema.Boolean })),
  decodeSame = decodeRows(Schema.Struct({ same: Schema.Boolean }))

/** Another transaction holds a lock, or there was a deadlock; nothing was changed. */
const isBusy = (error: unknown): boolean => hasSqlState(error, LOCK_NOT_AVAILABLE, DEADLOCK)

const underWay = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* decodeFound(sql`SELECT to_regclass('transactions_move') IS NOT NULL AS found`)
  return row?.found === true
})

/** Runs in a transaction as the only mover, with bounded waits for locks. `undefined` if another process moves or the move is complete. */
const asOnlyMover = <A, E, R>(step: (sql: SqlClient.SqlClient, move: Move) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql.unsafe(`SET LOCAL lock_timeout = ${PATIENCE}`)
        const [mine] = yield* decodeMine(sql`SELECT pg_try_advisory_xact_lock(${TRANSACTIONS_MOVE}::bigint) AS mine`)
        if (mine?.mine !== true || !(yield* underWay)) return undefined
        const [move] = yield* decodeMoves(sql`SELECT last_id AS "lastId", end_id AS "endId", moved FROM transactions_move`)
        return move === undefined ? undefined : yield* step(sql, move)
      })
    )
  })

/** Copies the next part. Returns the progress after it. */
const part = asOnlyMover((sql, { endId, lastId, moved }) =>
  Effect.gen(function* () {
    if (lastId >= endId) return { lastId, endId, moved }
    // A row written since this part's snapshot is already in the new table, or its writer waits for this part; it is left
    // unchanged. A deleted row would come back, so deletes are blocked meanwhile. The commit need not wait for the disk: a part
    // lost in a crash is copied again, and the commit of the exchange flushes all parts before it.
    yield* sql`SELECT pg_advisory_xact_lock(${TRANSACTION_DELETERS}::bigint), set_config('synchronous_commit', 'off', true)`
    const [row] = yield* decodeMoves(sql`
      WITH part AS MATERIALIZED (
        SELECT * FROM transactions WHERE id > ${lastId}::bigint AND id <= ${endId}::bigint ORDER BY id LIMIT ${PART}::int
      ), copied AS (
        INSERT INTO transactions_by_vault SELECT * FROM part ON CONFLICT ON CONSTRAINT transactions_by_vault_natural_key DO NOTHING
      )
      UPDATE transactions_move SET last_id = coalesce((SELECT CASE WHEN count(*) = ${PART}::int THEN max(id) END FROM part), end_id),
        moved = moved + (SELECT count(*) FROM part), last_part = pg_current_xact_id(), last_at = clock_timestamp()
      RETURNING last_id AS "lastId", end_id AS "endId", moved`)
    return row
  })
)

/**
 * Whether everything that still runs sees every row in the new table: no transaction, here or on a replica, has a snapshot
 * from before the last part.
 */
const isSeen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* decodeSeen(sql`
    SELECT NOT EXISTS (
        SELECT 1 FROM pg_stat_activity a WHERE a.datname = current_database() AND a.backend_type = 'client backend'
          AND a.pid <> pg_backend_pid() AND a.backend_xmin IS NOT NULL AND age(a.backend_xmin) >= age(m.last_part::xid))
      AND (m.last_at < clock_timestamp() - ${REPLAY}::int * interval '1 second' OR NOT EXISTS (SELECT 1 FROM pg_stat_replication)) AS seen
    FROM transactions_move m`)
  return row?.seen === true
})

/**
 * Whether one of the tables that the exchange locks has been in use for longer than a usual statement, as by an export or a
 * vacuum. Waiting for that, with all other statements behind, would be useless.
 */
const isUsed = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* decodeUsed(sql`
    SELECT EXISTS (
      SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE l.relation IN ('vaults'::regclass, 'networks'::regclass, 'assets'::regclass, 'transactions'::regclass)
        AND a.datname = current_database() AND a.pid <> pg_backend_pid()
        AND a.xact_start < clock_timestamp() - ${USUAL}::int * interval '1 millisecond') AS used`)
  return row?.used === true
})

/** Fails if the two tables differ, which should never happen; the old one then stays in use. */
const compare = asOnlyMover((sql) =>
  Effect.gen(function* () {
    yield* sql.unsafe("SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on; SET LOCAL max_parallel_workers_per_gather = 0")
    const [row] = yield* decodeSame(
      sql.unsafe(`
        SELECT (SELECT (count(*), sum(hash_record_extended(t, 0)::numeric))::text FROM transactions t)
          = (SELECT (count(*), sum(hash_record_extended(t, 0)::numeric))::text FROM transactions_by_vault t) AS same`)
    )
    if (row?.same !== true) yield* Effect.dieMessage("the moved transactions differ from the original ones: both tables are kept")
    return true
  })
)

/** Replaces the old table by the new one. Returns whether it did. */
const finish = asOnlyMover((sql, { endId, lastId }) =>
  Effect.gen(function* () {
    if (lastId < endId || !(yield* isSeen) || (yield* isUsed)) return false
    yield* sql.unsafe(exchange)
    return true
  })
)

/** Moves all rows and reports its progress. Returns how many rows this process or others moved; undefined if there is nothing to move. */
export const move = <E, R>(onProgress: (progress: Progress) => Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const retried = <A, F, S>(step: Effect.Effect<A, F, S>) =>
      Effect.retry(step, { while: isBusy, schedule: Schedule.spaced("100 millis") })
    /** The progress, whichever process moves rows; undefined when the move is complete. */
    const look = Effect.flatMap(underWay, (found) =>
      found
        ? Effect.map(decodeMoves(sql`SELECT last_id AS "lastId", end_id AS "endId", moved FROM transactions_move`), ([row]) => row)
        : Effect.succeed(undefined)
    )
    let compared = false,
      rows: number | undefined
    for (;;) {
      const [took, mine] = yield* Effect.timed(retried(part))
      const now = mine ?? (yield* look)
      if (now === undefined) return rows
      rows = now.moved
      const copied = now.lastId >= now.endId
      yield* onProgress({ rows, percent: now.endId === 0 ? 100 : Math.floor((now.lastId / now.endId) * 100), waits: copied && compared })
      if (!copied) {
        yield* Effect.sleep(mine === undefined ? AGAIN : Duration.max(LEAST, Duration.times(took, PAUSE)))
        continue
      }
      if (mine !== undefined && !compared) compared = (yield* retried(compare)) === true
      const finished = compared ? yield* Effect.catchIf(finish, isBusy, () => Effect.succeed(false)) : false
      if (finished !== true) yield* Effect.sleep(AGAIN)
    }
  })

/** Moves remaining rows in the background while the scope is open. */
export const keep = Effect.forkScoped(
  Effect.flatMap(underWay, (found) =>
    found
      ? Effect.flatMap(
          move(() => Effect.void),
          (rows) => Effect.logInfo(`moved ${rows ?? 0} transactions into partitions`)
        )
      : Effect.void
  ).pipe(
    Effect.catchAllCause((cause) => Effect.logWarning("moving transactions into partitions failed and will be retried", cause)),
    Effect.repeat(Schedule.spaced(LOOK))
  )
)
