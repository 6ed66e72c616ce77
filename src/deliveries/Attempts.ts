/**
 * The attempt row. It is written before the request is sent and finished with the outcome, so that every request that
 * a receiver saw has exactly one row, also when the sender was killed in between: the next attempt closes what its
 * predecessor left open as `interrupted` and takes the next number. Recording is idempotent per delivery and number.
 *
 * Beginnings, and successes, are written for many deliveries in one statement; a failure is a transaction of its own,
 * because it may disable the webhook. Decisions D-21, D-22, D-23.
 */
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { batched } from "../database/Batch.ts"
import { oldestId } from "../events/EventsRepo.ts"
import type { Answer } from "./post.ts"

/** A delivery at the beginning of an attempt. */
export interface Begun {
  readonly id: string
  readonly status: string
  readonly webhookId: string
  readonly eventId: string
  readonly kind: string
  readonly url: string
  readonly active: boolean
  readonly deleted: boolean
  /** The envelope's text; null when the event is gone. */
  readonly payload: string | null
  /** Ciphertexts of the live secrets, newest first. */
  readonly secrets: ReadonlyArray<Buffer>
  /** The number of the attempt that was begun; null when none was. */
  readonly number: number | null
  /** The highest number so far, the open ones included. */
  readonly last: number
}

/** The outcome of an attempt. */
export interface Recorded {
  readonly deliveryId: string
  readonly webhookId: string
  readonly number: number
  readonly answer: Answer
}

/** One of the shards of the counters, by process: two processes seldom wait for one another. */
const SHARD = process.pid % 8

