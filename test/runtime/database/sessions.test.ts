/** Every pool has the isolation level, time zone and form of dates of the program, whatever its role and database default to. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { PortalPool, layer as portal } from "../../../src/portal/server/PortalPool.ts"
import * as Database from "../../../src/runtime/database/Database.ts"
import { dropDatabase, freshDatabase } from "../../support/servers.ts"

let url = ""
beforeAll(async () => {
  url = await freshDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const database = new URL(url).pathname.slice(1)
  await client.query(`ALTER DATABASE "${database}" SET default_transaction_isolation = 'repeatable read'`)
  await client.query(`ALTER DATABASE "${database}" SET timezone = 'Asia/Tokyo'`)
  await client.query(`ALTER DATABASE "${database}" SET datestyle = 'German'`)
  await client.end()
})
afterAll(() => dropDatabase(url))

const settings = "SELECT current_setting('transaction_isolation') AS isolation, current_setting('timezone') AS zone, now()"

test("transactions of every pool are read committed, in UTC, with dates in ISO", async () => {
  const same = [{ isolation: "read committed", zone: "UTC", now: expect.stringMatching(/^20\d\d-\d\d-\d\dT/) }]
  for (const pool of Object.values(Database.pools)) {
    const read = Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(sql.unsafe(settings)))
    const rows = await Effect.runPromise(Effect.provide(read, Database.layer(Redacted.make(url), pool)))
    expect([pool.name, rows]).toEqual([pool.name, same])
  }
  const read = Effect.flatMap(PortalPool, (pool) => Effect.promise(() => pool.query(settings)))
  const { rows } = await Effect.runPromise(Effect.provide(read, portal(Redacted.make(url))))
  expect(rows).toEqual([{ ...same[0], now: expect.any(Date) }])
})

test("a timestamp that is not in UTC is an error, and no other time", async () => {
  const read = Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.withTransaction(Effect.zipRight(sql.unsafe("SET LOCAL timezone = 'Asia/Tokyo'"), sql.unsafe("SELECT now() AS now")))
  )
  const failed = Effect.map(Effect.flip(read), ({ cause }) => String(cause))
  expect(await Effect.runPromise(Effect.provide(failed, Database.layer(Redacted.make(url), Database.pools.command)))).toContain(
    "Postgres did not answer in UTC"
  )
})
