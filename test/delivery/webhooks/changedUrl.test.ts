/**
 * An owner who does not see every vault changes a webhook's URL: no waiting delivery of another vault is sent to the new
 * URL, even if it is locked or being written at that moment. Decision D-8.
 */
import { beforeAll, expect, test } from "bun:test"
import pg from "pg"
import { useApp } from "../../support/app.ts"
import { type Receiver, receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { smallest, transaction, user, vault } from "../../support/records.ts"
import { create, patch, short } from "../../support/webhookFixtures.ts"

const receiver: Receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({
  ...receiverEnv(receiver),
  WEBHOOK_RETRY_SCHEDULE: "0s,2s,2s,2s,2s,2s",
  WEBHOOK_HOLD: "off"
}))
/** An owner who sees `vault_a` only, and one who also sees `vault_b`. */
let partial = "",
  whole = ""

beforeAll(async () => {
  await app.feed(
    [
      ...smallest(),
      vault("vault_b", "entity_a"),
      user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" }),
      user("user_w", "org_a", ["vault_a", "vault_b"], { organizationRole: "owner" })
    ],
    { "x-record-events": "none" }
  )
  partial = (await app.key("user_a")).secret
  whole = (await app.key("user_w")).secret
})

const deliveries = (webhookId: string) =>
  app.sql(
    `SELECT d.id, e.vault_id AS vault, d.status, d.failure_reason AS reason FROM deliveries d JOIN events e ON e.id = d.event_id
     WHERE d.webhook_id = $1 ORDER BY e.vault_id, d.id`,
    [webhookId]
  )
const vaultsAt = (path: string) => receiver.to(path).map(({ body }) => JSON.parse(body).data.vaultId)

test("a delivery that is locked while the URL changes is canceled when it is due", async () => {
  receiver.on("/first", () => new Response("later", { status: 503 }))
  const { id } = await create(app, whole, { url: receiver.url("/first"), eventKinds: ["transaction.confirmed"] })
  await app.feed([transaction("vault_a", 1), transaction("vault_b", 2)])
  await until("the first attempts", () => receiver.to("/first").length >= 2)
  const client = new pg.Client({ connectionString: app.databaseUrl })
  await client.connect()
  try {
    await client.query("BEGIN")
    await client.query("SELECT 1 FROM deliveries WHERE webhook_id = $1 FOR UPDATE", [id])
    expect(short(await patch(app, partial, id, { vaultIds: ["vault_a"], url: receiver.url("/mine") }))).toBe("200")
  } finally {
    await client.query("ROLLBACK")
    await client.end()
  }
  await until("the end of both", async () => (await deliveries(id)).every(({ status }) => status === "DELIVERED" || status === "CANCELED"))
  expect((await deliveries(id)).map(({ reason, status, vault: of }) => [of, status, reason])).toEqual([
    ["vault_a", "DELIVERED", null],
    ["vault_b", "CANCELED", "MANUAL"]
  ])
  expect(vaultsAt("/mine")).toEqual(["vault_a"])
})

test("a delivery written by the old filters is not sent to the new URL", async () => {
  const { id } = await create(app, whole, { url: receiver.url("/before"), eventKinds: ["transaction.confirmed"] })
  await app.feed([transaction("vault_a", 11)])
  await until("the first delivery", () => receiver.to("/before").length === 1)
  const client = new pg.Client({ connectionString: app.databaseUrl })
  await client.connect()
  try {
    // The dispatcher has read the filters, and cannot number its delivery yet.
    await client.query("BEGIN")
    await client.query("SELECT 1 FROM webhook_sequences WHERE webhook_id = $1 FOR UPDATE", [id])
    await app.feed([transaction("vault_b", 12)])
    await until(
      "a dispatcher that waits",
      async () =>
        (
          await app.sql(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%webhook_sequences%'"
          )
        ).length > 0
    )
    expect(short(await patch(app, partial, id, { vaultIds: ["vault_a"], url: receiver.url("/after") }))).toBe("200")
  } finally {
    await client.query("ROLLBACK")
    await client.end()
  }
  await until("the delivery", async () => (await deliveries(id)).some(({ status, vault: of }) => of === "vault_b" && status === "CANCELED"))
  await app.feed([transaction("vault_a", 13)])
  await until("what is covered", () => receiver.to("/after").length > 0)
  expect(vaultsAt("/after")).toEqual(["vault_a"])
  expect((await deliveries(id)).map(({ reason, vault: of }) => [of, reason])).toEqual([
    ["vault_a", null],
    ["vault_a", null],
    ["vault_b", "MANUAL"]
  ])
})

