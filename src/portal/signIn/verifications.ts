/** What a sign-in step keeps for a few minutes. The user's id is in the value, so that rows are deleted with the organization. */
import type { SqlClient } from "@effect/sql"
import { Duration, Effect } from "effect"

/** Keeps a value under an identifier, in place of an earlier one with the same id. Also deletes expired rows. */
export const keepVerification = (
  sql: SqlClient.SqlClient,
  {
    id,
    identifier,
    userId,
    validity,
    value
  }: {
    readonly id: string
    readonly identifier: string
    readonly value: string
    /** Empty for any user. */
    readonly userId: string
    readonly validity: Duration.Duration
  }
) =>
  Effect.zipRight(
    sql`DELETE FROM portal_verifications WHERE expires_at < clock_timestamp()`,
    sql`
      INSERT INTO portal_verifications (id, identifier, value, expires_at)
      VALUES (${id}, ${identifier}, ${JSON.stringify([value, userId])}, clock_timestamp() + make_interval(secs => ${Duration.toSeconds(validity)}))
      ON CONFLICT (id) DO UPDATE SET identifier = excluded.identifier, value = excluded.value, expires_at = excluded.expires_at`
  )
