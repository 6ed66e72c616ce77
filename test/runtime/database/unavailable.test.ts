/** An error in a statement is never mistaken for an unreachable Postgres, whatever words its message contains. */
import { expect, test } from "bun:test"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Redacted } from "effect"
import * as Database from "../../../src/runtime/database/Database.ts"
import { isUnavailable } from "../../../src/runtime/database/unavailable.ts"
import { freshDatabase } from "../../support/servers.ts"

test("Postgres errors are classified by code, and a lost connection is no defect", async () => {
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
    // The rollback fails too, and is not a defect: callers must see that a retry can succeed.
    ["SELECT pg_terminate_backend(pg_backend_pid())"]
  ]) {
    expect([away, await verdict(...away)]).toEqual([away, true])
  }
})
