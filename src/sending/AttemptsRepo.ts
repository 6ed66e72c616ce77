/**
 * Attempt rows. A row is written before its request is sent and completed with the outcome, so every request that a
 * receiver got has exactly one row, even if the worker was killed in between: the next attempt closes the open row as
 * `interrupted` and takes the next number. Recording is idempotent per delivery and number.
 *
 * New attempts and successes of many deliveries share a statement; a failure is a separate transaction, because it may
 * disable the webhook. Decisions D-21, D-22, D-23.
 */
import { randomInt } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { batched } from "../database/Batch.ts"
import { decodeRows } from "../database/decodeRows.ts"
import { partitionsOf } from "../database/Partitions.ts"
import { cancelReason } from "../webhooks/cancelWaiting.ts"
import { holdsOf, isHeld } from "../webhooks/holds.ts"
import * as Secret from "../webhooks/signingSecret.ts"
import { AttemptStart, type AttemptStartInput } from "./AttemptStart.ts"
import type { Answer } from "./request/Answer.ts"

const decode = decodeRows(AttemptStart)
const decodeStatuses = decodeRows(Schema.Struct({ status: Schema.String }))
const decodePayloads = decodeRows(Schema.Struct({ id: Schema.String, payload: Schema.String }))
const decodeNow = decodeRows(Schema.Struct({ status: Schema.NullOr(Schema.String) }))

/**
 * Interruptions in a row after which the next attempt waits as after a failure, and after which the delivery is in
 * quarantine.
 */
export const INTERRUPTIONS = 2,
  QUARANTINE = 20

/** The outcome of an attempt. */
export interface Recorded {
  readonly deliveryId: string
  readonly webhookId: string
  readonly number: number
  readonly answer: Answer
  /** For a held delivery: whether to wake its waiting workflow. Absent otherwise. */
  readonly held?: { readonly probe: boolean; readonly wake: boolean } | undefined
}

/** The shard of the counters for this process, so that two processes seldom wait for each other. Containers share process ids. */
export const SHARD = randomInt(8)

/** Most `proxy_error` attempts kept per delivery, the latest ones: while the proxy is unavailable, there is one every half minute. */
const PROXY_ERRORS = 20

/** Whether no later attempt has begun: only then does an outcome set the next due time. */
export const lastAttempt = (sql: SqlClient.SqlClient) => (deliveryId: string, number: number) =>
  sql`NOT EXISTS (SELECT 1 FROM delivery_attempts later WHERE later.delivery_id = ${deliveryId} AND later.number > ${number})`

