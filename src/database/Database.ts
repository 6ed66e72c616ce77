/**
 * Postgres as the rooms see it: an Effect `SqlClient` over a pool of its own. API, ledger and worker have
 * separate pools, so that a busy worker never keeps a reader waiting; a pool without a free connection
 * refuses within a second instead of queueing. Every connection speaks UTC, bounds its statements, and hands
 * timestamps out as the text that the API answers with.
 *
 * Statements with parameters are prepared once per connection: the same text gets the same name.
 */

import * as Reactivity from "@effect/experimental/Reactivity"
import { SqlError, type Statement } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { Context, Duration, Effect, Layer, Option, Redacted } from "effect"
import pg from "pg"

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

/** Distinct statement texts that are prepared; beyond it a statement runs unprepared. */
const PREPARED = 400

const names = new Map<string, string>()

const nameOf = (text: string): string | undefined => {
  const known = names.get(text)
  if (known !== undefined || names.size >= PREPARED) return known
  const name = `s${names.size}`
  names.set(text, name)
  return name
}

/** A write was refused because nothing can be written here. */
const READ_ONLY = "25006"

/** A connection that prepares every statement with parameters under a name of its own, and knows how long it has waited for an answer. */
class PreparingClient extends pg.Client {
  #waiting = 0
  #since = 0

  // pg's `query` has a dozen overloads; this one adds a name to the (text, values, callback) form and passes the rest on.
  override query(...input: ReadonlyArray<unknown>): never {
    const [text, values, callback] = input
    const name = typeof text === "string" && Array.isArray(values) && values.length > 0 ? nameOf(text) : undefined
    const args = name === undefined ? [...input] : [{ text, values, name }, callback]
    const last = args.at(-1)
    if (typeof last === "function") {
      if (this.#waiting++ === 0) this.#since = performance.now()
      args[args.length - 1] = (...answer: ReadonlyArray<unknown>) => {
        this.#waiting--
        this.#since = performance.now()
        last(...answer)
        // The other end became a standby. It goes on reading, so the connection would be kept, and every write refused.
        if (answer[0] instanceof pg.DatabaseError && answer[0].code === READ_ONLY) this.connection.stream.destroy()
      }
    }
    return Reflect.apply(super.query, this, args) as never
  }

  /**
   * Breaks the connection when a statement has waited longer than this many milliseconds. Postgres ends a statement
   * that takes too long itself; a Postgres that is silent (stopped, or behind a dead network) does not, and whoever
   * waits would wait for ever.
   */
  breakWhenSilent(millis: number): void {
    if (this.#waiting === 0 || performance.now() - this.#since <= millis) return
    this.connection.stream.destroy(new Error(`timeout exceeded: Postgres was silent for ${millis} ms`))
  }
}

/** How much longer than its longest statement a pool waits for an answer. */
const SILENCE = Duration.seconds(1)

/** How long a connection is used: whoever only reads would stay on what became a standby. */
export const LIFETIME = Duration.minutes(15)

/** Looks after the connections of a pool for as long as it is open. Returns how to stop. */
const watch = (pool: pg.Pool, shape: PoolShape) => {
  const clients = new Set<PreparingClient>()
  pool.on("connect", (client) => {
    if (client instanceof PreparingClient) clients.add(client)
  })
  pool.on("remove", (client) => {
    if (client instanceof PreparingClient) clients.delete(client)
  })
  const longest = Duration.toMillis(Duration.sum(shape.statement, SILENCE))
  const timer = setInterval(() => {
    for (const client of clients) client.breakWhenSilent(longest)
  }, 1_000)
  timer.unref()
  return () => clearInterval(timer)
}

/**
 * Statements straight on the pool, for the few that are on every request's way: one step where the client takes a
 * dozen. It knows nothing of transactions; what is to be part of one goes through the `SqlClient`.
 */
export class DirectRows extends Context.Tag("custody/DirectRows")<
  DirectRows,
  { readonly query: <Row extends object>(statement: Statement.Statement<Row>) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError> }
>() {}

const direct = (pool: pg.Pool): typeof DirectRows.Service => ({
  query: <Row extends object>(statement: Statement.Statement<Row>) =>
    Effect.async<ReadonlyArray<Row>, SqlError.SqlError>((resume) => {
      const [text, values] = statement.compile()
      pool.query(text, [...values], (cause: Error | undefined, result: pg.QueryResult<Row>) =>
        resume(cause ? Effect.fail(new SqlError.SqlError({ cause, message: "Failed to execute statement" })) : Effect.succeed(result.rows))
      )
    })
})

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
  return { pool, unwatch: watch(pool, shape) }
}

/**
 * A transaction that lost its connection fails with that. The client would make a defect of it, because it cannot roll back
 * on a connection that is gone, and no retry sees a defect; Postgres has rolled back by itself.
 */
const connectionLossAsError = (client: PgClient.PgClient) => {
  const { withTransaction } = client
  Object.assign(client, {
    withTransaction: <R, E, A>(effect: Effect.Effect<A, E, R>) =>
      Effect.catchSomeDefect(withTransaction(effect), (defect) =>
        defect instanceof SqlError.SqlError && isUnavailable(defect) ? Option.some(Effect.fail(defect)) : Option.none()
      )
  })
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

/**
 * What Postgres says when it cannot answer now: no connection, no room, shut down or canceled, a lock not had in time,
 * a lost race for one, a transaction that was idle too long, a standby that takes no writes.
 */
const unavailable = /^(08|53|57P0|57014|55P03|40001|40P01|25P03|25006)/
const broken = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN", "CONNECTION_ENDED"])

/**
 * Whether an error says that Postgres cannot answer now (away, restarting, full, too slow, a lost race for a
 * lock) and not that the statement is wrong. The error boundary answers 503 to the former and 500 to the latter.
 */
export const isUnavailable = (error: unknown): boolean => {
  if (!(error instanceof SqlError.SqlError)) return false
  const { cause } = error
  // What Postgres itself says is told by its code; its words quote the statement and the values, whatever stands there.
  if (cause instanceof pg.DatabaseError) return unavailable.test(cause.code ?? "")
  if (!(cause instanceof Error)) return false
  const code = "code" in cause ? String(cause.code) : ""
  return broken.has(code) || /terminated|timeout exceeded|Connection ended|not queryable|connection error|ECONN/i.test(cause.message)
}
