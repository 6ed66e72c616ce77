/**
 * What people ask of a delivery that waits: the next attempt now, or none any more. Who may ask is who may redeliver.
 * The row is changed and the workflow's signal is written in one transaction; a dispatcher tells the workflow.
 * Decision D-22.
 */
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { PrincipalState } from "../credentials/Principal.ts"
import { dieOnSql } from "../database/sql.ts"
import { problem } from "../http/Problem.ts"
import { DeliveriesRepo } from "./DeliveriesRepo.ts"

const ended = () => problem("delivery_ended", "The delivery has ended: nothing waits any more.")

export class Nudges extends Effect.Service<Nudges>()("custody/Nudges", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const deliveries = yield* DeliveriesRepo

    // The webhook's row is held first, as a disable does, which cancels in the order of the due times that change here.
    const waiting = (deliveryId: string) =>
      Effect.zipRight(
        sql`SELECT 1 FROM webhooks WHERE id = (SELECT webhook_id FROM deliveries WHERE id = ${deliveryId}) FOR SHARE`,
        sql<{ id: string }>`SELECT id FROM deliveries WHERE id = ${deliveryId} AND status IN ('PENDING', 'RETRYING') FOR UPDATE`
      )
    // A row that a dispatcher has read and not removed yet is written anew, so that it is told once more.
    const signal = (deliveryId: string, name: "retryNow" | "cancel") =>
      sql`INSERT INTO delivery_signals (delivery_id, signal) VALUES (${deliveryId}, ${name}) ON CONFLICT (delivery_id, signal) DO UPDATE SET id = DEFAULT`

    return {
      /** Makes the next attempt now instead of when it is due; it counts as one of the schedule. */
      retryNow: (principal: PrincipalState, deliveryId: string) =>
        sql
          .withTransaction(
            Effect.gen(function* () {
              yield* deliveries.requireRedeliverable(principal, deliveryId)
              if ((yield* waiting(deliveryId)).length === 0) return yield* ended()
              yield* sql`UPDATE deliveries SET next_attempt_at = least(next_attempt_at, clock_timestamp()) WHERE id = ${deliveryId}`
              yield* signal(deliveryId, "retryNow")
            })
          )
          .pipe(dieOnSql),

      /** Ends a delivery that waits as CANCELED. An attempt that is under way is finished, and a 2xx still delivers. */
      cancel: (principal: PrincipalState, deliveryId: string) =>
        sql
          .withTransaction(
            Effect.gen(function* () {
              yield* deliveries.requireRedeliverable(principal, deliveryId)
              if ((yield* waiting(deliveryId)).length === 0) return yield* ended()
              yield* sql`
                UPDATE deliveries SET status = 'CANCELED', failure_reason = 'MANUAL', next_attempt_at = NULL WHERE id = ${deliveryId}`
              yield* signal(deliveryId, "cancel")
            })
          )
          .pipe(dieOnSql)
    }
  })
}) {
  static readonly layer = this.Default
}
