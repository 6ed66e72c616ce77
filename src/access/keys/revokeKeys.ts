/** Revokes API keys: one, those of a user who was deactivated, or those of an organization. Spec: Authentication 10. */
import type { SqlClient, Statement } from "@effect/sql"
import { Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"

const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

/**
 * Revokes the keys that `which` selects from `api_keys k` and `users u`, and returns the ids of those that were not revoked
 * before. The caller records it in the audit log.
 */
export const revokeKeys = (sql: SqlClient.SqlClient, which: Statement.Fragment, reason: "revoked" | "user_deactivated" = "revoked") =>
  decodeIds(sql`
    UPDATE api_keys k SET revoked_at = now(), revoked_reason = ${reason} FROM users u
    WHERE u.id = k.user_id AND k.revoked_at IS NULL AND ${which} RETURNING k.id`)
