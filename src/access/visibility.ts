/**
 * Which vaults, entities, webhooks and events a principal sees, as conditions for a statement's WHERE. Every statement
 * that reads for a caller carries them, so no path can forget them and no role is older than the row it guards. Nobody
 * can make the service send, or read through its log, what the same key could not read directly.
 * Spec: Authentication 11, 12. Decisions D-7, D-8, D-9.
 */
import type { SqlClient } from "@effect/sql"
import type { PrincipalState } from "../credentials/Principal.ts"

type Literal = ReturnType<SqlClient.SqlClient["literal"]>

/** True for a vault, by the column or value that holds its id, that the principal sees, scopes aside: the user's Developer role now, and the key's allowlist. */
export const seesVault = (sql: SqlClient.SqlClient, principal: PrincipalState, vaultId: Literal) => sql`
  EXISTS (SELECT 1 FROM vault_roles r WHERE r.user_id = ${principal.userId} AND r.vault_id = ${vaultId})
  AND (${principal.vaultAllowlist}::text[] IS NULL OR ${vaultId} = ANY(${principal.vaultAllowlist}::text[]))`

/**
 * True for an entity, by the value that holds its id, that the principal's user has access to. It is asked row by row, and
 * SELECT around it keeps it so: as a join Postgres thinks that few rows pass, and sorts the whole log to find a page of them.
 */
export const reachesEntity = (sql: SqlClient.SqlClient, principal: PrincipalState, entityId: Literal) =>
  principal.isOwner
    ? sql`(SELECT EXISTS (SELECT 1 FROM entities n WHERE n.id = ${entityId} AND n.organization_id = ${principal.organizationId}))`
    : sql`(SELECT EXISTS (SELECT 1 FROM vaults v JOIN vault_roles r ON r.vault_id = v.id AND r.user_id = ${principal.userId} WHERE v.entity_id = ${entityId}))`

/** True for a row of `webhooks w` that the principal sees, deleted ones included. */
export const seesWebhook = (sql: SqlClient.SqlClient, principal: PrincipalState) => sql`
  w.organization_id = ${principal.organizationId}
  AND NOT EXISTS (SELECT 1 FROM webhook_entities we WHERE we.webhook_id = w.id
    AND NOT ${reachesEntity(sql, principal, sql.literal("we.entity_id"))})
  AND (${principal.vaultAllowlist}::text[] IS NULL OR (w.vault_ids IS NOT NULL AND w.vault_ids <@ ${principal.vaultAllowlist}::text[]))`

/** True for a row of `events e` that the principal sees, `vault:read` aside. */
export const seesEvent = (sql: SqlClient.SqlClient, principal: PrincipalState) => sql`
  e.organization_id = ${principal.organizationId}
  AND ${reachesEntity(sql, principal, sql.literal("e.entity_id"))}
  AND CASE WHEN e.vault_id IS NULL THEN ${principal.vaultAllowlist}::text[] IS NULL
      ELSE ${seesVault(sql, principal, sql.literal("e.vault_id"))} END
  AND (e.audience IS NULL OR NOT EXISTS (SELECT 1 FROM unnest(e.audience) AS a (id) WHERE NOT ${reachesEntity(sql, principal, sql.literal("a.id"))}))`
