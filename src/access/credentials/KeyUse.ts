/**
 * Records when each key was last used and from which address, for people who decide whether to revoke it. All keys are
 * written together every 15 seconds, so a busy key costs no write per request; a killed process loses at most 15 seconds.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schedule } from "effect"
import type { RequestState } from "../../http/RequestContext.ts"

interface Use {
  /** In ms since 1970. */
  readonly at: number
  readonly client: RequestState["client"]
}

export class KeyUse extends Effect.Service<KeyUse>()("custody/KeyUse", {
  scoped: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    let seen = new Map<string, Use>()

    const write = Effect.suspend(() => {
      if (seen.size === 0) return Effect.void
      const [ids, uses] = [[...seen.keys()], [...seen.values()]]
      const [times, addresses] = [uses.map(({ at }) => new Date(at).toISOString()), uses.map(({ client }) => client?.toString() ?? null)]
      seen = new Map()
      return sql`
        UPDATE api_keys k SET last_used_at = seen.at, last_used_address = seen.address
        FROM unnest(${ids}::text[], ${times}::timestamptz[], ${addresses}::text[]) AS seen (id, at, address)
        WHERE k.id = seen.id AND (k.last_used_at IS NULL OR k.last_used_at <= seen.at)`.pipe(Effect.asVoid)
    }).pipe(Effect.catchAllCause((cause) => Effect.logDebug("the last use of API keys could not be recorded", cause)))

    yield* Effect.addFinalizer(() => write)
    yield* Effect.forkScoped(Effect.schedule(write, Schedule.spaced("15 seconds")))
    return {
      used: (keyId: string, at: number, client: RequestState["client"]): void => {
        seen.set(keyId, { at, client })
      }
    }
  })
}) {
  static readonly layer = this.Default
}
