/** The grace period of a rotated secret, in which requests are signed with it as well. Spec: Limits. Decision D-25. */
import type { SqlClient } from "@effect/sql"
import { Duration, Effect, Schema } from "effect"
import { problem } from "../../http/Problem.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { LIVE_SECRETS } from "./signingSecret.ts"

const decode = decodeRows(Schema.Struct({ expires: Schema.String }))

/** Begins the grace period of a webhook's current secret, and returns its end. Fails if three secrets are valid. Call it in a transaction. */
export const beginGrace = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, webhookId: string, grace: Duration.Duration) {
  yield* sql`DELETE FROM webhook_secrets WHERE webhook_id = ${webhookId} AND expires_at <= clock_timestamp()`
  const live = yield* sql`SELECT id FROM webhook_secrets WHERE webhook_id = ${webhookId}`
  if (live.length >= LIVE_SECRETS) {
    return yield* problem(
      "rotation_limit_reached",
      `At most ${LIVE_SECRETS} secrets can be active. Wait until an older one expires, or expire them now.`
    )
  }
  // By the clock that the grace period uses.
  const [previous] = yield* decode(sql`
    UPDATE webhook_secrets SET expires_at = clock_timestamp() + ${Duration.toMillis(grace)} * interval '1 millisecond'
    WHERE webhook_id = ${webhookId} AND expires_at IS NULL RETURNING expires_at AS expires`)
  return previous === undefined ? yield* Effect.die(new Error(`the webhook ${webhookId} has no secret that is valid`)) : previous.expires
})
