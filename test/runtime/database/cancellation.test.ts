/** Interrupting a fiber cancels its statement, and never one that runs on the same connection later. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Fiber, ManagedRuntime, Redacted } from "effect"
import pg from "pg"
import * as Database from "../../../src/runtime/database/Database.ts"
import { Proxy } from "../../support/proxy.ts"
import { until } from "../../support/receiver.ts"
import { dropDatabase, freshDatabase } from "../../support/servers.ts"

let url = "",
  other: pg.Client,
  runtime: ManagedRuntime.ManagedRuntime<SqlClient.SqlClient, unknown>

beforeAll(async () => {
  url = await freshDatabase()
  other = new pg.Client({ connectionString: url })
  await other.connect()
  runtime = ManagedRuntime.make(Database.layer(Redacted.make(url), { ...Database.pools.command, connections: 2 }))
})
afterAll(async () => {
  await runtime.dispose()
  await other.end()
  await dropDatabase(url)
})

/** Runs a statement that waits until the lock is given back. */
const waitsFor = (lock: number) =>
  runtime.runFork(
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT pg_advisory_xact_lock_shared(${lock}::bigint), ${lock}::int AS lock`)
  )
const waiting = async () =>
  (
    await other.query(
      "SELECT objid::int AS lock FROM pg_locks JOIN pg_database d ON d.oid = database WHERE d.datname = current_database() AND locktype = 'advisory' AND NOT granted ORDER BY objid"
    )
  ).rows.map(({ lock }) => lock)
const waitFor = (...locks: ReadonlyArray<number>) =>
  until(`statements that wait for ${locks}`, async () => String(await waiting()) === String(locks))
const take = (lock: number) => other.query("SELECT pg_advisory_lock($1)", [lock])
const giveBack = (lock: number) => other.query("SELECT pg_advisory_unlock($1)", [lock])

test("the statement of an interrupted fiber is canceled", async () => {
  await take(1)
  const fiber = waitsFor(1)
  await waitFor(1)
  await runtime.runPromise(Fiber.interrupt(fiber))
  await waitFor()
  await giveBack(1)
})

test("a cancellation that waits for a connection reaches no statement that follows the interrupted one", async () => {
  for (const lock of [1, 2, 3]) await take(lock)
  const interrupted = waitsFor(1),
    neighbor = waitsFor(2)
  await waitFor(1, 2)
  // Both connections are in use: the next statement waits for one, and behind it the cancellation.
  const next = waitsFor(3)
  await Bun.sleep(0)
  const interruption = runtime.runPromise(Fiber.interrupt(interrupted))
  await Bun.sleep(0)
  await giveBack(1)
  await waitFor(2, 3)
  // Now the cancellation has a connection.
  await giveBack(2)
  await runtime.runPromise(Fiber.join(neighbor))
  await interruption
  expect(await waiting()).toEqual([3])
  await giveBack(3)
  expect(await runtime.runPromise(Fiber.join(next))).toMatchObject([{ lock: 3 }])
})

test("a statement that ends while it is being canceled keeps its connection until it was", async () => {
  // The next statement follows at once on the connection of each interrupted one, which ends at about the same time.
  const sleep = (seconds: number) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT pg_sleep(${seconds}), 1 AS one`)
  for (let round = 0; round < 100; round++) {
    const fiber = runtime.runFork(sleep(0.005))
    await Bun.sleep(4 + (round % 5) / 2)
    const interruption = runtime.runPromise(Fiber.interrupt(fiber))
    const answers = await runtime.runPromise(Effect.all([sleep(0.001), sleep(0.001), sleep(0.001)], { concurrency: 3 }))
    expect(answers.flat().map((row) => (row as { readonly one: number }).one)).toEqual([1, 1, 1])
    await interruption
  }
})

test("a connection that is lost while it sends a cancellation only fails", async () => {
  const proxy = new Proxy(url)
  await proxy.open()
  const behind = ManagedRuntime.make(Database.layer(Redacted.make(proxy.url), { ...Database.pools.command, connections: 2 }))
  const run = (text: string) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(text))
  try {
    await behind.runPromise(Effect.all([run("SELECT pg_sleep(0.1)"), run("SELECT pg_sleep(0.1)")], { concurrency: 2 }))
    await take(4)
    const fiber = behind.runFork(run("SELECT pg_advisory_xact_lock_shared(4)"))
    await waitFor(4)
    proxy.silence()
    const interruption = behind.runPromise(Fiber.interrupt(fiber))
    // The cancellation is on its way on the other connection.
    await Bun.sleep(50)
    await proxy.cut()
    await interruption
    await giveBack(4)
    await proxy.open()
    expect(await behind.runPromise(run("SELECT 1 AS one"))).toEqual([{ one: 1 }])
  } finally {
    await behind.dispose()
    await proxy.cut()
  }
})
