/** The rows of a webhook's queue, as its drain reads and changes them. C-5. */
import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Schema } from "effect"
import { recordOfService } from "../../access/audit/AuditTrail.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { inFlight, mayBeSent, RANK } from "../webhooks/queue.ts"
import { longestProbeWait } from "./decide.ts"
import { makeNotices } from "./recordNotices.ts"

/** The oldest deliveries that take turns as probes. */
const PROBES = 10

const Queue = Schema.Struct({
  status: Schema.Literal("ACTIVE", "PAUSED", "DISABLED"),
  down: Schema.Boolean,
  probes: Schema.Number,
  retriesQueued: Schema.Boolean,
  /** Whether waiting deliveries are to be canceled. */
  canceling: Schema.Boolean,
  /** Time in ms until the drain may act. */
  dueInMs: Schema.Number
})
/** A queue at the beginning of a drain's step. */
export type Queue = typeof Queue.Type

const Load = Schema.Struct({
  /** Attempts at the webhook that are in flight, of any process, and those of them that are of its queue. */
  inFlight: Schema.Number,
  queued: Schema.Number,
  /** The latest attempts in a row that found the endpoint down. */
  downFailures: Schema.Number
})
type Load = typeof Load.Type

const Queued = Schema.Struct({ id: Schema.String, rank: Schema.Number, sequence: Schema.Number })
/** A delivery in a queue. */
export type Queued = typeof Queued.Type

const Ending = Schema.Struct({
  organizationId: Schema.String,
  /** Since when the endpoint was down; null if it was not. */
  downAt: Schema.NullOr(Schema.String),
  delivered: Schema.Number,
  noticed: Schema.Boolean,
  down: Schema.Boolean
})
type Ending = typeof Ending.Type

const decodeQueues = decodeRows(Queue),
  decodeQueued = decodeRows(Queued),
  decodeLoads = decodeRows(Load),
  decodeEnding = decodeRows(Ending),
  decodeLeft = decodeRows(Schema.Struct({ any: Schema.Boolean, live: Schema.Boolean, sendable: Schema.Boolean }))

