/** Locks an account in the transaction of a change: one change at a time, and none beside a reset, which replaces the account. */
import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { signedOut } from "../../http/Problem.ts"

/**
 * Locks the account, and then looks for what gave access to it: the session, or the passkey. A reset deletes both. Fails with
 * `signed_out` if it is gone.
 */
export const lockAccount = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  userId: string,
  access: { readonly session: string } | { readonly passkey: string }
) {
  const account = yield* sql`SELECT 1 FROM portal_users WHERE id = ${userId} FOR NO KEY UPDATE`
  const left = yield* "session" in access
    ? sql`SELECT 1 FROM portal_sessions WHERE id = ${access.session} AND user_id = ${userId}`
    : sql`SELECT 1 FROM portal_passkeys WHERE id = ${access.passkey} AND user_id = ${userId}`
  if (account.length === 0 || left.length === 0) return yield* signedOut()
})
