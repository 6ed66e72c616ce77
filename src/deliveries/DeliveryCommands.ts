/**
 * What people ask of a delivery that waits: the next attempt now, or none any more. Who may ask is who may redeliver.
 * The row is changed and the workflow's signal is written in one transaction; a dispatcher tells the workflow.
 * Decision D-22.
 */
import { SqlClient, type Statement } from "@effect/sql"
import { Effect } from "effect"
import { actorOf, record } from "../audit/AuditTrail.ts"
import type { PrincipalState } from "../credentials/Principal.ts"
import { dieOnSql } from "../database/sql.ts"
import { problem } from "../http/Problem.ts"
import { SIGNALS_CHANNEL } from "../webhooks/cancelWaiting.ts"
import { probeNow } from "../webhooks/holds.ts"
import { DeliveriesRepo } from "./DeliveriesRepo.ts"

const ended = () => problem("delivery_ended", "The delivery has already ended.")

export class DeliveryCommands extends Effect.Service<DeliveryCommands>()("custody/DeliveryCommands", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const deliveries = yield* DeliveriesRepo

    /** Changes a delivery that waits. The webhook's row is held first, as a disable does, which cancels in the order of due times. */
    const change = (deliveryId: string, set: Statement.Fragment) =>
      Effect.gen(function* () {
        yield* sql`SELECT 1 FROM webhooks WHERE id = (SELECT webhook_id FROM deliveries WHERE id = ${deliveryId}) FOR SHARE`
        const [waiting] = yield* sql<{ webhookId: string; status: string }>`
          UPDATE deliveries SET ${set} WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING', 'HELD')
          RETURNING webhook_id AS "webhookId", status`
        return waiting === undefined ? yield* ended() : waiting
      })
    // A row that a dispatcher has read and not removed yet is written anew, so that it is told once more.
    const signal = (deliveryId: string, name: "retryNow" | "cancel") => sql`
      WITH written AS (
        INSERT INTO delivery_signals (delivery_id, signal) VALUES (${deliveryId}, ${name}) ON CONFLICT (delivery_id, signal) DO UPDATE SET id = DEFAULT
      )
      SELECT pg_notify(${SIGNALS_CHANNEL}, ${name})`

    const audit = (principal: PrincipalState, action: "delivery.retried" | "delivery.canceled", deliveryId: string) =>
      record(sql, [
        { organizationId: principal.organizationId, actor: actorOf(principal), action, target: { type: "delivery", id: deliveryId } }
      ])

    return {
      /** Makes the next attempt now instead of when it is due; it counts as one of the schedule. For one that is held, the endpoint is probed. */
      retryNow: (principal: PrincipalState, deliveryId: string) =>
        sql
          .withTransaction(
            Effect.gen(function* () {
              yield* deliveries.requireRedeliverable(principal, deliveryId)
              const { status, webhookId } = yield* change(
                deliveryId,
                sql`next_attempt_at = CASE WHEN status <> 'HELD' THEN least(next_attempt_at, clock_timestamp()) END`
              )
              // What is held has its turn: for it the endpoint is probed now.
              if (status === "HELD") yield* probeNow(sql, webhookId)
              else yield* signal(deliveryId, "retryNow")
              yield* audit(principal, "delivery.retried", deliveryId)
            })
          )
          .pipe(dieOnSql),

      /** Ends a delivery that waits as CANCELED. An attempt that is under way is finished, and a 2xx still delivers. */
      cancel: (principal: PrincipalState, deliveryId: string) =>
        sql
          .withTransaction(
            Effect.gen(function* () {
              yield* deliveries.requireRedeliverable(principal, deliveryId)
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