test("a key's new URL gets no waiting event without a vault that it cannot see", async () => {
  const limited = (await app.key("user_w", { vaultIds: ["vault_a"] })).secret
  const other = await create(app, whole, { url: receiver.url("/other"), status: "DISABLED" })
  const { id } = await create(app, whole, {
    url: receiver.url("/seen"),
    vaultIds: ["vault_a"],
    eventKinds: ["transaction.confirmed", "webhook.secret_rotated"],
    status: "PAUSED"
  })
  await app.request("POST", `/v1/webhooks/${other.id}/rotate-secret`, { key: whole, body: {} })
  await app.feed([transaction("vault_a", 31)])
  await until("the held deliveries", async () => (await deliveries(id)).filter(({ status }) => status === "HELD").length === 2)
  // Many more wait: the change takes no longer.
  await app.sql(
    `WITH numbered AS (UPDATE webhook_sequences SET last = last + 40000 WHERE webhook_id = $1 RETURNING last)
     INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, kind, status)
     SELECT d.id || n, d.event_id, $1, d.organization_id, last - 40000 + n, d.kind, 'HELD'
     FROM deliveries d, numbered, generate_series(1, 40000) n WHERE d.webhook_id = $1 AND d.vault_id IS NULL`,
    [id]
  )
  const begun = performance.now()
  expect(
    short(await patch(app, limited, id, { url: receiver.url("/unseen"), eventKinds: ["transaction.confirmed", "balance.updated"] }))
  ).toBe("200")
  expect(performance.now() - begun).toBeLessThan(2_000)
  await app.sql("DELETE FROM deliveries WHERE webhook_id = $1 AND sequence > 2", [id])
  expect(short(await patch(app, whole, id, { status: "ACTIVE" }))).toBe("200")
  await until("the end of both", async () => (await deliveries(id)).every(({ status }) => status !== "HELD"))
  expect((await deliveries(id)).map(({ reason, status, vault: of }) => [of, status, reason])).toEqual([
    ["vault_a", "DELIVERED", null],
    [null, "CANCELED", "MANUAL"]
  ])
  expect(vaultsAt("/unseen")).toEqual(["vault_a"])
})

test("deliveries that a paused webhook held are canceled in their turn", async () => {
  const { id } = await create(app, whole, { url: receiver.url("/paused"), eventKinds: ["transaction.confirmed"], status: "PAUSED" })
  await app.feed([transaction("vault_a", 21), transaction("vault_b", 22)])
  await until("the held deliveries", async () => (await deliveries(id)).filter(({ status }) => status === "HELD").length === 2)
  // Postgres' clock was set back since then.
  await app.sql("UPDATE deliveries SET created_at = created_at + interval '1 hour' WHERE webhook_id = $1", [id])
  expect(short(await patch(app, partial, id, { vaultIds: ["vault_a"], url: receiver.url("/resumed"), status: "ACTIVE" }))).toBe("200")
  await until("the end of both", async () => (await deliveries(id)).every(({ status }) => status !== "HELD"))
  expect((await deliveries(id)).map(({ reason, status, vault: of }) => [of, status, reason])).toEqual([
    ["vault_a", "DELIVERED", null],
    ["vault_b", "CANCELED", "MANUAL"]
  ])
  expect([vaultsAt("/paused"), vaultsAt("/resumed")]).toEqual([[], ["vault_a"]])
})
