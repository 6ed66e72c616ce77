/**
 * Commands on a waiting delivery: retry now, and cancel. They require the same permission as a redelivery. The row is
 * changed and the command for its workflow, or its webhook's drain, is written in one transaction. Decision D-22.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { recordOf } from "../../access/audit/AuditTrail.ts"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { problem } from "../../http/Problem.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import { wakeDeliveries } from "../../runtime/temporal/commands.ts"
import { RANK, sendNow } from "../webhooks/queue.ts"
import { requireRedeliverable } from "./redeliver.ts"

const decodeWaiting = decodeRows(Schema.Struct({ webhookId: Schema.String, status: Schema.String, paused: Schema.Boolean }))

const ended = () => problem("delivery_ended", "The delivery has already ended.")

export class DeliveryCommands extends Effect.Service<DeliveryCommands>()("custody/DeliveryCommands", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /**
     * Changes a waiting delivery. The webhook's row is locked first, as disabling does, which cancels in the order of due
     * times.
     */
    const change = (deliveryId: string, set: Statement.Fragment) =>
      Effect.gen(function* () {
        yield* sql`SELECT 1 FROM webhooks WHERE id = (SELECT webhook_id FROM deliveries WHERE id = ${deliveryId}) FOR SHARE`
        const [waiting] = yield* decodeWaiting(sql`
          UPDATE deliveries d SET ${set} FROM webhooks w WHERE d.id = ${deliveryId} AND w.id = d.webhook_id AND d.status IN ('PENDING', 'RETRYING', 'HELD')
          RETURNING d.webhook_id AS "webhookId", d.status, w.status = 'PAUSED' AS paused`)
        return waiting === undefined ? yield* ended() : waiting
      })
    const audit = (principal: PrincipalState, action: "delivery.retried" | "delivery.canceled", deliveryId: string) =>
      recordOf(sql, principal, action, { type: "delivery", id: deliveryId })

    return {
      /**
       * Runs the next attempt immediately; it uses up one attempt of the schedule. A held delivery goes to the head of its
       * webhook's queue; if the endpoint is down, it probes it now. Fails with `webhook_paused` while the webhook is paused.
       */
      retryNow: (principal: PrincipalState, deliveryId: string) =>
        sql
          .withTransaction(
            Effect.gen(function* () {
              yield* requireRedeliverable(sql, principal, deliveryId)
              const { paused, status, webhookId } = yield* change(
                deliveryId,
                sql`next_attempt_at = CASE WHEN d.status <> 'HELD' THEN least(d.next_attempt_at, clock_timestamp()) END,
                  rank = CASE WHEN d.status = 'HELD' THEN ${RANK.first} ELSE d.rank END, probed_at = NULL`
              )
              if (status === "HELD" && paused)
                return yield* problem("webhook_paused", "The webhook is paused. Resume it to send the waiting deliveries.")
              yield* status === "HELD"
                ? sendNow(sql, webhookId)
                : wakeDeliveries(sql, [{ deliveryId, organizationId: principal.organizationId }])
              yield* audit(principal, "delivery.retried", deliveryId)
            })
          )
          .pipe(dieOnSql),

      /** Cancels a waiting delivery. An attempt in flight is finished, and a 2xx still delivers it. */
      cancel: (principal: PrincipalState, deliveryId: string) =>
        sql
          .withTransaction(
            Effect.gen(function* () {
              yield* requireRedeliverable(sql, principal, deliveryId)
              yield* change(deliveryId, sql`status = 'CANCELED', failure_reason = 'MANUAL', next_attempt_at = NULL`)
              yield* wakeDeliveries(sql, [{ deliveryId, organizationId: principal.organizationId }])
              yield* audit(principal, "delivery.canceled", deliveryId)
            })
          )
          .pipe(dieOnSql)
    }
  })
}) {
  static readonly layer = this.Default
}
