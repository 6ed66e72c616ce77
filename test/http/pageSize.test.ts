/** A page of large rows ends at about 1 MiB, so that reading it does not stop the event loop for other tenants. Decision D-1. */
import { beforeAll, expect, test } from "bun:test"
import { type DeliveryRow, delivery, type EventRow, event, insertDeliveries, insertEvents } from "../events/log/eventRows.ts"
import { signedIn, type Visitor } from "../portal/client.ts"
import { useApi } from "../support/api.ts"
import type { Answer } from "../support/app.ts"
import { smallest, user, vault } from "../support/records.ts"

const app = useApi()
const ROWS = 120
const PAGE_BYTES = 1_048_576
const path = (suffix: string) => `/v1/webhooks/whs_1/${suffix}`

const ofDelivery =
  "id eventId webhookId sequence kind status attempts nextAttemptAt heldBecause failureReason replayedFromDeliveryId recoveryId deliveredAt createdAt"

const ofKey =
  "id userId label hint scopes vaultIds ipAllowlist expiresAt createdAt lastUsedAt lastUsedAddress revokedAt revokedReason userName"

/** Lists whose rows have many ids, lines or attempts, those of the portal under /api, and the fields of a row in the order of the contract. */
const lists: Readonly<Record<string, string>> = {
  "/v1/webhooks":
    "id url description status disabledReason disabledAt entityIds eventKinds vaultIds notificationEmail headers oauth previousSecretExpiresAt createdAt updatedAt",
  "/v1/audit-log?action=webhook.created": "id at actor action target clientAddress requestId changes",
  "/v1/audit-log?actor=user_1": "id at actor action target clientAddress requestId changes",
  "/v1/vaults/vault_a/statements": "vaultId date revision sealedAt previousHash hash assets jws",
  [path("recoveries")]:
    "id webhookId status since until eventKinds vaultIds include ratePerSecond progress createdAt updatedAt completedAt",
  [path("deliveries")]: ofDelivery,
  [path("deliveries?status=DELIVERED")]: ofDelivery,
  // Every second one is hidden.
  "/v1/webhooks/whs_2/deliveries": ofDelivery,
  "/api/keys?revoked=true": ofKey,
  "/api/keys-of-others": ofKey
}

let key = ""
let visitor: Visitor

