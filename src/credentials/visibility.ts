/**
 * Which vaults a principal sees, as a condition for a statement's WHERE: the user's Developer role at this
 * moment, and the key's allowlist. Every statement that reads custody rows carries it, so that no path can
 * forget it and no role is older than the row it guards. Spec: Authentication 11. Decision D-7.
 */
import type { SqlClient } from "@effect/sql"
import type { PrincipalState } from "./Principal.ts"

/** True for a vault (by the column or value that holds its id) that the principal sees, scopes aside. */
export const seesVault = (sql: SqlClient.SqlClient, principal: PrincipalState, vaultId: ReturnType<typeof sql.literal>) => sql`
  EXISTS (SELECT 1 FROM vault_roles r WHERE r.user_id = ${principal.userId} AND r.vault_id = ${vaultId})
  AND (${principal.vaultAllowlist}::text[] IS NULL OR ${vaultId} = ANY(${principal.vaultAllowlist}::text[]))`
