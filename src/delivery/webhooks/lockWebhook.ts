/** Locks a webhook in the transaction of a change that concerns it as a whole. */
import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { requireManage } from "../../access/visibility/scopeMiddleware.ts"
import { seesWebhook } from "../../access/visibility/visibility.ts"
import { notFound } from "../../http/Problem.ts"

/**
 * Locks the webhook if the caller can see it and may change it; fails with 404 or 403 otherwise. Read the webhook afterwards:
 * another transaction may have changed it before the lock was granted. Spec: Authentication 12.
 */
export const lockWebhook = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, principal: PrincipalState, webhookId: string) {
  const rows = yield* sql`
    SELECT w.id FROM webhooks w WHERE w.id = ${webhookId} AND w.deleted_at IS NULL AND ${seesWebhook(sql, principal)} FOR NO KEY UPDATE`
  if (rows.length === 0) return yield* notFound()
  yield* requireManage(principal)
})
