/**
 * The floor of lists: `Bun.serve` and `pg` with cached plans, one look-up of the key, one query along the index,
 * `JSON.stringify`. `/events` and `/deliveries` are first pages of 20, `/event` is the one named by `id`, `/webhook` has the
 * numbers of its health. No visibility, no cursors, no limits, no errors.
 *
 * `bun bench/support/listsFloor.ts <webhook id>` prints `{ port }`.
 */
import pg from "pg"
import { hasKey } from "./floorKey.ts"

// As in any fast program: plans are cached, and read an index up to the end of a page.
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  options: "-c timezone=UTC -c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_sort=off -c jit=off",
  max: 10
})
const webhookId = process.argv[2]
const event = `SELECT e.id, e.entity_id AS "entityId", e.vault_id AS "vaultId", e.kind, e.schema_version AS "schemaVersion", e.payload,
  e.occurred_at AS "occurredAt", e.dispatched_at AS "dispatchedAt", e.created_at AS "createdAt", 0 AS "matchedCount" FROM events e`
const statements = {
  "/events": `${event} WHERE e.organization_id = 'org_bench' ORDER BY e.occurred_at DESC, e.id DESC LIMIT 20`,
  "/event": `${event} WHERE e.id = $1`,
  "/deliveries": `SELECT d.id, d.event_id AS "eventId", d.webhook_id AS "webhookId", d.sequence, d.kind, d.status, d.next_attempt_at AS "nextAttemptAt",
      d.failure_reason AS "failureReason", d.delivered_at AS "deliveredAt", d.created_at AS "createdAt",
      (SELECT json_agg(json_build_object('at', t.at, 'result', t.result, 'httpStatus', t.http_status, 'latencyMs', t.latency_ms,
        'bodySnippet', t.body_snippet, 'detail', t.detail) ORDER BY t.number) FROM delivery_attempts t WHERE t.delivery_id = d.id) AS attempts
    FROM deliveries d WHERE d.webhook_id = $1 ORDER BY d.created_at DESC, d.id DESC LIMIT 20`,
  "/webhook": `SELECT w.*, (SELECT count(*) FROM deliveries d WHERE d.webhook_id = w.id AND d.status IN ('PENDING', 'RETRYING')) AS pending,
      (SELECT json_build_object('delivered', sum(c.delivered), 'failed', sum(c.failed), 'lastSuccessAt', max(c.last_success_at)) FROM webhook_counters c
        WHERE c.webhook_id = w.id AND c.slot > clock_timestamp() - interval '24 hours') AS counters
    FROM webhooks w WHERE w.id = $1`
}
const isKnown = (path: string): path is keyof typeof statements => path in statements
const valuesOf = {
  "/events": () => [],
  "/event": (id: string | null) => [id],
  "/deliveries": () => [webhookId],
  "/webhook": () => [webhookId]
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const url = new URL(request.url)
    if (!(await hasKey(pool, request))) return new Response("", { status: 401 })
    if (!isKnown(url.pathname)) return new Response("", { status: 404 })
    const { rows } = await pool.query({
      name: url.pathname,
      text: statements[url.pathname],
      values: valuesOf[url.pathname](url.searchParams.get("id"))
    })
    for (const row of rows) if (typeof row.payload === "string") row.payload = JSON.parse(row.payload)
    return new Response(JSON.stringify({ data: rows }), { headers: { "content-type": "application/json" } })
  }
})
console.log(JSON.stringify({ port: server.port }))
