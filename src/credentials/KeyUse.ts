/**
 * Records when each key was last used, for people who decide whether to revoke it. All keys are written together every 15
 * seconds, so a busy key costs no write per request; a killed process loses at most 15 seconds.
 */
import { SqlClient } from "@effect/sql"
import { Effect, Schedule } from "effect"

export class KeyUse extends Effect.Service<KeyUse>()("custody/KeyUse", {
  scoped: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    let seen = new Map<string, number>()

    const write = Effect.suspend(() => {
      if (seen.size === 0) return Effect.void
      const [ids, times] = [[...seen.keys()], [...seen.values()].map((time) => new Date(time).toISOString())]
      seen = new Map()
      return sql`
        UPDATE api_keys k SET last_used_at = greatest(k.last_used_at, seen.at)
        FROM unnest(${ids}::text[], ${times}::timestamptz[]) AS seen (id, at) WHERE k.id = seen.id`.pipe(Effect.asVoid)
    }).pipe(Effect.catchAllCause((cause) => Effect.logDebug("the last use of API keys could not be recorded", cause)))

    yield* Effect.addFinalizer(() => write)
    yield* Effect.forkScoped(Effect.schedule(write, Schedule.spaced("15 seconds")))
    return {
      used: (keyId: string, at: number): void => {
        seen.set(keyId, at)
      }
    }
  })
}) {
  static readonly layer = this.Default
}
