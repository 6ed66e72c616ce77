/**
 * Commands on all deliveries that wait for a webhook: retry them now, or cancel them. Both concern the webhook as a whole, so
 * they require the same permission as disabling it: an owner who can see the webhook. Decision D-22, C-5.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { type Action, recordOf } from "../../access/audit/AuditTrail.ts"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { problem } from "../../http/Problem.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { dieOnSql, transaction } from "../../runtime/database/sql.ts"
import { requestCancellation } from "../webhooks/cancelWaiting.ts"
import { lockWebhook } from "../webhooks/lockWebhook.ts"
import { sendAll } from "../webhooks/queue.ts"

const decodeStates = decodeRows(Schema.Struct({ status: Schema.String }))

export class WaitingDeliveries extends Effect.Service<WaitingDeliveries>()("custody/WaitingDeliveries", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const audit = (principal: PrincipalState, action: Action, webhookId: string) =>
      recordOf(sql, principal, action, { type: "webhook", id: webhookId })

    return {
      /**
       * Sends everything that waits, oldest first; each attempt uses up one attempt of the schedule. The webhook's drain moves
       * waiting retries into the queue and sends them. If the endpoint is down, it is probed now instead.
       */
      retryAll: Effect.fn("WaitingDeliveries.retryAll")(
        function* (principal: PrincipalState, webhookId: string) {
          yield* lockWebhook(sql, principal, webhookId)
          const [{ status } = { status: "DISABLED" }] = yield* decodeStates(sql`SELECT w.status FROM webhooks w WHERE w.id = ${webhookId}`)
          if (status === "DISABLED") return yield* problem("webhook_disabled", "The webhook is disabled, so nothing waits for it.")
          if (status === "PAUSED")
            return yield* problem("webhook_paused", "The webhook is paused. Resume it to send the waiting deliveries.")
          yield* sendAll(sql, webhookId)
          yield* audit(principal, "webhook.deliveries_retried", webhookId)
        },
        transaction(sql),
        dieOnSql
      ),

      /**
       * Requests the cancellation of every waiting delivery. The webhook's drain cancels them a few hundred at a time; no attempt
       * begins in the meantime.
       */
      cancelAll: Effect.fn("WaitingDeliveries.cancelAll")(
        function* (principal: PrincipalState, webhookId: string) {
          yield* lockWebhook(sql, principal, webhookId)
          yield* requestCancellation(sql, webhookId, "MANUAL")
          yield* audit(principal, "webhook.deliveries_canceled", webhookId)
        },
        transaction(sql),
        dieOnSql
      )
    }
  })
}) {
  static readonly layer = this.Default
}
