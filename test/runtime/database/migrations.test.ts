/**
 * Migrations of a database that running processes use: none of them blocks a table for long, or ends in a deadlock. And databases
 * of other versions.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Layer, Redacted } from "effect"
import pg from "pg"
import * as Database from "../../../src/runtime/database/Database.ts"
import { apply, compare, type Steps, steps } from "../../../src/runtime/database/Migrations.ts"
import { App, cli } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { freshDatabase, settingsOf } from "../../support/servers.ts"

const app = new App()
const clients: Array<pg.Client> = []
const connect = async (url = app.databaseUrl) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  clients.push(client)
  return client
}

beforeAll(() => app.open([], {}))
afterAll(async () => {
  await Promise.all(clients.map((client) => client.end()))
  await app.close()
})

test("a migration waits for a running transaction and lets others pass meanwhile", async () => {
  const statement = (text: string) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(text))
  const more: Steps = {
    "0002_attempts": statement("ALTER TABLE delivery_attempts ADD COLUMN first integer"),
    "0003_organizations": statement("ALTER TABLE organizations ADD COLUMN second integer")
  }
  const [holder, other] = [await connect(), await connect()]
  await holder.query("BEGIN")
  await holder.query("SELECT count(*) FROM delivery_attempts")
  const migrating = Effect.runPromise(
    apply({ ...steps, ...more }, Object.keys(more)).pipe(
      Effect.provide(Database.layer(Redacted.make(app.databaseUrl), Database.pools.command)),
      Effect.scoped
    )
  )
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
  expect(Math.max(...waits)).toBeLessThan(20_000)
  // The table that the later migration alters is free, although the first one waits.
  await holder.query("SELECT count(*) FROM organizations")
  await holder.query("COMMIT")
  expect(await migrating).toEqual([
    [2, "attempts"],
    [3, "organizations"]
  ])
  expect((await app.sql("SELECT max(migration_id) AS last FROM effect_sql_migrations"))[0]?.["last"]).toBe(3)
})

test("a process runs on a database that a newer version has migrated, and says so", async () => {
  const url = await freshDatabase()
  const client = await connect(url)
  await client.query("INSERT INTO effect_sql_migrations (migration_id, name) VALUES (9, 'later')")
  const started = await app.start(["api"], { DATABASE_URL: url })
  expect(started.output()).toContain("a newer version has migrated the database: 0009_later")
  expect(await started.end()).toBe(0)
  expect(JSON.parse((await cli(["migrate"], { ...app.env, DATABASE_URL: url })).stdout)).toEqual({ applied: [] })
})

test("a database from before 0.1 stops every command with exit code 5", async () => {
  const url = await freshDatabase()
  const client = await connect(url)
  await client.query("UPDATE effect_sql_migrations SET name = 'custody'")
  await client.query("INSERT INTO effect_sql_migrations (migration_id, name) VALUES (2, 'credentials'), (34, 'transactions_by_vault')")
  const problem = "The database was created by a version before 0.1. It cannot be used or upgraded."
  const remedy = "Drop and recreate the database that DATABASE_URL names, or name an empty one."
  const commands = [["migrate"], ["start", "--roles", "api"], ["start", "--roles", "api", "--no-migrate"], ["keys", "list"], ["doctor"]]
  const ends = await Promise.all(commands.map((command) => cli(command, { ...app.env, DATABASE_URL: url })))
  expect(ends.map(({ code }, index) => [commands[index], code])).toEqual(commands.map((command) => [command, 5]))
  for (const { stderr } of ends.slice(0, -1)) {
    expect(stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{"))).toEqual([`${problem} ${remedy}`])
  }
  expect(ends.at(-1)?.stdout.replace(/\s+/g, " ")).toContain(problem)

  // The same schema in a data directory: its folder is to be removed.
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-outdated-"))
  const database = Layer.merge(Database.layer(Redacted.make(url), Database.pools.command), settingsOf(folder))
  const embedded = await Effect.runPromise(Effect.flip(compare).pipe(Effect.provide(database), Effect.scoped))
  fs.rmSync(folder, { recursive: true })
  expect(embedded.message).toBe(`${problem} Remove the folder ${folder}; the next start creates it again.`)
})