export class Attempts extends Effect.Service<Attempts>()("custody/Attempts", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const beginMany = (items: ReadonlyArray<{ readonly id: string; readonly limit: number }>) =>
      Effect.map(
        sql<Begun>`
          WITH asked AS MATERIALIZED (
            SELECT d.id, d.status, d.webhook_id, d.event_id, d.kind, w.url, w.status = 'ACTIVE' AS active, w.deleted_at IS NOT NULL AS deleted, a.max
            FROM unnest(${items.map((_) => _.id)}::text[], ${items.map((_) => _.limit)}::int[]) AS a (id, max)
            JOIN deliveries d ON d.id = a.id JOIN webhooks w ON w.id = d.webhook_id
          ), numbers AS MATERIALIZED (
            SELECT a.id, coalesce((SELECT max(t.number) FROM delivery_attempts t WHERE t.delivery_id = a.id), 0) AS last FROM asked a
          ), closed AS (
            UPDATE delivery_attempts t SET result = 'interrupted', latency_ms = greatest(0, extract(epoch FROM clock_timestamp() - t.at) * 1000)::int
            FROM asked a WHERE t.delivery_id = a.id AND t.result IS NULL AND a.status IN ('PENDING', 'RETRYING')
          ), begun AS (
            INSERT INTO delivery_attempts (delivery_id, number, at)
            SELECT a.id, n.last + 1, clock_timestamp() FROM asked a JOIN numbers n ON n.id = a.id
            WHERE a.status IN ('PENDING', 'RETRYING') AND a.active AND n.last < a.max
            ON CONFLICT (delivery_id, number) DO NOTHING
            RETURNING delivery_id, number
          )
          SELECT a.id, a.status, a.webhook_id AS "webhookId", a.event_id AS "eventId", a.kind, a.url, a.active, a.deleted, n.last, b.number,
            (SELECT e.payload FROM events e WHERE e.id = a.event_id) AS payload,
            ARRAY(SELECT s.ciphertext FROM webhook_secrets s WHERE s.webhook_id = a.webhook_id
              AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp()) ORDER BY s.id DESC) AS secrets
          FROM asked a JOIN numbers n ON n.id = a.id LEFT JOIN begun b ON b.delivery_id = a.id`,
        (rows) => {
          const byId = new Map(rows.map((row) => [row.id, row]))
          return items.map(({ id }) => byId.get(id) ?? null)
        }
      )

    const succeedMany = (items: ReadonlyArray<Recorded>) =>
      Effect.as(
        sql`
          WITH r AS MATERIALIZED (
            SELECT * FROM unnest(${items.map((_) => _.deliveryId)}::text[], ${items.map((_) => _.webhookId)}::text[],
              ${items.map((_) => _.number)}::int[], ${items.map((_) => _.answer.httpStatus)}::int[],
              ${items.map((_) => _.answer.latencyMs)}::int[], ${items.map((_) => _.answer.bodySnippet)}::text[])
              AS r (delivery_id, webhook_id, number, http_status, latency_ms, body_snippet)
          ), attempts AS (
            UPDATE delivery_attempts t SET result = '2xx', http_status = r.http_status, latency_ms = r.latency_ms, body_snippet = r.body_snippet
            FROM r WHERE t.delivery_id = r.delivery_id AND t.number = r.number
          ), done AS (
            UPDATE deliveries d SET status = 'DELIVERED', delivered_at = clock_timestamp(), next_attempt_at = NULL, failure_reason = NULL
            FROM r WHERE d.id = r.delivery_id AND d.status <> 'DELIVERED' RETURNING d.webhook_id
          ), healed AS (
            UPDATE webhook_health h SET consecutive_failures = 0, failing_since = NULL, first_failed_delivery = NULL,
              several_deliveries = false, gone_at = NULL
            WHERE h.webhook_id IN (SELECT r.webhook_id FROM r) AND h.consecutive_failures > 0
          )
          INSERT INTO webhook_counters AS c (webhook_id, slot, shard, delivered, last_success_at)
          SELECT r.webhook_id, date_bin('10 minutes', clock_timestamp(), 'epoch'), ${SHARD},
            (SELECT count(*) FROM done WHERE done.webhook_id = r.webhook_id), clock_timestamp()
          FROM r GROUP BY r.webhook_id ORDER BY r.webhook_id
          ON CONFLICT (webhook_id, slot, shard) DO UPDATE SET delivered = c.delivered + excluded.delivered, last_success_at = excluded.last_success_at`,
        items.map(() => true)
      )

    const begin = yield* batched(beginMany, { size: 100, parallel: 4 })
    const succeed = yield* batched(succeedMany, { size: 100, parallel: 4 })

    return {
      /**
       * Begins an attempt where the delivery still waits, its webhook is active and fewer than `limit` attempts were
       * made; `number` says whether it did. Null when there is no such delivery.
       */
      begin: (id: string, limit: number) => begin({ id, limit }),

      /** Records a 2xx: the attempt, the delivery, the counters, the end of a streak of failures. */
      succeed,

      /** Ends what waits as CANCELED; nothing when it has ended already. */
      cancel: (deliveryId: string, reason: "WEBHOOK_DISABLED" | "WEBHOOK_DELETED" | "MANUAL") => sql`
        UPDATE deliveries SET status = 'CANCELED', failure_reason = ${reason}, next_attempt_at = NULL
        WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING')`,

      /** Statuses of deliveries that ended, or wait. */
      status: (deliveryId: string) =>
        Effect.map(sql<{ status: string }>`SELECT status FROM deliveries WHERE id = ${deliveryId}`, (rows) => rows[0]?.status),

      /** Ids of deliveries whose next attempt is overdue by more than a minute: their workflows may be lost. */
      overdue: (seconds: number, limit: number) =>
        sql<{ id: string; kind: string; webhookId: string; eventId: string; entityId: string; url: string }>`
          SELECT d.id, d.kind, d.webhook_id AS "webhookId", d.event_id AS "eventId", e.entity_id AS "entityId", w.url
          FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id JOIN events e ON e.id = d.event_id
          WHERE d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at < clock_timestamp() - make_interval(secs => ${seconds})
            AND d.id >= ${oldestId("del")}
          ORDER BY d.next_attempt_at LIMIT ${limit}`
    }
  })
}) {
  static readonly layer = this.Default
}
