/**
 * Executes recorded cancellations: cancels the waiting deliveries of disabled and deleted webhooks in parts. If a
 * dispatcher is killed, another one continues. Decision D-22.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { pendingCancellations, runCancellation } from "../webhooks/cancelWaiting.ts"

/** Concurrent cancellations. */
const CONCURRENCY = 2

export class Canceler extends Effect.Service<Canceler>()("custody/Canceler", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return {
      /** Executes every recorded cancellation; one that fails is retried by the next run. Returns whether there was any. */
      run: Effect.flatMap(pendingCancellations(sql), (all) =>
        Effect.as(
          Effect.forEach(all, (pending) => runCancellation(sql, pending), { concurrency: CONCURRENCY, discard: true }),
          all.length > 0
        )
      )
    }
  })
}) {
  static readonly layer = this.Default
}
