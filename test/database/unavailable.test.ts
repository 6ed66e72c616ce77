/** What Postgres says of a statement that is wrong is never taken for a Postgres that is away, whatever words stand in it. */
import { expect, test } from "bun:test"
import { SqlClient } from "@effect/sql"
import { Effect, Redacted } from "effect"
import * as Database from "../../src/database/Database.ts"
import { isUnavailable } from "../../src/database/unavailable.ts"
import { freshDatabase } from "../support/servers.ts"

test("Postgres errors are classified by code and not by message, and a connection lost in a transaction is a failure, not a defect", async () => {
  const url = await freshDatabase()
  const verdict = (...statements: ReadonlyArray<string>) =>
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      sql.withTransaction(Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true }))
    ).pipe(
      Effect.flip,
      Effect.map(isUnavailable),
      Effect.provide(Database.layer(Redacted.make(url), Database.pools.command)),
      Effect.runPromise
    )
  for (const wrong of [
    "SELECT 'unterminated",
    "SELECT 'connection terminated, timeout exceeded'::int",
    'SELECT * FROM "ECONNREFUSED"',
    "INSERT INTO networks (name, kind) VALUES ('read-only', 'not queryable')"
  ]) {
    expect([wrong, await verdict(wrong)]).toEqual([wrong, false])
  }
  for (const away of [
    ["SET LOCAL statement_timeout = 20", "SELECT pg_sleep(5)"],
    ["SET TRANSACTION READ ONLY", "DELETE FROM networks"],
    // Rolling back fails too, and is no defect: whoever tries again must see that it is worth it.
    ["SELECT pg_terminate_backend(pg_backend_pid())"]
  ]) {
    expect([away, await verdict(...away)]).toEqual([away, true])
  }
})
