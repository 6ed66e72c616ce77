/**
 * Workarounds for `pg` and `@effect/sql-pg`, each with its upstream issue, if there is one; remove it when a version fixes the issue.
 * Notifications.ts contains another.
 */

import type { Statement } from "@effect/sql"
import * as SqlError from "@effect/sql/SqlError"
import type { PgClient } from "@effect/sql-pg"
import { Context, Duration, Effect, Option } from "effect"
import { LRUCache } from "lru-cache"
import pg from "pg"
import { isUnavailable } from "./unavailable.ts"

/** Distinct statement texts that are prepared, many of which differ only in a partition; further statements run unprepared. */
const PREPARED = 600
/** How long a name is kept for a text that is not used, in ms: partitions of a day are named for two days. */
const UNUSED = 3_600_000

const names = new LRUCache<string, string>({ max: PREPARED, ttl: UNUSED, updateAgeOnGet: true })
let named = 0

const nameOf = (text: string): string | undefined => {
  const known = names.get(text)
  if (known !== undefined || (names.size >= PREPARED && !names.purgeStale())) return known
  const name = `s${named++}`
  names.set(text, name)
  return name
}

/** Postgres rejected a write because it is read-only. */
const READ_ONLY = "25006"

/**
 * A connection that prepares each statement with parameters once, under a name derived from its text, and tracks how long
 * it has been waiting for a response. `pg` leaves naming to its callers, and `@effect/sql-pg` names nothing:
 * https://github.com/brianc/node-postgres/issues/1990.
 */
export class PreparingClient extends pg.Client {
  /** The server's process; its clients are known by it. */
  declare readonly processID: number | null
  #waiting = 0
  #answered = 0
  /** Cancellations under way, and the answers that wait for them. */
  #canceling = 0
  readonly #held: Array<() => void> = []
  /** Consecutive checks without a response. */
  #silent = 0

