/**
 * Commands on all deliveries that wait for a webhook: retry them now, or cancel them. Both concern the webhook as a whole, so
 * they require the same permission as disabling it: an owner who can see the webhook. Decision D-22, C-5.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { type Action, actorOf, record } from "../audit/AuditTrail.ts"
import type { PrincipalState } from "../credentials/Principal.ts"
import { decodeRows } from "../database/decodeRows.ts"
import { dieOnSql, transaction } from "../database/sql.ts"
import { problem } from "../http/Problem.ts"
import { announceCancellation, requestCancellation } from "../webhooks/cancelWaiting.ts"
import { drain, holdPart, probeNow } from "../webhooks/holds.ts"
import { lockWebhook } from "../webhooks/lockWebhook.ts"

const decodeStates = decodeRows(Schema.Struct({ status: Schema.String, down: Schema.Boolean }))

/** Statements that hold deliveries in one transaction, 200 each; deliveries beyond that keep their due time. */
const PARTS = 100

export class WaitingDeliveries extends Effect.Service<WaitingDeliveries>()("custody/WaitingDeliveries", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const audit = (principal: PrincipalState, action: Action, webhookId: string) =>
      record(sql, [
        { organizationId: principal.organizationId, actor: actorOf(principal), action, target: { type: "webhook", id: webhookId } }
      ])

    return {
      /**
       * Sends everything that waits, oldest first and a few at a time; each attempt uses up one attempt of the schedule. If the
       * endpoint is down, it is probed now instead, and a 2xx sends the rest.
       */
      retryAll: Effect.fn("WaitingDeliveries.retryAll")(
        function* (principal: PrincipalState, webhookId: string) {
          yield* lockWebhook(sql, principal, webhookId)
          const [{ down, status } = { down: false, status: "DISABLED" }] = yield* decodeStates(sql`
            SELECT w.status, EXISTS (SELECT 1 FROM webhook_holds h WHERE h.webhook_id = w.id AND h.down) AS down
            FROM webhooks w WHERE w.id = ${webhookId}`)
          if (status === "DISABLED") return yield* problem("webhook_disabled", "The webhook is disabled, so nothing waits for it.")
          if (status === "PAUSED")
            return yield* problem("webhook_paused", "The webhook is paused. Resume it to send the waiting deliveries.")
          if (down) yield* probeNow(sql, webhookId)
          else {
            yield* drain(sql, webhookId)
            for (let part = 0; part < PARTS; part++) {
              const [{ held } = { held: 0 }] = yield* holdPart(sql, webhookId, sql.literal("true"))
              if (held === 0) break
            }
          }
          yield* audit(principal, "webhook.deliveries_retried", webhookId)
        },
        transaction(sql),
        dieOnSql
      ),

      /**
       * Requests the cancellation of every waiting delivery. They are canceled a few hundred at a time after the commit; no
       * attempt begins in the meantime.
       */
      cancelAll: Effect.fn("WaitingDeliveries.cancelAll")(
        function* (principal: PrincipalState, webhookId: string) {
          yield* lockWebhook(sql, principal, webhookId)
          yield* requestCancellation(sql, webhookId, "MANUAL")
          yield* announceCancellation(sql)
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
