/** Migrations of a database that running processes use: none of them blocks a table for long, or ends in a deadlock. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Redacted } from "effect"
import pg from "pg"
import * as Database from "../../src/database/Database.ts"
import { steps } from "../../src/database/Migrations.ts"
import { App, cli } from "../support/app.ts"
import { migrateTo } from "../support/earlierSchema.ts"
import { until } from "../support/receiver.ts"

/** The last migration before one that alters `delivery_attempts`, and then one that alters `organizations`. */
const BEFORE = 26

const app = new App()
const clients: Array<pg.Client> = []
const connect = async () => {
  const client = new pg.Client({ connectionString: app.databaseUrl })
  await client.connect()
  clients.push(client)
  return client
}

const earlier = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe("DROP SCHEMA public CASCADE")
  yield* sql.unsafe("CREATE SCHEMA public")
  yield* migrateTo(BEFORE)
})

beforeAll(async () => {
  await app.open([], {})
  await Effect.runPromise(
    earlier.pipe(Effect.provide(Database.layer(Redacted.make(app.databaseUrl), Database.pools.command)), Effect.scoped)
  )
})
afterAll(async () => {
  await Promise.all(clients.map((client) => client.end()))
  await app.close()
})

test("a migration waits for a transaction of a running process, lets others pass meanwhile, and is applied after it", async () => {
  const [holder, other] = [await connect(), await connect()]
  await holder.query("BEGIN")
  await holder.query("SELECT count(*) FROM delivery_attempts")
  const migrating = cli(["migrate"], app.env)
  let over = false
  void migrating.then(() => {
    over = true
  })
  const waits: Array<number> = []
  await until("that it tries, gives up, and tries again", async () => {
    const begun = performance.now()
    await other.query("SELECT count(*) FROM delivery_attempts")
    waits.push(performance.now() - begun)
    return waits.filter((wait) => wait > 500).length === 2
  })
  expect(over).toBe(false)
  expect(Math.max(...waits)).toBeLessThan(8_000)
  // The table that a later migration alters is free, although the first one waits.
  await holder.query("SELECT count(*) FROM organizations")
  await holder.query("COMMIT")
  expect(await migrating).toMatchObject({ code: 0, stderr: "" })
  expect((await app.sql("SELECT max(migration_id) AS last FROM effect_sql_migrations"))[0]?.["last"]).toBe(
    Math.max(...Object.keys(steps).map((name) => Number(name.slice(0, 4))))
  )
})