export class QueueRepo extends Effect.Service<QueueRepo>()("custody/QueueRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const settings = yield* Settings
    const notices = makeNotices(sql, settings)
    const longestProbe = longestProbeWait(settings.webhookProbeSchedule.map(Duration.toSeconds))

    /** Records the end of a queue's hold, if there is one. */
    const released = (webhookId: string, { delivered, downAt, organizationId }: Ending) =>
      downAt === null
        ? Effect.void
        : recordOfService(sql, organizationId, "webhook.released", webhookId, {
            heldSince: { old: downAt, new: null },
            delivered: { old: null, new: delivered }
          })

    return {
      /** Begins a step: it is due no earlier than now, so that the sweep sees when the drain last acted. Undefined without a queue. */
      begin: (webhookId: string) =>
        Effect.map(
          decodeQueues(sql`
            UPDATE webhook_queues q SET due = CASE WHEN w.status <> 'PAUSED' OR q.cancel_to IS NOT NULL
              -- No drain waits longer: Postgres' clock was set back.
              THEN greatest(CASE WHEN q.due < clock_timestamp() + make_interval(mins => 1, secs => CASE WHEN q.down THEN ${longestProbe}::float8 ELSE 0 END)
                THEN q.due END, clock_timestamp()) END
            FROM webhooks w WHERE q.webhook_id = ${webhookId} AND w.id = q.webhook_id
            RETURNING w.status, q.down, q.probes, q.retries_queued AS "retriesQueued", q.cancel_to IS NOT NULL AS canceling,
              coalesce(greatest(0, ceil(extract(epoch FROM q.due - clock_timestamp()) * 1000)), 0)::float8 AS "dueInMs"`),
          ([queue]) => queue
        ),

      /** What the endpoint is doing now. */
      load: (webhookId: string): Effect.Effect<Load, SqlError.SqlError> =>
        Effect.map(
          decodeLoads(sql`
            SELECT ${inFlight(sql, sql.literal("delivery_attempts"))} AS "inFlight", (
              SELECT count(*) FROM delivery_attempts t JOIN processes p ON p.id = t.process_id JOIN deliveries d ON d.id = t.delivery_id
              WHERE t.webhook_id = w.id AND t.result IS NULL AND d.status = 'HELD') AS queued,
              coalesce((SELECT h.down_failures FROM webhook_health h WHERE h.webhook_id = w.id), 0) AS "downFailures"
            FROM webhooks w WHERE w.id = ${webhookId}`),
          ([row]) => row ?? { inFlight: 0, queued: 0, downFailures: 0 }
        ),

      /** The next deliveries in order, after one of them, without those that are in flight. */
      next: (webhookId: string, after: Pick<Queued, "rank" | "sequence">, most: number) =>
        decodeQueued(sql`
          SELECT d.id, d.rank, d.sequence FROM deliveries d
          WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' AND (d.rank, d.sequence) > (${after.rank}::smallint, ${after.sequence}::bigint)
            AND ${sql.literal(mayBeSent)} AND d.id <> ALL (ARRAY(
              SELECT t.delivery_id FROM delivery_attempts t JOIN processes p ON p.id = t.process_id WHERE t.webhook_id = ${webhookId} AND t.result IS NULL))
          ORDER BY d.rank, d.sequence LIMIT ${most}`),

      /** The delivery to probe with: the oldest that has not probed in this hold, or that of the oldest that probed longest ago. */
      nextProbe: (webhookId: string) =>
        Effect.map(
          decodeQueued(sql`
            SELECT o.id, o.rank, o.sequence FROM (
              SELECT d.id, d.rank, d.sequence, d.probed_at FROM deliveries d
              WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' AND ${sql.literal(mayBeSent)} ORDER BY d.rank, d.sequence LIMIT ${PROBES}) o
            LEFT JOIN webhook_queues q ON q.webhook_id = ${webhookId}
            ORDER BY CASE WHEN o.probed_at >= q.down_at THEN o.probed_at END NULLS FIRST, o.rank, o.sequence LIMIT 1`),
          ([queued]) => queued
        ),

      /** Records that the waiting retries have been moved into the queue. */
      retriesQueued: (webhookId: string) => sql`UPDATE webhook_queues SET retries_queued = true WHERE webhook_id = ${webhookId}`,

      /** Sets when the drain acts next. */
      postpone: (webhookId: string, waitMs: number) => sql`
        UPDATE webhook_queues SET due = clock_timestamp() + ${waitMs} * interval '1 millisecond' WHERE webhook_id = ${webhookId} AND due IS NOT NULL`,

      /** The same, but not for an endpoint that is down, whose next probe has a time of its own. */
      postponeSending: (webhookId: string, waitMs: number) => sql`
        UPDATE webhook_queues SET due = clock_timestamp() + ${waitMs} * interval '1 millisecond'
        WHERE webhook_id = ${webhookId} AND due IS NOT NULL AND NOT down`,

      /**
       * Ends a queue that is empty. Whoever queues a delivery locks its key, so none is left behind. Returns what is there
       * otherwise: deliveries to send, a webhook that is no longer active, or a cancellation (`changed`), or only deliveries of
       * paused recoveries, for which the drain has nothing to do.
       */
      end: (webhookId: string) =>
        sql.withTransaction(
          Effect.gen(function* () {
            const [queue] = yield* decodeEnding(sql`
              SELECT w.organization_id AS "organizationId", q.down_at AS "downAt", q.delivered, q.noticed, q.down
              FROM webhook_queues q JOIN webhooks w ON w.id = q.webhook_id
              WHERE q.webhook_id = ${webhookId} AND w.status = 'ACTIVE' AND q.cancel_to IS NULL FOR UPDATE OF q`)
            if (queue === undefined) return "changed" as const
            const [left] = yield* decodeLeft(sql`
              SELECT EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD') AS any,
                EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' AND d.rank < ${RANK.recovery}
                  AND ${sql.literal(mayBeSent)}) AS live,
                EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' AND ${sql.literal(mayBeSent)}) AS sendable`)
            if (left?.sendable === true) {
              yield* sql`UPDATE webhook_queues SET live = ${left.live}, due = clock_timestamp() WHERE webhook_id = ${webhookId}`
              return "changed" as const
            }
            const { delivered, down, downAt, noticed } = queue
            yield* released(webhookId, queue)
            if (downAt !== null && noticed && !down) yield* notices.recovered(webhookId, downAt, delivered)
            if (left?.any === true) {
              // New events pass a queue of which nothing may be sent. That ends its hold, but if the endpoint was down, says nothing of it.
              yield* sql`
                UPDATE webhook_queues SET live = false, down = false, down_at = NULL, noticed = noticed AND down, delivered = 0, due = NULL
                WHERE webhook_id = ${webhookId}`
              return "waits for a recovery" as const
            }
            yield* sql`DELETE FROM webhook_queues WHERE webhook_id = ${webhookId}`
            return "ended" as const
          })
        ),

      /** Lets new events pass if only deliveries of recoveries are queued. */
      onlyRecoveries: (webhookId: string) => sql`
        UPDATE webhook_queues SET live = false WHERE webhook_id = ${webhookId} AND live AND NOT down AND NOT EXISTS (
          SELECT 1 FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' AND d.rank < ${RANK.recovery})`
    }
  })
}) {
  static readonly layer = this.Default
}
