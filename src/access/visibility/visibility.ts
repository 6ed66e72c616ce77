/**
 * Which vaults, entities, webhooks and events a principal can see, as conditions for a WHERE clause. Every statement that
 * reads for a caller includes them, so no route can forget them, and roles are never staler than the rows they guard.
 * Nobody can make the service send, or show in its log, what the same key could not read directly. Spec: Authentication
 * 11, 12. Decisions D-7, D-8, D-9.
 */
import type { SqlClient, Statement } from "@effect/sql"
import type { PrincipalState } from "../credentials/Principal.ts"

type Literal = ReturnType<SqlClient.SqlClient["literal"]>

/** True for a vault that an allowlist includes; null includes all. The subquery lets Postgres hash long lists, where ANY would compare. */
export const allows = (sql: SqlClient.SqlClient, allowlist: PrincipalState["vaultAllowlist"], vaultId: Literal) =>
  sql`(${allowlist}::text[] IS NULL OR ${vaultId} IN (SELECT unnest(${allowlist}::text[])))`

/**
 * True for a vault (the column or value with its id) that the principal can see, scopes aside: the user has the Developer
 * role now, and the key's allowlist includes it.
 */
export const seesVault = (sql: SqlClient.SqlClient, principal: PrincipalState, vaultId: Literal) => sql`
  EXISTS (SELECT 1 FROM vault_roles r WHERE r.user_id = ${principal.userId} AND r.vault_id = ${vaultId})
  AND ${allows(sql, principal.vaultAllowlist, vaultId)}`

/**
 * True if the principal can see every vault of those rows of `vault_entities p`: the log has events of an entity's vaults, and of
 * those that belonged to it, until their day is removed after 33 days (Retention.ts).
 */
export const seesEveryVault = (sql: SqlClient.SqlClient, principal: PrincipalState, which: Statement.Fragment) => sql`
  NOT EXISTS (SELECT 1 FROM vault_entities p WHERE ${which} AND (p.until IS NULL OR p.until > now() - interval '34 days')
    AND NOT (${seesVault(sql, principal, sql.literal("p.vault_id"))}))`

/**
 * True for an entity (the value with its id) that the principal's user has access to. The SELECT around it makes Postgres
 * evaluate it row by row; as a join, Postgres would expect few rows to pass and sort the whole log to find one page.
 */
export const reachesEntity = (sql: SqlClient.SqlClient, principal: PrincipalState, entityId: Literal) =>
  principal.isOwner
    ? sql`(SELECT EXISTS (SELECT 1 FROM entities n WHERE n.id = ${entityId} AND n.organization_id = ${principal.organizationId}))`
    : sql`(SELECT EXISTS (SELECT 1 FROM vault_roles r WHERE (r.user_id || '/' || r.entity_id) = ${principal.userId} || '/' || ${entityId}))`

/**
 * The ids of the entities that a principal reaches, each once: all of the organization for an owner, otherwise those on whose
 * vaults the user has the Developer role. A key with an allowlist reaches the entities of its visible vaults. C-11.
 */
export const reachedEntities = (
  sql: SqlClient.SqlClient,
  { isOwner, organizationId, userId, vaultAllowlist }: Pick<PrincipalState, "isOwner" | "organizationId" | "userId" | "vaultAllowlist">
) =>
  isOwner && vaultAllowlist === null
    ? sql`SELECT n.id FROM entities n WHERE n.organization_id = ${organizationId}`
    : sql`SELECT DISTINCT r.entity_id AS id FROM vault_roles r WHERE r.user_id = ${userId} AND ${allows(sql, vaultAllowlist, sql.literal("r.vault_id"))}`

/** True for a row of `webhooks w` that the principal can see, including deleted ones. */
export const seesWebhook = (sql: SqlClient.SqlClient, principal: PrincipalState) => sql`
  w.organization_id = ${principal.organizationId}
  AND NOT EXISTS (SELECT 1 FROM webhook_entities we WHERE we.webhook_id = w.id
    AND NOT ${reachesEntity(sql, principal, sql.literal("we.entity_id"))})
  AND (${principal.vaultAllowlist}::text[] IS NULL OR (w.vault_ids IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM unnest(w.vault_ids) AS v (id) WHERE (${allows(sql, principal.vaultAllowlist, sql.literal("v.id"))}) IS NOT TRUE)))`

/**
 * True for a row of `events e` that the principal can see, `vault:read` aside. Who sees a vault sees all of its events, also
 * those of an entity that it belonged to before. An entity may have thousands of vaults, and an audience a hundred entities, so those
 * that the principal reaches are read once for a statement, as the keys of an object: Postgres would hash the result of IN only if
 * it expected it to be small.
 */
export const seesEvent = (sql: SqlClient.SqlClient, principal: PrincipalState) => sql`
  e.organization_id = ${principal.organizationId}
  AND CASE WHEN e.vault_id IS NOT NULL THEN ${seesVault(sql, principal, sql.literal("e.vault_id"))}
      ELSE ${principal.vaultAllowlist}::text[] IS NULL
        AND (SELECT jsonb_object_agg(n.id, 1) FROM (${reachedEntities(sql, principal)}) n) ?& (coalesce(e.audience, '{}') || e.entity_id) END`
