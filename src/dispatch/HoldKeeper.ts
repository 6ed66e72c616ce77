/**
 * Maintains holds: holds the deliveries that waited when a webhook was paused or its endpoint went down, in parts; starts
 * and wakes the workflows that probe and drain; cancels deliveries held for 31 days; and finds held deliveries without a
 * hold, which a crash or an older version may leave. If a dispatcher is killed, another one continues. C-5.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { decodeRows } from "../database/decodeRows.ts"
import { WorkflowStarter } from "../deliveries/WorkflowStarter.ts"
import { HOLD_DAYS, holdPart } from "../webhooks/holds.ts"

/** Deliveries per part, and parts of one webhook at a time. */
const PART = 200,
  PARTS = 20
/** Webhooks per query. */
const WEBHOOKS = 500
/** A hold is started again if its workflow has been inactive for this long. */
const LOST = "60 seconds"

const decodeWebhooks = decodeRows(Schema.Struct({ webhookId: Schema.String }))
const decodeHolds = decodeRows(
  Schema.Struct({ organizationId: Schema.String, webhookId: Schema.String, url: Schema.String, wake: Schema.Number })
)
const decodeEnded = decodeRows(Schema.Struct({ ended: Schema.Number }))

export class HoldKeeper extends Effect.Service<HoldKeeper>()("custody/HoldKeeper", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const starter = yield* WorkflowStarter

    /** Holds a webhook's waiting deliveries; those with an attempt in flight are left for the next run. */
    const collect = (webhookId: string) =>
      Effect.gen(function* () {
        for (let count = 0; count < PARTS; count++) {
          const [{ held, waiting } = { held: 0, waiting: 0 }] = yield* holdPart(sql, webhookId, sql`(h.down OR w.status = 'PAUSED')`)
          // failpoint: held-part
          if (waiting === 0) {
            // Not if another delivery started to wait in the meantime, which marks the hold again.
            yield* sql`
              UPDATE webhook_holds SET collected = true WHERE webhook_id = ${webhookId} AND NOT EXISTS (
                SELECT 1 FROM deliveries WHERE webhook_id = ${webhookId} AND status IN ('PENDING', 'RETRYING'))`
            return
          }
          if (held === 0) return
        }
      })

    return {
      /** Holds all deliveries that must still be held. Returns whether there were any. */
      collect: Effect.flatMap(
        decodeWebhooks(sql`
          SELECT h.webhook_id AS "webhookId" FROM webhook_holds h JOIN webhooks w ON w.id = h.webhook_id
          WHERE NOT h.collected AND (h.down OR w.status = 'PAUSED') ORDER BY h.seen_at LIMIT ${WEBHOOKS}`),
        (rows) =>
          Effect.as(
            Effect.forEach(rows, ({ webhookId }) => collect(webhookId), { concurrency: 2, discard: true }),
            rows.length > 0
          )
      ),

      /**
       * Starts and wakes the workflows of holds with work to do. Returns whether there were any. `wake` counts the wake-ups that
       * were requested; `told` is the last one that was signaled.
       */
      wake: Effect.flatMap(
        decodeHolds(sql`
          SELECT w.organization_id AS "organizationId", h.webhook_id AS "webhookId", w.url, h.wake FROM webhook_holds h JOIN webhooks w ON w.id = h.webhook_id
          WHERE w.status = 'ACTIVE' AND (h.wake > h.told
            OR h.seen_at < clock_timestamp() - ${LOST}::interval AND coalesce(h.probe_at, '-infinity') < clock_timestamp() - ${LOST}::interval)
          ORDER BY h.seen_at LIMIT ${WEBHOOKS}`),
        (rows) =>
          Effect.forEach(
            rows,
            ({ organizationId, url, wake, webhookId }) =>
              starter.startHold(organizationId, webhookId, url).pipe(
                Effect.zipRight(sql`UPDATE webhook_holds SET told = greatest(told, ${wake}) WHERE webhook_id = ${webhookId}`),
                Effect.catchAll((error) => Effect.logDebug("a hold's workflow could not be started", error))
              ),
            { concurrency: 8, discard: true }
          ).pipe(Effect.as(rows.length > 0))
      ),

      /** Cancels deliveries that were held too long, and holds again or cancels those without a hold. */
      sweep: Effect.gen(function* () {
        const rows = yield* decodeWebhooks(sql`
          WITH RECURSIVE held (webhook_id) AS (
            (SELECT webhook_id FROM deliveries WHERE status = 'HELD' ORDER BY webhook_id LIMIT 1)
            UNION ALL
            SELECT (SELECT d.webhook_id FROM deliveries d WHERE d.status = 'HELD' AND d.webhook_id > h.webhook_id ORDER BY d.webhook_id LIMIT 1)
            FROM held h WHERE h.webhook_id IS NOT NULL
          )
          SELECT webhook_id AS "webhookId" FROM held WHERE webhook_id IS NOT NULL`)
        for (const { webhookId } of rows) {
          yield* sql`
            INSERT INTO webhook_holds (webhook_id, down) SELECT id, false FROM webhooks WHERE id = ${webhookId} AND status <> 'DISABLED'
            ON CONFLICT (webhook_id) DO NOTHING`
          yield* sql`
            INSERT INTO pending_cancellations (webhook_id, reason, until)
            SELECT id, CASE WHEN deleted_at IS NULL THEN 'WEBHOOK_DISABLED' ELSE 'WEBHOOK_DELETED' END, clock_timestamp()
            FROM webhooks w WHERE w.id = ${webhookId} AND w.status = 'DISABLED'
              AND NOT EXISTS (SELECT 1 FROM pending_cancellations p WHERE p.webhook_id = w.id)`
          for (let count = PART; count === PART; ) {
            const [{ ended } = { ended: 0 }] = yield* decodeEnded(sql`
              WITH oldest AS MATERIALIZED (
                SELECT d.id, d.created_at FROM deliveries d WHERE d.webhook_id = ${webhookId} AND d.status = 'HELD' ORDER BY d.sequence LIMIT ${PART}
              ), expired AS (
                UPDATE deliveries d SET status = 'CANCELED', failure_reason = 'EXPIRED' FROM oldest o
                WHERE d.id = o.id AND d.status = 'HELD' AND o.created_at < now() - make_interval(days => ${HOLD_DAYS}) RETURNING d.id, d.started
              ), signaled AS (
                INSERT INTO delivery_signals (delivery_id, signal, bulk) SELECT id, 'cancel', true FROM expired WHERE started
                ON CONFLICT (delivery_id, signal) DO NOTHING
              )
              SELECT count(*) AS ended FROM expired`)
            count = ended
          }
        }
      })
    }
  })
}) {
  static readonly layer = this.Default
}
