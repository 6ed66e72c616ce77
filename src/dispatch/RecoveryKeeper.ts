/** Starts and wakes the workflows of recoveries: new, changed and lost ones. C-4. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { decodeRows } from "../database/decodeRows.ts"
import { WorkflowStarter } from "../deliveries/WorkflowStarter.ts"

/** Recoveries per query. */
const RECOVERIES = 500
/** A recovery is started again if its workflow has been inactive for this long; its longest wait is a minute. */
const LOST = "3 minutes"

const decode = decodeRows(
  Schema.Struct({ id: Schema.String, organizationId: Schema.String, webhookId: Schema.String, url: Schema.String, wake: Schema.Number })
)

export class RecoveryKeeper extends Effect.Service<RecoveryKeeper>()("custody/RecoveryKeeper", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const starter = yield* WorkflowStarter
    return {
      /**
       * Wakes all of them; a failed one is retried by the next run. Returns whether there were any. `wake` counts the wake-ups
       * that were requested; `told` is the last one that was signaled.
       */
      wake: Effect.flatMap(
        decode(sql`
          SELECT r.id, r.organization_id AS "organizationId", r.webhook_id AS "webhookId", w.url, r.wake FROM recoveries r JOIN webhooks w ON w.id = r.webhook_id
          WHERE (r.status = 'RUNNING' OR r.canceling) AND (r.wake > r.told OR r.seen_at < clock_timestamp() - ${LOST}::interval)
          ORDER BY r.id LIMIT ${RECOVERIES}`),
        (rows) =>
          Effect.forEach(
            rows,
            ({ id, organizationId, url, wake, webhookId }) =>
              starter.startRecovery(id, organizationId, webhookId, url).pipe(
                Effect.zipRight(sql`UPDATE recoveries SET told = greatest(told, ${wake}) WHERE id = ${id}`),
                Effect.catchAll((error) => Effect.logDebug("a recovery's workflow could not be started", error))
              ),
            { concurrency: 8, discard: true }
          ).pipe(Effect.as(rows.length > 0))
      )
    }
  })
}) {
  static readonly layer = this.Default
}
