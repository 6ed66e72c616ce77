/**
 * Reads of deliveries, and the row of a redelivery. Filters by status and kind are answered by one run of an index for
 * each status, so that a rare one is found among a million as among ten.
 * Spec: Delivery; Redeliver. Decisions D-8, D-9, D-22, D-27.
 */
import { SqlClient, type Statement } from "@effect/sql"
import { Effect, Option } from "effect"
import { requireManage } from "../credentials/Access.ts"
import type { PrincipalState } from "../credentials/Principal.ts"
import { and, limit } from "../database/sql.ts"
import { oldestId } from "../events/EventsRepo.ts"
import { seesEvent, seesWebhook } from "../events/visibility.ts"
import type { Key } from "../http/Page.ts"
import { notFound, problem } from "../http/Problem.ts"
import { Settings } from "../settings/Settings.ts"
import * as Id from "../values/Id.ts"
import { type Delivery, statuses } from "./Delivery.ts"
import type { ToStart } from "./Starter.ts"
import { firstWait } from "./schedule.ts"

/** After this an attempt without an outcome lost its sender: it is shown as interrupted, also before the next one closes it. */
const UNFINISHED = "1 minute"

/** Filters of a webhook's deliveries. */
export interface DeliveryFilter {
  readonly status?: ReadonlyArray<string> | undefined
  readonly kind?: string | undefined
  readonly eventId?: string | undefined
  readonly createdAfter?: string | undefined
  readonly createdBefore?: string | undefined
}

/** A timestamp inside JSON, as all others are answered. */
const ISO = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'

const columns = `d.id, d.event_id AS "eventId", d.webhook_id AS "webhookId", d.kind, d.status, d.next_attempt_at AS "nextAttemptAt",
  d.failure_reason AS "failureReason", d.replayed_from AS "replayedFromDeliveryId", d.delivered_at AS "deliveredAt", d.created_at AS "createdAt"`

