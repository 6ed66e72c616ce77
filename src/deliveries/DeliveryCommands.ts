/**
 * Commands on a waiting delivery: retry now, and cancel. They require the same permission as a redelivery. The row is
 * changed and the workflow's signal is written in one transaction; a dispatcher sends the signal. Decision D-22.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { actorOf, record } from "../audit/AuditTrail.ts"
import type { PrincipalState } from "../credentials/Principal.ts"
import { decodeRows } from "../database/decodeRows.ts"
import { dieOnSql } from "../database/sql.ts"
import { problem } from "../http/Problem.ts"
import { SIGNALS_CHANNEL } from "../webhooks/cancelWaiting.ts"
import { probeNow } from "../webhooks/holds.ts"
import { requireRedeliverable } from "./redeliver.ts"

const decodeWaiting = decodeRows(Schema.Struct({ webhookId: Schema.String, status: Schema.String }))

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
          UPDATE deliveries SET ${set} WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING', 'HELD')
          RETURNING webhook_id AS "webhookId", status`)
        return waiting === undefined ? yield* ended() : waiting
      })
    // If a dispatcher has read the row but not removed it yet, it is written again, so that the signal is sent once more.
    const signal = (deliveryId: string, name: "wake" | "cancel") => sql`
      WITH written AS (
        INSERT INTO delivery_signals (delivery_id, signal) VALUES (${deliveryId}, ${name}) ON CONFLICT (delivery_id, signal) DO UPDATE SET id = DEFAULT
      )
      SELECT pg_notify(${SIGNALS_CHANNEL}, ${name})`

    const audit = (principal: PrincipalState, action: "delivery.retried" | "delivery.canceled", deliveryId: string) =>
      record(sql, [
        { organizationId: principal.organizationId, actor: actorOf(principal), action, target: { type: "delivery", id: deliveryId } }
      ])

    return {
      /** Runs the next attempt immediately; it uses up one attempt of the schedule. For a held delivery, the endpoint is probed. */
      retryNow: (principal: PrincipalState, deliveryId: string) =>
        sql
          .withTransaction(
            Effect.gen(function* () {
              yield* requireRedeliverable(sql, principal, deliveryId)
              const { status, webhookId } = yield* change(
                deliveryId,
                sql`next_attempt_at = CASE WHEN status <> 'HELD' THEN least(next_attempt_at, clock_timestamp()) END`
              )
              // A held delivery waits for its turn; the endpoint is probed now.
              if (status === "HELD") yield* probeNow(sql, webhookId)
              else yield* signal(deliveryId, "wake")
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
              yield* signal(deliveryId, "cancel")
              yield* audit(principal, "delivery.canceled", deliveryId)
            })
          )
          .pipe(dieOnSql)
    }
  })
}) {
  static readonly layer = this.Default
}