  // pg's `query` has a dozen overloads; this one adds a name to the (text, values, callback) form and passes the rest on.
  override query(...input: ReadonlyArray<unknown>): never {
    const [text, values, callback] = input
    const name = typeof text === "string" && Array.isArray(values) && values.length > 0 ? nameOf(text) : undefined
    const args = name === undefined ? [...input] : [{ text, values, name }, callback]
    const last = args.at(-1)
    if (typeof last === "function") {
      if (this.#waiting++ === 0) this.#silent = 0
      args[args.length - 1] = (...answer: ReadonlyArray<unknown>) => {
        this.#waiting--
        this.#answered++
        this.#silent = 0
        if (this.#canceling > 0) this.#held.push(() => last(...answer))
        else last(...answer)
        // The server became a standby. Reads still work, so the pool would keep the connection, and every write would
        // fail.
        if (answer[0] instanceof pg.DatabaseError && answer[0].code === READ_ONLY) this.connection.stream.destroy()
      }
    }
    return Reflect.apply(super.query, this, args) as never
  }

  /** Whether the statement that runs now still runs later. */
  stillRuns(): () => boolean {
    const answered = this.#answered
    return () => this.#waiting > 0 && this.#answered === answered
  }

  /** Holds answers back, so that nothing else runs on the connection, until the returned function is called. */
  holdAnswers(): () => void {
    this.#canceling++
    return () => {
      if (--this.#canceling === 0) for (const pass of this.#held.splice(0)) pass()
    }
  }

  /**
   * Breaks the connection when a statement has waited for more than this many checks. Postgres itself cancels statements that
   * take too long; an unresponsive Postgres (stopped, or behind a dead network) does not, and callers would wait forever. Checks
   * are counted instead of time, so that a busy or suspended process does not mistake its own delay for Postgres's silence.
   * `query_timeout` of `pg` leaves such a connection in the pool: https://github.com/brianc/node-postgres/issues/3399.
   */
  breakWhenSilent(looks: number): void {
    if (this.#waiting === 0 || ++this.#silent <= looks) return
    this.connection.stream.destroy(new Error("timeout exceeded: Postgres was silent"))
  }
}

/** How much longer than its statement timeout a pool waits for a response, and the time between two checks, in ms. */
const SILENCE = 1_000,
  LOOK = 1_000

/** The connections of all pools, with how many checks each may be silent for; one timer, because each wakes the process. */
const watched = new Map<PreparingClient, number>()
let timer: NodeJS.Timeout | undefined

/** Breaks connections of a pool that are silent for longer than its statement timeout. */
export const breakSilent = (pool: pg.Pool, statement: Duration.Duration): void => {
  const looks = Math.ceil((Duration.toMillis(statement) + SILENCE) / LOOK)
  pool.on("connect", (client) => {
    if (!(client instanceof PreparingClient)) return
    watched.set(client, looks)
    timer ??= setInterval(() => {
      for (const [client, looks] of watched) client.breakWhenSilent(looks)
    }, LOOK).unref()
  })
  pool.on("remove", (client) => {
    if (!(client instanceof PreparingClient) || !watched.delete(client) || watched.size > 0) return
    clearInterval(timer)
    timer = undefined
  })
}

const ignore = () => {}

/** How `@effect/sql-pg` cancels the statement of an interrupted fiber. */
const CANCEL = /^SELECT pg_cancel_backend\((\d+)\)$/

/**
 * Cancels the statement of an interrupted fiber and no other. `@effect/sql-pg` names the connection only, and waits for another
 * one to send the cancellation: meanwhile the statement may end, and the connection run that of another request. So a
 * cancellation is not sent for a statement that has ended, and one that ends meanwhile keeps its connection until the server
 * has canceled. https://github.com/Effect-TS/effect/issues/8068.
 */
export const cancelInterruptedOnly = (pool: pg.Pool): void => {
  const clients = new Map<number | null, PreparingClient>()
  pool.on("connect", (client) => {
    if (client instanceof PreparingClient) clients.set(client.processID, client)
  })
  pool.on("remove", (client) => {
    if (client instanceof PreparingClient && clients.get(client.processID) === client) clients.delete(client.processID)
  })
  const { query } = pool
  Object.assign(pool, {
    query: (...input: ReadonlyArray<unknown>) => {
      const [text, callback] = input
      const process = typeof text === "string" ? CANCEL.exec(text)?.[1] : undefined
      const target = process === undefined ? undefined : clients.get(Number(process))
      if (typeof text !== "string" || typeof callback !== "function" || target === undefined) return Reflect.apply(query, pool, input)
      const stillRuns = target.stillRuns()
      pool.connect((error, client, release) => {
        if (client === undefined) return callback(error)
        if (!stillRuns()) {
          release()
          return callback()
        }
        const pass = target.holdAnswers()
        // The statement fails with it. Without a listener, as with one that the pool lends, it would end the process.
        client.on("error", ignore)
        client.query(text, (cause: Error | undefined) => {
          client.off("error", ignore)
          release(cause)
          pass()
          callback(cause)
        })
      })
    }
  })
}

/**
 * Runs statements directly on the pool, for the few that every request needs: one step, where the client of
 * `@effect/sql-pg`, which acquires and releases a connection in scopes of its own, takes a dozen. It ignores
 * transactions; statements within one must use the `SqlClient`. No upstream issue: it is a matter of cost.
 */
export class DirectRows extends Context.Tag("custody/DirectRows")<
  DirectRows,
  { readonly query: (statement: Statement.Statement<object>) => Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError> }
>() {}

export const direct = (pool: pg.Pool): typeof DirectRows.Service => ({
  query: (statement) =>
    Effect.async<ReadonlyArray<unknown>, SqlError.SqlError>((resume) => {
      const [text, values] = statement.compile()
      pool.query(text, [...values], (cause: Error | undefined, result: pg.QueryResult) =>
        resume(cause ? Effect.fail(new SqlError.SqlError({ cause, message: "Failed to execute statement" })) : Effect.succeed(result.rows))
      )
    })
})

/**
 * Turns the loss of a transaction's connection into an error. The client makes it a defect, because it cannot roll back
 * on a lost connection, and retries do not see defects; Postgres has rolled back by itself.
 * https://github.com/Effect-TS/effect/issues/7235.
 */
export const connectionLossAsError = (client: PgClient.PgClient) => {
  const { withTransaction } = client
  Object.assign(client, {
    withTransaction: <R, E, A>(effect: Effect.Effect<A, E, R>) =>
      Effect.catchSomeDefect(withTransaction(effect), (defect) =>
        defect instanceof SqlError.SqlError && isUnavailable(defect) ? Option.some(Effect.fail(defect)) : Option.none()
      )
  })
}