export class DeliveriesRepo extends Effect.Service<DeliveriesRepo>()("custody/DeliveriesRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { webhookRetrySchedule } = yield* Settings

    /**
     * The deliveries of a query with their attempts, newest first; one that may still be under way is not shown yet.
     * One statement, so that a delivery and its attempts are always of the same moment.
     */
    const withAttempts = (rows: Statement.Fragment) =>
      Effect.map(
        sql<Delivery>`
          SELECT d.*, (
            SELECT coalesce(json_agg(json_build_object('at', to_char(t.at AT TIME ZONE 'UTC', ${ISO}),
              'result', coalesce(t.result, 'interrupted'), 'httpStatus', t.http_status, 'latencyMs', t.latency_ms, 'bodySnippet', t.body_snippet)
              ORDER BY t.number), '[]')
            FROM delivery_attempts t WHERE t.delivery_id = d.id
              AND (t.result IS NOT NULL OR t.at < clock_timestamp() - ${UNFINISHED}::interval)) AS attempts
          FROM (${rows}) d ORDER BY d."createdAt" DESC, d.id DESC`,
        (found) =>
          found.map(
            ({ attempts, createdAt, deliveredAt, failureReason, nextAttemptAt, replayedFromDeliveryId, ...row }): Delivery => ({
              ...row,
              attempts,
              nextAttemptAt,
              failureReason,
              replayedFromDeliveryId,
              deliveredAt,
              createdAt
            })
          )
      )

    const page = (where: Statement.Fragment, take: number) => sql`
      SELECT ${sql.literal(columns)} FROM deliveries d WHERE ${where} ORDER BY d.created_at DESC, d.id DESC ${limit(sql, take)}`

    /** Rows of one text each. Not an array: of an array's length Postgres knows nothing, and would plan each execution anew. */
    const valuesOf = (texts: ReadonlyArray<string>) => sql`(VALUES ${sql.csv(texts.map((text) => sql`(${text}::text)`))})`

    /** A page along the index of the webhook, of the event, or of each status, with the kind if one is asked for. */
    const filtered = (webhookId: string, filter: DeliveryFilter, after: Key | null, take: number) => {
      const common = and(
        sql,
        sql`d.id >= ${oldestId("del")}`,
        filter.createdAfter !== undefined && sql`d.created_at >= ${filter.createdAfter}::timestamptz`,
        filter.createdBefore !== undefined && sql`d.created_at <= ${filter.createdBefore}::timestamptz`,
        after !== null && sql`(d.created_at, d.id) < (${after[0]}::timestamptz, ${after[1]})`
      )
      const { eventId, kind, status } = filter
      if (eventId !== undefined) {
        const rest = and(sql, status !== undefined && sql`d.status = ANY(${status}::text[])`, kind !== undefined && sql`d.kind = ${kind}`)
        return page(sql`d.event_id = ${eventId} AND d.webhook_id = ${webhookId} ${common} ${rest}`, take)
      }
      if (status === undefined && kind === undefined) return page(sql`d.webhook_id = ${webhookId} ${common}`, take)
      const lane =
        kind === undefined
          ? sql`(d.webhook_id || '/' || d.status) = ${webhookId}::text || '/' || s.status`
          : sql`(d.webhook_id || '/' || d.status || '/' || d.kind) = ${webhookId}::text || '/' || s.status || '/' || ${kind}::text`
      return sql`
        SELECT found.* FROM ${valuesOf([...new Set(status ?? statuses)])} s (status)
        CROSS JOIN LATERAL (${page(sql`${lane} ${common}`, take)}) found
        ORDER BY "createdAt" DESC, id DESC ${limit(sql, take)}`
    }

    /** The delivery with what its redelivery is started with, when the caller sees its webhook and its event. */
    const visible = (principal: PrincipalState, deliveryId: string) => sql<ToStart & { readonly active: boolean }>`
      SELECT d.id, d.event_id AS "eventId", d.webhook_id AS "webhookId", d.kind, e.entity_id AS "entityId", w.url, w.status = 'ACTIVE' AS active
      FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id JOIN events e ON e.id = d.event_id
      WHERE d.id = ${deliveryId} AND d.id >= ${oldestId("del")} AND e.id >= ${oldestId("evt")} AND w.deleted_at IS NULL
        AND ${seesWebhook(sql, principal)} AND ${seesEvent(sql, principal)}`

    return {
      /** A page of a webhook's deliveries; whether the caller sees the webhook is asked before. */
      ofWebhook: (webhookId: string, filter: DeliveryFilter, after: Key | null, take: number): Effect.Effect<ReadonlyArray<Delivery>> =>
        // Postgres takes no NUL in a text, and no event's id has one.
        filter.eventId?.includes("\u0000") === true
          ? Effect.succeed([])
          : Effect.orDie(withAttempts(filtered(webhookId, filter, after, take))),

      /** Every delivery of an event to webhooks that the caller sees, deleted ones included, newest first. */
      ofEvent: (principal: PrincipalState, eventId: string): Effect.Effect<ReadonlyArray<Delivery>> =>
        Effect.orDie(
          withAttempts(sql`
            SELECT ${sql.literal(columns)} FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
            WHERE d.event_id = ${eventId} AND d.id >= ${oldestId("del")} AND ${seesWebhook(sql, principal)}`)
        ),

      /** Refuses callers who do not see the delivery's webhook and event, then those who may not manage webhooks. */
      requireRedeliverable: Effect.fn("DeliveriesRepo.requireRedeliverable")(function* (principal: PrincipalState, deliveryId: string) {
        if ((yield* visible(principal, deliveryId)).length === 0) return yield* notFound()
        yield* requireManage(principal)
      }),

      /**
       * A new delivery of a delivery's event, for callers who see the webhook and the event. To be run in a
       * transaction; the workflow is started after it.
       */
      redeliver: Effect.fn("DeliveriesRepo.redeliver")(function* (principal: PrincipalState, deliveryId: string) {
        const [found] = yield* sql<ToStart & { readonly active: boolean }>`${visible(principal, deliveryId)} FOR SHARE OF w`
        if (found === undefined) return yield* notFound()
        yield* requireManage(principal)
        if (!found.active) return yield* problem("webhook_disabled", "The webhook is disabled. Enable it first.")
        const id = Id.make("del")
        yield* sql`
          INSERT INTO deliveries (id, event_id, webhook_id, kind, status, next_attempt_at, replayed_from)
          VALUES (${id}, ${found.eventId}, ${found.webhookId}, ${found.kind}, 'PENDING', now() + make_interval(secs => ${firstWait(webhookRetrySchedule)}), ${deliveryId})`
        const [made] = yield* withAttempts(sql`SELECT ${sql.literal(columns)} FROM deliveries d WHERE d.id = ${id}`)
        return made === undefined ? yield* Effect.die(new Error(`the delivery ${id} is gone within its transaction`)) : made
      }),

      /** What a delivery's workflow is started with; none when the delivery does not wait. */
      toStart: (deliveryId: string): Effect.Effect<Option.Option<ToStart>> =>
        Effect.orDie(
          Effect.map(
            sql<ToStart>`
              SELECT d.id, d.event_id AS "eventId", d.webhook_id AS "webhookId", d.kind, e.entity_id AS "entityId", w.url
              FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id JOIN events e ON e.id = d.event_id
              WHERE d.id = ${deliveryId} AND d.status IN ('PENDING', 'RETRYING')`,
            (rows) => Option.fromNullable(rows[0])
          )
        )
    }
  })
}) {
  static readonly layer = this.Default
}
