/**
 * Attempt rows. A row is written before its request is sent and completed with the outcome, so every request that a
 * receiver got has exactly one row, even if the worker was killed in between: a row names the process that makes the
 * attempt, and once that process is gone, the next attempt closes the open row as `interrupted` and takes the next number.
 * Recording is idempotent per delivery and number.
 *
 * New attempts and successes of many deliveries share a statement; a failure is a separate transaction (FailureRecorder.ts),
 * because it may disable the webhook. Decisions D-21, D-22, D-23.
 */
import { randomInt } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { batched } from "../../runtime/database/Batch.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { partitionsOf } from "../../runtime/database/Partitions.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { insertCommands, insertDeliveryCommands } from "../../runtime/temporal/commands.ts"
import { type CancelReason, cancelReason } from "../webhooks/cancelWaiting.ts"
import { inFlight, joinsQueue, mayBeSent } from "../webhooks/queue.ts"
import * as Secret from "../webhooks/signingSecret.ts"
import { AttemptStart, type AttemptStartInput, INTERRUPTIONS } from "./beforeAttempt.ts"
import { isOfDrain, type Via } from "./decide.ts"
import { end, moveDelivery, retryAfter } from "./moveDelivery.ts"
import type { Answer } from "./request/Answer.ts"
import { WorkerProcess } from "./WorkerProcess.ts"

const decode = decodeRows(AttemptStart)
const decodeStatuses = decodeRows(Schema.Struct({ status: Schema.String }))
const decodePayloads = decodeRows(Schema.Struct({ id: Schema.String, payload: Schema.String }))

/** The outcome of an attempt. */
export interface Recorded {
  readonly deliveryId: string
  readonly webhookId: string
  readonly number: number
  readonly via: Via
  readonly answer: Answer
  /** Whether the delivery's own workflow must hear of the outcome, because no step of it waits for it. */
  readonly wakes: boolean
}

/** The shard of the counters for this process, so that two processes seldom wait for each other. Random, because processes in containers have equal pids. */
export const SHARD = randomInt(8)

