/**
 * Carries out what a disable or a deletion only recorded: canceling the deliveries that wait, a part at a time. Any
 * dispatcher goes on where another one was killed. Decision D-22.
 */
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { carryOut, pendingCancellations } from "../webhooks/cancelWaiting.ts"

/** Cancellations that are carried out at once. */
const AT_ONCE = 2

export class Canceler extends Effect.Service<Canceler>()("custody/Canceler", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return {
      /** Carries out every cancellation there is; what cannot be done now stays for the next time. Returns whether there was any. */
      run: Effect.flatMap(pendingCancellations(sql), (all) =>
        Effect.as(
          Effect.forEach(all, (pending) => carryOut(sql, pending), { concurrency: AT_ONCE, discard: true }),
          all.length > 0
        )
      )
    }
  })
}) {
  static readonly layer = this.Default
}