export class AttemptsRepo extends Effect.Service<AttemptsRepo>()("custody/AttemptsRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Payloads of events that are older than their delivery, which redelivers them. */
    const payloadsOf = (eventIds: ReadonlyArray<string>) =>
      eventIds.length === 0
        ? Effect.succeed(new Map<string, string>())
        : Effect.map(
            decodePayloads(sql`SELECT id, payload FROM events WHERE id = ANY(${eventIds}::text[])`),
            (rows) => new Map(rows.map(({ id, payload }) => [id, payload]))
          )

    const beginMany = (items: ReadonlyArray<AttemptStartInput>) => {
      const { attempts, deliveries, events, oneDay } = partitionsOf(
        sql,
        items.map(({ id }) => id)
      )
      return Effect.flatMap(
        decode(sql`
          WITH asked AS MATERIALIZED (
            SELECT d.id, d.status, d.organization_id, d.webhook_id, d.event_id, d.kind, d.sequence, w.url,
              ${cancelReason(sql)} AS cancel_as,
              ${isHeld(sql)} AS holding, w.status = 'PAUSED' AS paused, d.started, a.max, a.in_quarantine, a.held, l.last, l.last_result, l.used, l.last - l.known AS interruptions,
              CASE WHEN l.last > a.waited AND (l.last = l.known OR l.last - l.known >= ${INTERRUPTIONS}) AND l.last_result IS NOT NULL
                  AND d.next_attempt_at > clock_timestamp()
                THEN ceil(extract(epoch FROM d.next_attempt_at - clock_timestamp()) * 1000)::float8 END AS due_in
            FROM unnest(${items.map((_) => _.id)}::text[], ${items.map((_) => _.limit)}::int[], ${items.map((_) => _.after)}::int[],
              ${items.map((_) => _.inQuarantine)}::bool[], ${items.map((_) => _.held)}::bool[]) AS a (id, max, waited, in_quarantine, held)
            JOIN ${deliveries} d ON d.id = a.id JOIN webhooks w ON w.id = d.webhook_id
            CROSS JOIN LATERAL (
              SELECT coalesce(max(t.number), 0) AS last, (array_agg(t.result ORDER BY t.number DESC))[1] AS last_result,
                count(*) FILTER (WHERE t.uses_schedule AND t.result <> 'interrupted')::int AS used,
                coalesce(max(t.number) FILTER (WHERE t.result <> 'interrupted'), 0) AS known
              FROM ${attempts} t WHERE t.delivery_id = a.id) l
          ), closed AS (
            UPDATE ${attempts} t SET result = 'interrupted', latency_ms = least(2147483647, greatest(0, extract(epoch FROM clock_timestamp() - t.at) * 1000))::int
            FROM asked a WHERE t.delivery_id = a.id AND t.result IS NULL AND (a.held OR a.status <> 'HELD')
          ), retrying AS (
            UPDATE ${deliveries} d SET status = 'RETRYING' FROM asked a WHERE a.last > 0 AND a.status = 'PENDING' AND d.id = a.id AND d.status = 'PENDING'
          ), begun AS (
            INSERT INTO ${attempts} (delivery_id, number, at, organization_id)
            SELECT a.id, a.last + 1, clock_timestamp(), a.organization_id FROM asked a
            WHERE CASE WHEN a.held THEN a.status = 'HELD' AND NOT a.paused ELSE a.status IN ('PENDING', 'RETRYING') AND NOT a.holding END
              AND a.cancel_as IS NULL AND a.used < a.max AND a.due_in IS NULL
              AND (a.interruptions < ${INTERRUPTIONS} OR a.last_result IS NOT NULL) AND (a.interruptions < ${QUARANTINE} OR a.in_quarantine)
            ON CONFLICT (delivery_id, number) DO NOTHING
            RETURNING delivery_id, number
          )
          SELECT a.id, a.status, a.webhook_id AS "webhookId", a.event_id AS "eventId", a.kind, a.sequence, a.url, a.cancel_as AS "cancelAs", a.holding,
            a.started, a.last,
            a.last_result AS "lastResult", a.used, a.interruptions, a.last > 0 AND a.last_result IS NULL AS "newlyInterrupted",
            a.due_in AS "dueInMs", b.number,
            (SELECT e.payload FROM ${events} e WHERE e.id = a.event_id) AS payload,
            ${Secret.live(sql, "a.webhook_id")} AS secrets
          FROM asked a LEFT JOIN begun b ON b.delivery_id = a.id`),
        (rows) => {
          const elsewhere = rows.flatMap(({ eventId, number, payload }) => (oneDay && number !== null && payload === null ? eventId : []))
          return Effect.map(payloadsOf(elsewhere), (payloads) => {
            const byId = new Map(rows.map((row) => [row.id, { ...row, payload: row.payload ?? payloads.get(row.eventId) ?? null }]))
            return items.map(({ id }) => byId.get(id) ?? null)
          })
        }
      )
    }

    const succeedMany = (items: ReadonlyArray<Recorded>) => {
      const { attempts, deliveries } = partitionsOf(
        sql,
        items.map(({ deliveryId }) => deliveryId)
      )
      return Effect.as(
        sql`
          WITH r AS MATERIALIZED (
            SELECT * FROM unnest(${items.map((_) => _.deliveryId)}::text[], ${items.map((_) => _.webhookId)}::text[],
              ${items.map((_) => _.number)}::int[], ${items.map((_) => _.answer.httpStatus)}::int[],
              ${items.map((_) => _.answer.latencyMs)}::int[], ${items.map((_) => _.answer.bodySnippet)}::text[],
              ${items.map((_) => _.held !== undefined)}::bool[], ${items.map((_) => _.held?.wake === true)}::bool[])
              AS r (delivery_id, webhook_id, number, http_status, latency_ms, body_snippet, held, wake)
          ), attempts AS (
            UPDATE ${attempts} t SET result = '2xx', http_status = r.http_status, latency_ms = r.latency_ms, body_snippet = r.body_snippet
            FROM r WHERE t.delivery_id = r.delivery_id AND t.number = r.number
          ), done AS (
            UPDATE ${deliveries} d SET status = 'DELIVERED', delivered_at = clock_timestamp(), next_attempt_at = NULL, failure_reason = NULL
            FROM r WHERE d.id = r.delivery_id AND d.status <> 'DELIVERED' RETURNING d.id, d.webhook_id, r.held, r.wake
          ), healed AS (
            UPDATE webhook_health h SET consecutive_failures = 0, failing_since = NULL, first_failed_delivery = NULL,
              several_deliveries = false, gone_at = NULL, down_failures = 0
            WHERE h.webhook_id IN (SELECT r.webhook_id FROM r) AND h.consecutive_failures > 0
          ), up AS (
            -- The first 2xx ends the probing, whichever attempt it is of.
            UPDATE webhook_holds h SET down = false, probe_at = NULL, wake = h.wake + h.down::int,
              delivered = h.delivered + (SELECT count(*) FROM done WHERE done.webhook_id = h.webhook_id AND done.held)
            WHERE h.webhook_id IN (SELECT x.webhook_id FROM webhook_holds x WHERE x.webhook_id IN (SELECT r.webhook_id FROM r)
              ORDER BY x.webhook_id FOR NO KEY UPDATE)
          ), woken AS (
            INSERT INTO delivery_signals (delivery_id, signal) SELECT id, 'wake' FROM done WHERE wake
            ON CONFLICT (delivery_id, signal) DO UPDATE SET id = DEFAULT
          )
          INSERT INTO webhook_counters AS c (webhook_id, slot, shard, delivered, last_success_at)
          SELECT r.webhook_id, date_bin('10 minutes', clock_timestamp(), 'epoch'), ${SHARD},
            (SELECT count(*) FROM done WHERE done.webhook_id = r.webhook_id), clock_timestamp()
          -- The webhook of a deleted organization is gone.
          FROM r WHERE EXISTS (SELECT 1 FROM webhooks w WHERE w.id = r.webhook_id) GROUP BY r.webhook_id ORDER BY r.webhook_id
          ON CONFLICT (webhook_id, slot, shard) DO UPDATE SET delivered = c.delivered + excluded.delivered, last_success_at = excluded.last_success_at`,
        items.map(() => true)
      )
    }

    const isLast = lastAttempt(sql)

    const statusOf = (deliveryId: string) =>
      Effect.map(decodeStatuses(sql`SELECT status FROM deliveries WHERE id = ${deliveryId}`), (rows) => rows[0]?.status ?? "CANCELED")

    const begin = yield* batched(beginMany, { size: 100, parallel: 4 })
    const succeed = yield* batched(succeedMany, { size: 100, parallel: 4 })

    return {
      /**
       * Begins an attempt if the delivery is waiting and due, its webhook is active and the schedule is not used up;
       * `number` says whether it did. Closes an open previous attempt as interrupted; from the second in a row on, the
       * next attempt waits first. Null if there is no such delivery.
       */
      begin: (beginning: AttemptStartInput) => begin(beginning),

      /** Whether a request of the delivery may still be sent: it is waiting, and its webhook is active. */
      wanted: (deliveryId: string, held: boolean) =>
        Effect.map(
          sql`
            SELECT 1 FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
            WHERE d.id = ${deliveryId} AND w.status = 'ACTIVE'
              AND ${held ? sql`d.status = 'HELD'` : sql`d.status IN ('PENDING', 'RETRYING') AND NOT ${isHeld(sql)}`}
              AND (${cancelReason(sql)}) IS NULL`,
          (rows) => rows.length > 0
        ),

      /** Removes an attempt that began but sent nothing. */
      withdraw: (deliveryId: string, number: number) =>
        sql`DELETE FROM delivery_attempts WHERE delivery_id = ${deliveryId} AND number = ${number} AND result IS NULL`,

      /**
       * Records an attempt that neither uses up the schedule nor counts against the endpoint; the next one is due after
       * the wait. Returns the delivery's current status.
       */
      recordUncounted: ({ answer, deliveryId, number }: Recorded, waitMs: number) =>
        Effect.map(
          decodeNow(sql`
            WITH attempt AS (
              UPDATE delivery_attempts SET result = ${answer.result}, http_status = ${answer.httpStatus}, latency_ms = ${answer.latencyMs},
                body_snippet = ${answer.bodySnippet}, uses_schedule = false
              WHERE delivery_id = ${deliveryId} AND number = ${number} AND (result IS NULL OR result = 'interrupted')
            ), thinned AS (
              DELETE FROM delivery_attempts WHERE delivery_id = ${deliveryId} AND result = 'proxy_error' AND number <= ${number - PROXY_ERRORS}
            ), moved AS (
              UPDATE deliveries SET status = 'RETRYING', next_attempt_at = clock_timestamp() + ${waitMs} * interval '1 millisecond'
              WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING') AND ${isLast(deliveryId, number)} RETURNING status
            )
            SELECT coalesce((SELECT status FROM moved), (SELECT status FROM deliveries WHERE id = ${deliveryId})) AS status`),
          (rows) => rows[0]?.status ?? "CANCELED"
        ),

      /**
       * Holds a delivery whose webhook is on hold, with a workflow that waits to be woken. Returns its current status.
       * The hold's row is locked until the commit: a hold that ends concurrently finds the delivery.
       */
      hold: (deliveryId: string, webhookId: string) =>
        Effect.zipRight(
          sql`
            WITH ${holdsOf(sql, [webhookId])}
            UPDATE deliveries d SET status = 'HELD', next_attempt_at = NULL FROM holds
            WHERE d.id = ${deliveryId} AND d.status IN ('PENDING', 'RETRYING')`,
          statusOf(deliveryId)
        ),

      /**
       * Holds a due delivery to an endpoint that works but cannot keep up: it is sent when its turn comes, and so are those
       * after it, which then need no workflow. Returns its current status.
       */
      holdForTurn: (deliveryId: string, webhookId: string) =>
        Effect.zipRight(
          sql`
            INSERT INTO webhook_holds (webhook_id, down, collected)
            SELECT w.id, false, true FROM webhooks w LEFT JOIN webhook_health h ON h.webhook_id = w.id
            WHERE w.id = ${webhookId} AND w.status = 'ACTIVE' AND coalesce(h.consecutive_failures, 0) = 0
            ON CONFLICT (webhook_id) DO NOTHING`,
          Effect.zipRight(
            sql`
              WITH ${holdsOf(sql, [webhookId])}
              UPDATE deliveries d SET status = 'HELD', next_attempt_at = NULL FROM holds
              WHERE d.id = ${deliveryId} AND d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at <= clock_timestamp()`,
            statusOf(deliveryId)
          )
        ),

      /** Sets the due time of a delivery whose last attempts were interrupted. */
      postpone: (deliveryId: string, waitMs: number) => sql`
        UPDATE deliveries SET next_attempt_at = clock_timestamp() + ${waitMs} * interval '1 millisecond'
        WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING')`,

      /** Records a 2xx: the attempt, the delivery, the counters, the end of a streak of failures. */
      succeed,

      /** Cancels a waiting delivery; does nothing if it has ended. Returns the delivery's current status. */
      cancel: (deliveryId: string, reason: "WEBHOOK_DISABLED" | "WEBHOOK_DELETED" | "MANUAL") =>
        Effect.zipRight(
          sql`
            UPDATE deliveries SET status = 'CANCELED', failure_reason = ${reason}, next_attempt_at = NULL
            WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING', 'HELD')`,
          statusOf(deliveryId)
        )
    }
  })
}) {
  static readonly layer = this.Default
}
