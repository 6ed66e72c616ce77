/**
 * Postgres as the rooms see it: an Effect `SqlClient` over a pool of its own. API, ledger and worker have
 * separate pools, so that a busy worker never keeps a reader waiting; a pool without a free connection
 * refuses within a second instead of queueing. Every connection speaks UTC, bounds its statements, and hands
 * timestamps out as the text that the API answers with.
 * What works around the driver is in pgWorkarounds.ts.
 */

import * as Reactivity from "@effect/experimental/Reactivity"
import { PgClient } from "@effect/sql-pg"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { breakSilent, connectionLossAsError, DirectRows, direct, PreparingClient } from "./pgWorkarounds.ts"

/** What a pool is for, with its bounds. */
export interface PoolShape {
  readonly name: string
  readonly connections: number
  /** Longest a statement may run. */
  readonly statement: Duration.Duration
  /** Longest a caller waits for a connection. */
  readonly acquire: Duration.Duration
  /** Longest that a transaction may wait for its next statement; 5 s when absent. */
  readonly idleInTransaction?: Duration.Duration
  /** Settings of Postgres's planner. */
  readonly planner: ReadonlyArray<string>
}

// A prepared statement keeps its plan until its tables are analyzed, and a plan that was made for empty tables reads them
// whole, which takes minutes by the time that a hundred thousand rows are there. What finds rows by their keys is
// therefore planned for keys.
const byKeys = ["enable_seqscan=off", "enable_hashjoin=off", "enable_mergejoin=off"],
  eachTime = ["plan_cache_mode=force_custom_plan", ...byKeys],
  // An array of unknown length makes Postgres plan each execution anew, over all the days' partitions.
  keptByKeys = ["plan_cache_mode=force_generic_plan", ...byKeys],
  // Lists go along an index to the end of a page, whatever the statistics say: each has one index that gives its order, and
  // to sort is the last choice. So no plan depends on the values at hand, and every statement keeps the one it has.
  alongIndexes = [
    ...keptByKeys,
    "enable_sort=off",
    "enable_incremental_sort=off",
    "random_page_cost=1.1",
    // What cannot do without sorting counts as very expensive, and is not to be compiled for that.
    "jit=off"
  ]

/** The pools of the program. Reliability: pool and timeouts. */
export const pools = {
  api: { name: "api", connections: 10, statement: Duration.seconds(2), acquire: Duration.seconds(1), planner: alongIndexes },
  ledger: { name: "ledger", connections: 4, statement: Duration.seconds(30), acquire: Duration.seconds(10), planner: keptByKeys },
  worker: { name: "worker", connections: 12, statement: Duration.seconds(10), acquire: Duration.seconds(5), planner: keptByKeys },
  command: { name: "command", connections: 2, statement: Duration.minutes(10), acquire: Duration.seconds(10), planner: eachTime }
} as const satisfies Record<string, PoolShape>

const TIMESTAMPTZ = 1184
const INT8 = 20

/** `2021-09-13 13:32:34.5+00`, as a UTC session prints it, to `2021-09-13T13:32:34.500Z`. */
const isoOf = (text: string): string => {
  const point = text.indexOf(".")
  const fraction =
    point < 0
      ? "000"
      : text
          .slice(point + 1, text.indexOf("+"))
          .padEnd(3, "0")
          .slice(0, 3)
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${fraction}Z`
}

const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === TIMESTAMPTZ ? isoOf : oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser
}

/** How long a connection is used: whoever only reads would stay on what became a standby. */
export const LIFETIME = Duration.minutes(15)

/** A pool of this shape, and how to stop looking after its connections. */
export const makePool = (url: Redacted.Redacted, shape: PoolShape) => {
  const pool = new pg.Pool({
    connectionString: Redacted.value(url),
    Client: PreparingClient,
    max: shape.connections,
    connectionTimeoutMillis: Duration.toMillis(shape.acquire),
    idleTimeoutMillis: 0,
    maxLifetimeSeconds: Duration.toSeconds(LIFETIME),
    keepAlive: true,
    application_name: `custody-${shape.name}`,
    types,
    options: [
      "-c timezone=UTC",
      `-c statement_timeout=${Duration.toMillis(shape.statement)}`,
      `-c idle_in_transaction_session_timeout=${Duration.toMillis(shape.idleInTransaction ?? Duration.seconds(5))}`,
      `-c lock_timeout=${Math.min(Math.max(5_000, Duration.toMillis(shape.acquire)), Duration.toMillis(shape.statement))}`,
      ...shape.planner.map((setting) => `-c ${setting}`)
    ].join(" ")
  })
  // A connection that breaks while idle is replaced by the pool; the next statement reports what is wrong.
  pool.on("error", () => {})
  return { pool, unwatch: breakSilent(pool, shape.statement) }
}

/** A `SqlClient`, `PgClient` and {@link DirectRows} over a pool of this shape. Fails at the first use, not here, when Postgres is away. */
export const layer = (url: Redacted.Redacted, shape: PoolShape) =>
  Layer.unwrapScoped(
    Effect.acquireRelease(
      Effect.sync(() => makePool(url, shape)),
      ({ pool, unwatch }) =>
        Effect.promise(() => pool.end()).pipe(
          Effect.interruptible,
          Effect.timeoutOption(Duration.seconds(2)),
          Effect.ensuring(Effect.sync(unwatch))
        )
    ).pipe(
      Effect.map(({ pool }) =>
        Layer.merge(
          PgClient.layerFromPool({ acquire: Effect.succeed(pool) }).pipe(
            Layer.tap((context) => Effect.sync(() => connectionLossAsError(Context.get(context, PgClient.PgClient)))),
            Layer.provide(Reactivity.layer)
          ),
          Layer.succeed(DirectRows, direct(pool))
        )
      )
    )
  )
