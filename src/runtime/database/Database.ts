/**
 * Postgres for the rest of the program: an Effect `SqlClient` over its own pool. API, ledger and worker have separate
 * pools, so a busy worker never delays a reader; a pool without a free connection fails within a second instead of
 * queueing. Every connection uses UTC and read committed, has statement timeouts, and returns timestamps in the text form of API responses.
 * Workarounds for the driver are in pgWorkarounds.ts.
 */

import * as Reactivity from "@effect/experimental/Reactivity"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { breakSilent, cancelInterruptedOnly, connectionLossAsError, DirectRows, direct, PreparingClient } from "./pgWorkarounds.ts"

/** A pool and its limits. */
export interface PoolShape {
  readonly name: string
  readonly connections: number
  /** Statement timeout. */
  readonly statement: Duration.Duration
  /** Longest wait for a connection. */
  readonly acquire: Duration.Duration
  /** Longest idle time within a transaction; default 5 s. */
  readonly idleInTransaction?: Duration.Duration
  /** Settings of Postgres's planner. */
  readonly planner: ReadonlyArray<string>
}

// A prepared statement keeps its plan until its tables are analyzed, and they grow meanwhile. Each setting says what happens without
// it; test/runtime/database/keptPlans.test.ts and the tests of lists show the rows that are read then.
const kept = [
    // Postgres plans statements with arrays again for each execution, over all daily partitions: attempts take half as long again.
    "plan_cache_mode=force_generic_plan",
    // A plan for few rows scans the table, however many there are later: each attempt reads the attempts of a day.
    "enable_seqscan=off",
    // Before Postgres 18, a plan with a step that is off counts as very expensive and is compiled, for 50 to 200 ms.
    "jit=off"
  ],
  alongIndexes = [
    ...kept,
    // Each list has an index in its order, which is read up to the end of a page. A sort reads everything first.
    "enable_sort=off",
    // A filter of a list must not read the list without it, with the rest of the order sorted in small parts.
    "enable_incremental_sort=off",
    // The roles of a caller who sees dozens of vaults are read again for each event.
    "enable_mergejoin=off"
  ]

/** The pools of the program. Reliability: pool and timeouts. */
export const pools = {
  api: { name: "api", connections: 10, statement: Duration.seconds(2), acquire: Duration.seconds(1), planner: alongIndexes },
  ledger: { name: "ledger", connections: 4, statement: Duration.seconds(30), acquire: Duration.seconds(10), planner: kept },
  worker: { name: "worker", connections: 12, statement: Duration.seconds(10), acquire: Duration.seconds(5), planner: kept },
  command: { name: "command", connections: 2, statement: Duration.minutes(10), acquire: Duration.seconds(10), planner: kept }
} as const satisfies Record<string, PoolShape>

const TIMESTAMPTZ = 1184
const INT8 = 20

/** `2021-09-13 13:32:34.5+00`, as a UTC session prints it, to `2021-09-13T13:32:34.500Z`. Throws for any other session. */
const isoOf = (text: string): string => {
  if (!text.endsWith("+00")) throw new Error(`Postgres did not answer in UTC: ${text}`)
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

/** Lifetime of a connection: one that only reads would otherwise stay on a server that became a standby. */
export const LIFETIME = Duration.minutes(15)

/** Settings of every session, whatever the defaults of its role or database are. The last one shows that none was lost (pooler.ts). */
export const session = "-c timezone=UTC -c datestyle=ISO -c default_transaction_isolation=read\\ committed -c custody.session=on"

/** A pool with this configuration. */
const makePool = (url: Redacted.Redacted, shape: PoolShape) => {
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
      session,
      `-c statement_timeout=${Duration.toMillis(shape.statement)}`,
      `-c idle_in_transaction_session_timeout=${Duration.toMillis(shape.idleInTransaction ?? Duration.seconds(5))}`,
      `-c lock_timeout=${Math.min(Math.max(5_000, Duration.toMillis(shape.acquire)), Duration.toMillis(shape.statement))}`,
      ...shape.planner.map((setting) => `-c ${setting}`)
    ].join(" ")
  })
  // The pool replaces a connection that breaks while idle; the next statement reports errors.
  pool.on("error", () => {})
  breakSilent(pool, shape.statement)
  cancelInterruptedOnly(pool)
  return pool
}

/** A pool that closes with the scope, waiting at most 2 s for running statements. */
export const acquirePool = (url: Redacted.Redacted, shape: PoolShape) =>
  Effect.acquireRelease(
    Effect.sync(() => makePool(url, shape)),
    (pool) => Effect.promise(() => pool.end()).pipe(Effect.interruptible, Effect.timeoutOption(Duration.seconds(2)))
  )

/**
 * A `SqlClient`, `PgClient` and {@link DirectRows} over a pool with this configuration. If Postgres is unavailable, the
 * first use fails, not the layer.
 */
export const layer = (url: Redacted.Redacted, shape: PoolShape) =>
  Layer.unwrapScoped(
    acquirePool(url, shape).pipe(
      Effect.map((pool) =>
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