export class AttemptsRepo extends Effect.Service<AttemptsRepo>()("custody/AttemptsRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { id: me } = yield* WorkerProcess
    const { webhookMaxInFlight } = yield* Settings

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
      const inQueue = items.map(({ via }) => isOfDrain(via))
      const claims = items.flatMap(({ claimKey }) => claimKey ?? [])
      return Effect.flatMap(
        decode(sql`
          WITH asked AS MATERIALIZED (
            SELECT d.id, d.status, d.organization_id, d.webhook_id, d.event_id, d.kind, d.sequence, w.url, w.updated_at, w.gateway_credentials,
              ${cancelReason(sql)} AS cancel_as, w.status = 'PAUSED' OR NOT ${sql.literal(mayBeSent)} AS paused, coalesce(q.down, false) AS down,
              -- A queue of recoveries lets new events pass, as long as there are slots in flight.
              ${sql.literal(joinsQueue)} OR NOT ${sql.literal(mayBeSent)} OR (q.webhook_id IS NOT NULL AND ${inFlight(sql, attempts)} >= ${webhookMaxInFlight}::int) AS joins,
              EXISTS (SELECT 1 FROM processes p WHERE p.id = ${me}) AS registered,
              a.in_queue, l.last, l.last_result, l.used, l.open_by, l.last - l.known AS interruptions,
              CASE WHEN l.last > a.waited AND (l.last = l.known OR l.last - l.known >= ${INTERRUPTIONS}) AND l.last_result IS NOT NULL
                  -- A clock that was set back since the last attempt says nothing about the wait.
                  AND clock_timestamp() BETWEEN l.last_at AND d.next_attempt_at
                THEN ceil(extract(epoch FROM d.next_attempt_at - clock_timestamp()) * 1000)::float8 END AS due_in
            FROM unnest(${items.map((_) => _.id)}::text[], ${items.map((_) => _.after)}::int[], ${inQueue}::bool[]) AS a (id, waited, in_queue)
            JOIN ${deliveries} d ON d.id = a.id JOIN webhooks w ON w.id = d.webhook_id LEFT JOIN webhook_queues q ON q.webhook_id = w.id
            CROSS JOIN LATERAL (
              SELECT coalesce(max(t.number), 0) AS last, max(t.at) AS last_at, (array_agg(t.result ORDER BY t.number DESC))[1] AS last_result,
                count(*) FILTER (WHERE t.uses_schedule AND t.result <> 'interrupted')::int AS used,
                coalesce(max(t.number) FILTER (WHERE t.result <> 'interrupted'), 0) AS known, max(p.id) AS open_by
              FROM ${attempts} t LEFT JOIN processes p ON p.id = t.process_id AND t.result IS NULL WHERE t.delivery_id = a.id) l
          ), closed AS (
            UPDATE ${attempts} t SET result = 'interrupted', latency_ms = least(2147483647, greatest(0, extract(epoch FROM clock_timestamp() - t.at) * 1000))::int
            FROM asked a WHERE t.delivery_id = a.id AND t.result IS NULL AND a.open_by IS NULL
          ), retrying AS (
            UPDATE ${deliveries} d SET status = 'RETRYING' FROM asked a
            WHERE a.last > 0 AND a.open_by IS NULL AND a.status = 'PENDING' AND d.id = a.id AND d.status = 'PENDING'
          ), ${claims.length === 0 ? sql.literal("") : sql`taken AS (DELETE FROM commands WHERE key = ANY(${claims}::text[])),`}
          begun AS (
            INSERT INTO ${attempts} (delivery_id, number, at, organization_id, webhook_id, process_id)
            SELECT a.id, a.last + 1, clock_timestamp(), a.organization_id, a.webhook_id, ${me} FROM asked a
            WHERE CASE WHEN a.in_queue THEN a.status = 'HELD' AND NOT a.paused ELSE a.status IN ('PENDING', 'RETRYING') AND NOT a.joins END
              AND a.registered AND a.open_by IS NULL AND a.cancel_as IS NULL AND a.due_in IS NULL
              AND (a.interruptions < ${INTERRUPTIONS} OR a.last_result IS NOT NULL)
            ON CONFLICT (delivery_id, number) DO NOTHING
            RETURNING delivery_id, number
          )
          SELECT a.id, a.status, a.webhook_id AS "webhookId", a.event_id AS "eventId", a.kind, a.sequence, a.url, a.updated_at AS "changedAt", a.cancel_as AS "cancelAs",
            a.paused, a.down, a.joins, a.open_by AS "openBy", a.registered, a.last,
            a.last_result AS "lastResult", a.used, a.interruptions, a.last > 0 AND a.last_result IS NULL AND a.open_by IS NULL AS "newlyInterrupted",
            a.due_in AS "dueInMs", b.number,
            (SELECT e.payload FROM ${events} e WHERE e.id = a.event_id) AS payload,
            ${Secret.live(sql, "a.webhook_id")} AS secrets, a.gateway_credentials AS "gatewayCredentials"
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
          WITH failing AS MATERIALIZED (
            -- Before anything else, as FailureRecorder does.
            SELECT h.webhook_id FROM webhook_health h WHERE h.webhook_id = ANY(${items.map((_) => _.webhookId)}::text[]) AND h.consecutive_failures > 0
            ORDER BY h.webhook_id FOR NO KEY UPDATE
          ), r AS MATERIALIZED (
            SELECT r.* FROM (SELECT count(*) FROM failing) locked, unnest(${items.map((_) => _.deliveryId)}::text[], ${items.map((_) => _.webhookId)}::text[],
              ${items.map((_) => _.number)}::int[], ${items.map((_) => _.answer.httpStatus)}::int[],
              ${items.map((_) => _.answer.latencyMs)}::int[], ${items.map((_) => _.answer.bodySnippet)}::text[],
              ${items.map(({ via }) => isOfDrain(via))}::bool[], ${items.map((_) => _.wakes)}::bool[])
              AS r (delivery_id, webhook_id, number, http_status, latency_ms, body_snippet, held, wakes)
          ), attempts AS (
            UPDATE ${attempts} t SET result = '2xx', http_status = r.http_status, latency_ms = r.latency_ms, body_snippet = r.body_snippet
            FROM r WHERE t.delivery_id = r.delivery_id AND t.number = r.number AND t.result IS DISTINCT FROM '2xx'
            RETURNING t.webhook_id
          ), done AS (
            UPDATE ${deliveries} d SET status = 'DELIVERED', delivered_at = clock_timestamp(), next_attempt_at = NULL, failure_reason = NULL
            FROM r WHERE d.id = r.delivery_id AND d.status <> 'DELIVERED'
            RETURNING d.id, d.webhook_id, d.organization_id, r.held, r.wakes OR r.held AND d.started AS wakes
          ), healed AS (
            UPDATE webhook_health h SET consecutive_failures = 0, failing_since = NULL, first_failed_delivery = NULL,
              several_deliveries = false, gone_at = NULL, down_failures = 0
            WHERE h.webhook_id IN (SELECT f.webhook_id FROM failing f)
          ), up AS (
            -- The first 2xx ends a hold, whichever attempt it is of.
            UPDATE webhook_queues q SET down = false, due = CASE WHEN q.down THEN clock_timestamp() ELSE q.due END,
              delivered = q.delivered + (SELECT count(*) FROM done WHERE done.webhook_id = q.webhook_id AND done.held)
            WHERE q.webhook_id IN (SELECT x.webhook_id FROM webhook_queues x
              WHERE x.webhook_id IN (SELECT r.webhook_id FROM r) AND (x.down OR x.webhook_id IN (SELECT r.webhook_id FROM r WHERE r.held))
              ORDER BY x.webhook_id FOR NO KEY UPDATE)
            RETURNING q.webhook_id
          ), woken AS (
            ${insertDeliveryCommands(sql, sql`SELECT id, organization_id FROM done WHERE wakes`)}
          ), drained AS (
            ${insertCommands(sql, sql`SELECT 'drain/' || q.webhook_id FROM webhook_queues q JOIN up ON up.webhook_id = q.webhook_id WHERE q.down`)}
          )
          INSERT INTO webhook_counters AS c (webhook_id, slot, shard, delivered, succeeded, last_success_at)
          SELECT r.webhook_id, date_bin('10 minutes', clock_timestamp(), 'epoch'), ${SHARD},
            (SELECT count(*) FROM done WHERE done.webhook_id = r.webhook_id),
            (SELECT count(*) FROM attempts a WHERE a.webhook_id = r.webhook_id), clock_timestamp()
          -- The webhook of a deleted organization is gone.
          FROM r WHERE EXISTS (SELECT 1 FROM webhooks w WHERE w.id = r.webhook_id) GROUP BY r.webhook_id ORDER BY r.webhook_id
          ON CONFLICT (webhook_id, slot, shard) DO UPDATE SET delivered = c.delivered + excluded.delivered,
            succeeded = c.succeeded + excluded.succeeded, last_success_at = excluded.last_success_at`,
        items.map(() => true)
      )
    }

    const begin = yield* batched(beginMany, { size: 100, parallel: 4 })
    const succeed = yield* batched(succeedMany, { size: 100, parallel: 4 })

    return {
      /**
       * Begins an attempt if the delivery is where the caller expects it, is due, and its schedule is not used up; `number`
       * says whether it did. Closes an open previous attempt of a process that is gone. Null if there is no such delivery.
       */
      begin: (beginning: AttemptStartInput) => begin(beginning),

      /** Whether a request of the delivery may still be sent: it is waiting, and its webhook is active and unchanged since the attempt began. */
      wanted: ({ changedAt, id }: AttemptStart, via: Via) =>
        Effect.map(
          sql`
            SELECT 1 FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id LEFT JOIN webhook_queues q ON q.webhook_id = w.id
            WHERE d.id = ${id} AND w.status = 'ACTIVE' AND w.updated_at = ${changedAt}::timestamptz AND ${
              isOfDrain(via) ? sql`d.status = 'HELD'` : sql`d.status IN ('PENDING', 'RETRYING') AND NOT ${sql.literal(joinsQueue)}`
            } AND ${sql.literal(mayBeSent)} AND (${cancelReason(sql)}) IS NULL`,
          (rows) => rows.length > 0
        ),

      /** Removes an attempt that sent nothing. */
      withdraw: (deliveryId: string, number: number) =>
        sql`DELETE FROM delivery_attempts WHERE delivery_id = ${deliveryId} AND number = ${number} AND result IS NULL`,

      /** Closes attempts of this process that were begun half a minute ago and are not in flight: the answer to the statement was lost. */
      abandonAllBut: (inFlight: ReadonlyArray<string>) => sql`
        WITH closed AS (
          UPDATE delivery_attempts SET result = 'interrupted' WHERE process_id = ${me} AND result IS NULL
            AND at < clock_timestamp() - interval '30 seconds' AND delivery_id <> ALL(${inFlight}::text[]) RETURNING delivery_id, organization_id
        )
        ${insertDeliveryCommands(sql, sql`SELECT delivery_id, organization_id FROM closed`)}`,

      /** Closes an attempt of this process that it does not make: whether its beginning was recorded is not known. */
      abandon: (deliveryId: string) =>
        sql`UPDATE delivery_attempts SET result = 'interrupted' WHERE delivery_id = ${deliveryId} AND process_id = ${me} AND result IS NULL`,

      /** Makes a delivery whose last attempts were interrupted wait; `wakes` makes its own workflow hear of it. */
      postpone: (deliveryId: string, waitMs: number, wakes: boolean) =>
        moveDelivery(sql, deliveryId, retryAfter(sql, waitMs), wakes ? "always" : "never"),

      /** Records a 2xx: the attempt, the delivery, the counters, the end of a streak of failures and of a hold. */
      succeed,

      /**
       * Cancels a waiting delivery; does nothing if it has ended. `wakes` makes its own workflow hear of it. Returns the
       * delivery's current status.
       */
      cancel: (deliveryId: string, reason: CancelReason | "EXPIRED", wakes: boolean) =>
        Effect.map(
          Effect.zipRight(
            moveDelivery(sql, deliveryId, end(sql, "CANCELED", sql`${reason}`), wakes ? "if started" : "never"),
            decodeStatuses(sql`SELECT status FROM deliveries WHERE id = ${deliveryId}`)
          ),
          (rows) => rows[0]?.status ?? "CANCELED"
        )
    }
  })
}) {
  static readonly layer = this.Default
}
