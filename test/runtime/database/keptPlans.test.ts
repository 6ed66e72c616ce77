/**
 * Statements of records and deliveries keep their plans while tables grow: from empty ones, which were never analyzed, and from a
 * thousand rows that were. They read as few rows afterwards. Webhooks that are disabled or deleted are not read, however many cover
 * the same entity. Architecture, What must hold 7. Decision D-29.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import { delivery, event, insertDeliveries, insertEvents } from "../../events/log/eventRows.ts"
import { useApp } from "../../support/app.ts"
import { withoutAutovacuum } from "../../support/plans.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { feedTransactions, shared, tenant } from "../../support/tenants.ts"

type Tenant = Awaited<ReturnType<typeof tenant>>

/** Rows of a large table, and transactions that are fed one by one afterwards. */
const MANY = 50_000,
  FEW = 10
/** Rows that may be read from a table and its indexes for these transactions, a new tenant and background tasks. */
const READ = 5_000
const TOKENS = [1, 2, 3].map((digit) => `0x${String(digit).padStart(40, "0")}`)

const receiver = useReceiver()

for (const [when, analyzed] of [
  ["empty tables", 0],
  ["a thousand rows", 1_000]
] as const) {
  describe(`by plans that were made for ${when}`, () => {
    const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1h" }))
    let key = "",
      webhooks: Tenant["webhooks"]

    /** Rows of a tenant as the service writes them, this many in each table that grows. */
    const fill = async (name: string, { fails, fine, paused }: Tenant["webhooks"], count: number) => {
      const of = { organizationId: `org_${name}`, entityId: `entity_${name}`, vaultId: `vault_${name}` }
      for (let done = 0; done < count; done += 10_000) {
        const rows = Array.from({ length: Math.min(10_000, count - done) }, () => event(of))
        await insertEvents(app, rows)
        for (const [webhookId, status] of [
          [fine, "DELIVERED"],
          [fails, "FAILED"],
          [paused, "CANCELED"]
        ] as const)
          await insertDeliveries(
            app,
            rows.map(({ id }) => delivery({ eventId: id, webhookId, vaultId: of.vaultId, status }))
          )
      }
      const numbers = `generate_series(1, ${count}) n`
      await app.insert(`
        INSERT INTO delivery_attempts (delivery_id, number, at, result, http_status, organization_id, webhook_id, process_id)
        SELECT id, 1, created_at, '2xx', 200, organization_id, webhook_id, 'gone' FROM deliveries WHERE webhook_id = '${fine}' ON CONFLICT DO NOTHING;
        INSERT INTO event_dispatches (event_id, matched_count)
        SELECT id, 3 FROM events WHERE organization_id = '${of.organizationId}' ON CONFLICT DO NOTHING;
        INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
        SELECT gen_random_uuid(), '${of.vaultId}', '${of.organizationId}', 'ethereum', 'hash' || n, 0, 'inbound', 'confirmed', 'ethereum/native', 1, 'a', 'b',
          timestamptz '2024-01-01' + n * interval '1 second', '{}' FROM ${numbers};
        INSERT INTO deposit_addresses (vault_id, network, address, asset_type, created_at)
        SELECT '${of.vaultId}', 'ethereum', 'address' || n, 'native', timestamptz '2024-01-01' FROM ${numbers};
        INSERT INTO webhooks (id, organization_id, url, description, status, disabled_reason, disabled_at, event_kinds, notification_email, deleted_at)
        SELECT 'whs_${name}_' || n, '${of.organizationId}', 'https://hooks.example.com/', '', 'DISABLED', 'MANUAL', now(), '{transaction.confirmed}',
          'ops@example.com', CASE WHEN n % 2 = 0 THEN now() END FROM ${numbers};
        INSERT INTO webhook_entities (webhook_id, entity_id, organization_id, created_at, status)
        SELECT id, '${of.entityId}', organization_id, created_at, CASE WHEN deleted_at IS NULL THEN status END FROM webhooks WHERE id LIKE 'whs_${name}_%';
        INSERT INTO webhook_counters (webhook_id, slot, shard, delivered)
        SELECT '${fine}', timestamptz '2024-01-01' + n * interval '10 minutes', 0, 1 FROM ${numbers};
        INSERT INTO audit_log (id, organization_id, at, actor_type, action, target_type, target_id, changes)
        SELECT 'aud_${name}_' || n, '${of.organizationId}', now(), 'service', 'webhook.created', 'webhook', 'whs_1', '{}' FROM ${numbers}`)
    }

    /** Rows read so far from each table that was filled, by sessions that have reported. */
    const rowsRead = async () => {
      await app.sql("SELECT pg_stat_force_next_flush()")
      const rows = await app.sql(`
        SELECT relname AS name, sum(read)::int AS read FROM (
          SELECT relname, seq_tup_read AS read FROM pg_stat_user_tables UNION ALL SELECT relname, idx_tup_read FROM pg_stat_user_indexes) r
        WHERE relname ~ '^(events|event_dispatches|deliveries|delivery_attempts|transactions|deposit_addresses|webhook_counters|audit_log|webhooks$|webhook_entities)'
        GROUP BY relname`)
      return new Map(rows.map(({ name, read }) => [String(name), Number(read)]))
    }

    beforeAll(async () => {
      await withoutAutovacuum(app)
      await app.feed(shared(TOKENS))
      if (analyzed > 0) {
        const { webhooks: small } = await tenant(app, receiver, "small", TOKENS[0] ?? "")
        await fill("small", small, analyzed)
        await app.sql("VACUUM ANALYZE")
      }
      // Plans the statements that a tenant needs.
      ;({ key, webhooks } = await tenant(app, receiver, "first", TOKENS[1] ?? ""))
      await fill("first", webhooks, MANY)
    })

    test("records and deliveries read as few rows once there are many", async () => {
      const before = await rowsRead()
      const newest = async (webhookId: string) => (await app.get(`/v1/webhooks/${webhookId}/deliveries?limit=1`, key)).json.data[0]?.status
      for (let count = 0; count < FEW; count++) {
        await feedTransactions(app, "first")
        for (const [webhookId, status] of [
          [webhooks.fine, "DELIVERED"],
          [webhooks.fails, "RETRYING"],
          [webhooks.paused, "HELD"]
        ] as const)
          await until(`a delivery as ${status}`, async () => (await newest(webhookId)) === status)
      }
      await tenant(app, receiver, "second", TOKENS[2] ?? "")
      // Sessions report everything when they end.
      await app.main?.end()
      const left = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'custody-%'"
      await until("the end of its sessions", async () => (await app.sql(left)).length === 0)
      const read = [...(await rowsRead())].map(([name, rows]) => [name, rows - (before.get(name) ?? 0)] as const)
      expect(read.filter(([, rows]) => rows > READ)).toEqual([])
      // They are counted.
      expect(read.filter(([name, rows]) => name.startsWith("deliveries_") && rows > FEW)).toHaveLength(1)
    })
  })
}