/** Deliveries with as many attempts as they have by default, each with the longest snippet. */
const sendInFull = async (rows: ReadonlyArray<DeliveryRow>) => {
  await insertDeliveries(app, rows)
  await app.sql(
    `INSERT INTO delivery_attempts (delivery_id, number, at, result, http_status, body_snippet, organization_id, webhook_id, process_id)
     SELECT id, n, created_at, '5xx', 500, repeat('x', 1024), organization_id, webhook_id, 'gone' FROM deliveries, generate_series(1, 11) n
     WHERE id = ANY($1::text[])`,
    [rows.map(({ id }) => id)]
  )
}

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    vault("vault_b", "entity_a"),
    user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" }),
    user("user_b", "org_a", [])
  ])
  key = (await app.key("user_a")).secret
  visitor = await signedIn(app, "user_a")
  // As many ids as a webhook may have, of a usual length.
  const ids = "(SELECT array_agg('vault_' || md5((v * n)::text)) FROM generate_series(1, 1000) v)"
  await app.insert(`
    INSERT INTO api_keys (id, user_id, label, hint, secret_hash, scopes, vault_ids, ip_allowlist, created_at, revoked_at, revoked_reason)
    SELECT 'key_' || u.id || n, u.id, '"é' || chr(1), 'x…y', sha256((u.id || n)::bytea), '{vault:read,webhook:read}', CASE WHEN n > 1 THEN ${ids} END,
      '{192.0.2.0/24,::1/128}', now() + n * interval '1 ms', CASE WHEN u.id = 'user_a' THEN now() END, CASE WHEN u.id = 'user_a' THEN 'revoked' END
    FROM users u, generate_series(1, ${ROWS}) n;
    INSERT INTO webhooks (id, organization_id, url, description, status, disabled_reason, disabled_at, event_kinds, vault_ids,
      notification_email, header_names, oauth, gateway_credentials, created_at)
    SELECT 'whs_' || n, 'org_a', 'https://hooks.example.com/', '"é' || chr(1), 'DISABLED', 'MANUAL', now(), '{transaction.pending,balance.updated}',
      CASE WHEN n > 1 THEN ${ids} END, 'ops@example.com', '{X-One,X-Two}',
      '{"scope": null, "audience": null, "clientId": "custody", "tokenUrl": "https://login.example.com/", "clientAuthentication": "basic"}', '\\x00',
      now() + n * interval '1 ms' FROM generate_series(1, ${ROWS}) n;
    INSERT INTO webhook_entities (webhook_id, entity_id, organization_id, created_at, status)
      SELECT id, 'entity_a', organization_id, created_at, status FROM webhooks ON CONFLICT DO NOTHING;
    INSERT INTO audit_log (id, organization_id, at, actor_type, actor_id, user_id, action, target_type, target_id, changes)
    SELECT 'aud_' || n, 'org_a', now() + n * interval '1 ms', 'key', 'key_1', 'user_1', 'webhook.created', 'webhook', 'whs_1',
      '{"vaultIds":{"old":null,"new":' || to_json(${ids})::text || '}}' FROM generate_series(1, ${ROWS}) n;
    INSERT INTO statement_chains (vault_id, first_date, next_date) VALUES ('vault_a', '2023-01-01', '2024-01-01') ON CONFLICT DO NOTHING;
    INSERT INTO statements (vault_id, date, revision, sealed_at, hash, assets, jws)
    SELECT 'vault_a', date '2023-01-01' + n, 1, now(), repeat('0', 64), '["' || repeat('x', CASE WHEN n = 100 THEN 2000000 ELSE 30000 END) || '"]', ''
    FROM generate_series(1, ${ROWS}) n;
    INSERT INTO recoveries (id, webhook_id, organization_id, status, since, until, vault_ids, include, position, last_position, created_at, completed_at)
    SELECT 'rec_' || n, 'whs_1', 'org_a', 'COMPLETED', now(), now(), ${ids}, '{FAILED}', 0, 0, now() + n * interval '1 ms', now()
    FROM generate_series(1, ${ROWS}) n`)
  const from = Date.now()
  const ofVault = (vaultId: string) => Array.from({ length: ROWS }, (_, n) => event({ at: from + n, vaultId }))
  const [seen, hidden] = [ofVault("vault_a"), ofVault("vault_b")]
  const sent = (webhookId: string) => (row: EventRow) =>
    delivery({ at: Date.parse(row.occurredAt), eventId: row.id, webhookId, vaultId: row.vaultId })
  await insertEvents(app, [...seen, ...hidden])
  await sendInFull([...seen.map(sent("whs_1")), ...[...seen, ...hidden].map(sent("whs_2"))])
})

for (const [list, fields] of Object.entries(lists))
  test(`the pages of ${list} have about 1 MiB, and together every row once`, async () => {
    const rows: Array<{ readonly [field: string]: unknown }> = []
    let cursor: string | null = ""
    while (cursor !== null) {
      const path = `${list}${list.includes("?") ? "&" : "?"}limit=500${cursor === "" ? "" : `&cursor=${cursor}`}`
      const page: Answer = await (list.startsWith("/api") ? visitor.get(path) : app.get(path, key))
      expect([page.status, page.text.length < 1.2 * PAGE_BYTES || page.json.data.length === 1]).toEqual([200, true])
      // Without spaces, as all responses.
      expect(page.text === JSON.stringify(page.json)).toBe(true)
      cursor = page.json.pagination.nextCursor
      // No more pages than needed.
      if (cursor !== null) expect(page.text.length > PAGE_BYTES / 2 || list.includes("statements")).toBe(true)
      rows.push(...page.json.data)
    }
    expect(rows.every((row) => Object.keys(row).join(" ") === fields)).toBe(true)
    const placed = rows.map((row) => String(row["date"] ?? row["at"] ?? row["createdAt"]))
    expect([placed.length, new Set(placed).size, placed.toSorted().toReversed()]).toEqual([ROWS, ROWS, placed])
  })

test("the deliveries of an event are one answer, whatever their size", async () => {
  const [first] = (await app.get(path("deliveries?limit=1"), key)).json.data
  const again = Array.from({ length: ROWS }, () => delivery({ eventId: first.eventId, webhookId: "whs_3", vaultId: "vault_a" }))
  await sendInFull(again)
  expect((await app.get(`/v1/webhook-events/${first.eventId}/deliveries`, key)).json.data.length).toBe(ROWS + 2)
})

test("a webhook in the list is as it is alone", async () => {
  const { health: _, ...alone } = (await app.get("/v1/webhooks/whs_2", key)).json
  const found = (await app.walk("/v1/webhooks", key)).find(({ id }: { id: string }) => id === "whs_2")
  expect(JSON.stringify(found)).toBe(JSON.stringify(alone))
})
