/** Ends what lets a deactivated user into the portal, for good: it must not work again after a reactivation. */
import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** The id of a user's link for a new password. */
export const passwordLinkId = (userId: string) => `password-reset/${userId}`

/** Ends the user's sessions, link for a new password and unused invitation. Run it in the transaction of the deactivation. */
export const endSignIns = (sql: SqlClient.SqlClient, userId: string) =>
  Effect.all([
    sql`DELETE FROM portal_verifications WHERE id = ${passwordLinkId(userId)}`,
    sql`DELETE FROM portal_sessions WHERE user_id = ${userId}`,
    sql`DELETE FROM portal_invitations WHERE user_id = ${userId} AND used_at IS NULL`
  ])
