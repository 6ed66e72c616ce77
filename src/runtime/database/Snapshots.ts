/**
 * Consistent snapshots for long reads: a separate connection in a read-only REPEATABLE READ transaction. They have their
 * own small pool, so that long reads do not take connections from short ones. If a connection is released while a
 * statement runs, the statement is canceled and the connection closed.
 */

import type { Statement } from "@effect/sql"
import * as SqlError from "@effect/sql/SqlError"
import { Context, Duration, Effect, Layer, type Redacted, type Scope } from "effect"
import type pg from "pg"
import { acquirePool, type PoolShape } from "./Database.ts"

/** Reads of one snapshot. */
export interface Snapshot {
  /** Whether more than half of the process's connections for snapshots were in use when this one was opened. */
  readonly isCrowded: boolean
  readonly query: (statement: Statement.Statement<object>) => Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>
}

const shape: PoolShape = {
  name: "export",
  connections: 6,
  statement: Duration.seconds(20),
  acquire: Duration.seconds(1),
  // A reader that stops reading is disconnected before this.
  idleInTransaction: Duration.seconds(90),
  planner: ["enable_seqscan=off", "random_page_cost=1.1"]
}

/** The next statement notices a broken connection. */
const ignore = () => {}

const failed = (cause: unknown) => new SqlError.SqlError({ cause, message: "Failed to execute statement" })

const run = (client: pg.PoolClient, text: string, values: ReadonlyArray<unknown> = []) => client.query(text, [...values])

export class Snapshots extends Context.Tag("custody/Snapshots")<
  Snapshots,
  {
    /** A snapshot, released with the scope. Fails as unavailable if every connection is in use. */
    readonly open: Effect.Effect<Snapshot, SqlError.SqlError, Scope.Scope>
  }
>() {
  static readonly layer = (url: Redacted.Redacted) =>
    Layer.scoped(
      Snapshots,
      Effect.map(acquirePool(url, shape), (pool) => ({
        open: Effect.map(
          Effect.acquireRelease(
            Effect.tryPromise({
              try: async () => {
                const client = await pool.connect()
                client.on("error", ignore)
                await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return { client, running: 0 }
              },
              catch: failed
            }),
            (held) => Effect.promise(() => release(pool, held))
          ),
          (held): Snapshot => ({
            isCrowded: pool.totalCount - pool.idleCount > shape.connections / 2,
            query: (statement) => {
              const [text, values] = statement.compile()
              return Effect.tryPromise({
                try: () => {
                  held.running++
                  return run(held.client, text, values).finally(() => held.running--)
                },
                catch: failed
              }).pipe(Effect.map(({ rows }) => rows))
            }
          })
        )
      }))
    )
}

const release = async (pool: pg.Pool, { client, running }: { readonly client: pg.PoolClient; readonly running: number }): Promise<void> => {
  if (running === 0) {
    await client.query("ROLLBACK").then(
      () => {
        client.off("error", ignore)
        client.release()
      },
      () => client.release(true)
    )
    return
  }
  // pg's clients have their backend's process id; its types do not say so.
  const pid: unknown = Reflect.get(client, "processID")
  client.release(true)
  await pool.query("SELECT pg_cancel_backend($1)", [pid]).catch(() => {})
}
