/**
 * The vaults of a list across vaults. If there are few candidates, the list merges the ranges of each one's index. If there are
 * many, it reads the rows of the whole organization, checks each row, and looks at a bounded number. Either way a page does not
 * cost more with more rows. Decision D-7. C-11.
 */
import type { SqlClient, Statement } from "@effect/sql"
import { Effect, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { seesVault } from "../../access/visibility/visibility.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"

/** Filters by vault; absent ones do not filter. An unknown or hidden id matches nothing. */
export interface VaultFilter {
  readonly vaultId?: ReadonlyArray<string> | undefined
  readonly entityId?: ReadonlyArray<string> | undefined
}

/** Rows that a page looks at, at most. */
export const LOOK = 20_000
/** Vaults whose ranges are merged, at most: about as many rows as reading the organization's for a caller who sees one in a hundred. */
const FEW = 100

const decode = decodeRows(Schema.Struct({ id: Schema.String }))

/** The ids of all vaults that may match, if they are few enough to merge `take` rows of each; undefined if they are many. */
export const fewVaults = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { userId, vaultAllowlist }: PrincipalState,
  { entityId, vaultId }: VaultFilter,
  take: number
) {
  const most = Math.min(FEW, Math.floor(LOOK / take))
  for (const named of [vaultId, vaultAllowlist]) {
    const ids = [...new Set(named)]
    if (named != null && ids.length <= most) return ids
  }
  const found = yield* decode(sql`SELECT r.vault_id AS id FROM vault_roles r WHERE r.user_id = ${userId} LIMIT ${most + 1}`)
  if (found.length <= most) return found.map(({ id }) => id)
  if (entityId === undefined) return undefined
  const members = yield* decode(sql`SELECT v.id FROM vaults v WHERE v.entity_id = ANY(${entityId}::text[]) LIMIT ${most + 1}`)
  return members.length <= most ? members.map(({ id }) => id) : undefined
})

/** True for a row `v` with a vault that the caller can see and the filters select. The SELECTs make Postgres evaluate it row by row. */
export const selectsVault = (sql: SqlClient.SqlClient, principal: PrincipalState, { entityId, vaultId }: VaultFilter): Statement.Fragment =>
  sql`(SELECT ${seesVault(sql, principal, sql.literal("v.vault_id"))}) ${and(
    sql,
    vaultId !== undefined && sql`v.vault_id = ANY(${vaultId}::text[])`,
    entityId !== undefined && sql`(SELECT x.entity_id FROM vaults x WHERE x.id = v.vault_id) = ANY(${entityId}::text[])`
  )}`

/** Those of the vaults that the caller can see and the filters select, as `v (vault_id)`. */
export const selectedVaults = (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  filter: VaultFilter,
  ids: ReadonlyArray<string>
): Statement.Fragment => sql`SELECT v.vault_id FROM unnest(${ids}::text[]) v (vault_id) WHERE ${selectsVault(sql, principal, filter)}`
