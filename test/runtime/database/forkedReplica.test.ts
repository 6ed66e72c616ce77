/**
 * Decision D-58 after a failover: a read replica that had replayed more than the server that became the primary shows no list,
 * also not when the primary's log has passed its position.
 */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as path from "node:path"
import { cli, useApp } from "../../support/app.ts"
import { PostgresServer } from "../../support/postgres.ts"
import { Proxy } from "../../support/proxy.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction, user } from "../../support/records.ts"
import { query, Replica } from "../../support/replica.ts"

const primary = new PostgresServer()
/** Becomes the primary, and is left behind. */
const next = new Replica(primary)
const forked = new (class extends Replica {
  override get folder() {
    return path.join(primary.folder, "forked")
  }
})(primary)
const app = useApp([])
let address: Proxy,
  key = ""

beforeAll(async () => {
  await primary.start()
  address = new Proxy(primary.url)
  await address.open()
  app.databaseUrl = primary.url
  app.env = { ...app.env, DATABASE_URL: address.url }
  expect((await cli(["migrate"], { ...app.env, DATABASE_URL: primary.url })).code).toBe(0)
  await next.start()
  await forked.start()
  app.env = { ...app.env, DATABASE_READ_URL: forked.url }
  // Processes with rate limits have heartbeats.
  app.main = await app.start(["api"], { RATE_LIMIT: "1000/1s burst 1000" })
  await app.feed([...smallest(), user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" }), transaction("vault_a", 1)])
  key = (await app.key("user_a")).secret
})
afterAll(async () => {
  await address.cut()
  await next.stop()
  await forked.stop()
  await primary.close()
})

const hashes = async () => {
  const { json, status } = await app.get("/v1/vaults/vault_a/transactions", key)
  return [status, ...(json?.data ?? []).map(({ hash }: { readonly hash: string }) => Number(hash)).sort()]
}
const position = async (url: string, of: string) =>
  Number((await query(url, `SELECT (${of} - '0/0')::float8 AS position`))[0]?.["position"])
const replica = async (): Promise<string> => {
  const { dependencies } = (await (await fetch(`${app.main?.platformUrl}/health/ready`)).json()) as { dependencies: { replica: string } }
  return dependencies.replica
}

test("a replica that a failover left on the old timeline shows no list", async () => {
  await until("the replica", async () => (await replica()) === "ok")
  await next.stop()
  // What only the forked replica gets.
  await app.feed([transaction("vault_a", 6)])
  await query(primary.url, "CREATE TABLE lost AS SELECT repeat(md5(g::text), 8) FROM generate_series(1, 8000) g")
  const end = await position(primary.url, "pg_current_wal_flush_lsn()")
  await until("the forked replica", async () => (await position(forked.url, "pg_last_wal_replay_lsn()")) >= end)
  await address.fail(async () => {
    await primary.kill()
    await next.start()
    await query(next.url, "SELECT pg_promote()")
    return next.url
  })
  app.databaseUrl = next.url
  await until("a record", async () => (await app.records([transaction("vault_a", 2)]).catch(() => ({ status: 0 }))).status === 200)
  expect(await hashes()).toEqual([200, 1, 2])
  await query(next.url, "CREATE TABLE more (text text)")
  // Until long after its log has passed the position of the replica.
  const isPast = async () =>
    (await position(next.url, "pg_current_wal_insert_lsn()")) > (await position(forked.url, "pg_last_wal_replay_lsn()"))
  for (let reads = 0; reads < 40; ) {
    await query(next.url, "INSERT INTO more SELECT repeat(md5(g::text), 8) FROM generate_series(1, 400) g")
    if (await isPast()) reads++
    expect(await hashes()).toEqual([200, 1, 2])
    await Bun.sleep(100)
  }
  expect(await replica()).toStartWith("The read replica is not used.")
}, 120_000)
