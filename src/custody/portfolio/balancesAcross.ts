/**
 * The statements for balances across vaults (vaultChoice.ts), in the order of a vault's balances, those of one asset by vault.
 * C-6, C-11. Decision D-2.
 */
import type { SqlClient, Statement } from "@effect/sql"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import type { Key } from "../../http/Page.ts"
import { and } from "../../runtime/database/sql.ts"
import { balanceAt } from "../vaults/balanceAt.ts"
import { LOOK, selectedVaults, selectsVault, type VaultFilter } from "./vaultChoice.ts"

/** Filters of balances across vaults; absent ones do not filter. */
export interface BalanceFilter extends VaultFilter {
  readonly asset?: string | undefined
  readonly network?: string | undefined
  readonly at?: string | undefined
}

/** The columns that identify an asset, in the order of lists. */
const ASSET = "v.network, v.is_token, v.symbol, v.asset_id"

/** The order of the rows. Columns that a filter fixes are left out: Postgres would not know that an index has this order. */
const orderOf = ({ asset, network }: BalanceFilter): string =>
  asset !== undefined ? "v.vault_id" : `${network === undefined ? ASSET : ASSET.replace("v.network, ", "")}, v.vault_id`

/** Conditions on rows `v` that an index serves: the filters, and the place after a key, which begins with the number and the symbol of an asset. */
const ranges = (sql: SqlClient.SqlClient, { asset, network }: BalanceFilter, after: Key | null): Statement.Fragment => {
  const of = (column: string, where: Statement.Fragment) => sql`(SELECT ${sql.literal(column)} FROM assets a WHERE ${where})`
  const last = (column: string) => of(column, sql`a.number = ${after?.[0]}::bigint`)
  const [, symbol, vaultId] = after ?? []
  return and(
    sql,
    network !== undefined && sql`v.network = ${network}`,
    asset !== undefined &&
      sql`v.network = ${asset.slice(0, asset.indexOf("/"))} AND v.is_token = ${!asset.endsWith("/native")}
        AND v.symbol = ${of("a.symbol", sql`a.id = ${asset}`)} AND v.asset_id = ${asset}`,
    after !== null && asset !== undefined && sql`v.vault_id > ${vaultId}`,
    after !== null &&
      asset === undefined &&
      sql`(${sql.literal(ASSET)}, v.vault_id) > (${last("a.network")}, ${last("a.id <> a.network || '/native'")}, ${symbol}, ${last("a.id")}, ${vaultId})`
  )
}

/** The first `take` rows `v` of each of a few vaults, with `amount` and `as_of` at the time. */
const rowsAlongVaults = (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  ids: ReadonlyArray<string>,
  filter: BalanceFilter,
  after: Key | null,
  take: number
): Statement.Fragment => {
  const { amount, asOf, exists, join } = balanceAt(sql, filter.at)
  return sql`
    SELECT v.* FROM (${selectedVaults(sql, principal, filter, ids)}) k CROSS JOIN LATERAL (
      SELECT ${sql.literal(`${ASSET}, v.vault_id, ${amount} AS amount, ${asOf} AS as_of`)} FROM balances v ${join}
      WHERE v.vault_id = k.vault_id AND ${exists} ${ranges(sql, filter, after)} ORDER BY ${sql.literal(orderOf(filter))} LIMIT ${take}
    ) v`
}

/** The first `most` rows `v` of the organization, whatever the caller can see. */
const rowsOfOrganization = (
  sql: SqlClient.SqlClient,
  { organizationId }: PrincipalState,
  filter: BalanceFilter,
  after: Key | null,
  most: number | null
): Statement.Fragment =>
  sql`SELECT v.* FROM balances v WHERE v.organization_id = ${organizationId} ${ranges(sql, filter, after)}
    ORDER BY ${sql.literal(orderOf(filter))} LIMIT ${most}`

/**
 * The rows of a page: along few vaults, or after looking at no more than {@link LOOK} rows of the organization. Then `last` is true
 * for the last of them, which may not match.
 */
export const balancesAcross = (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  few: ReadonlyArray<string> | undefined,
  filter: BalanceFilter,
  after: Key | null,
  take: number
): Statement.Statement<object> => {
  const order = sql.literal(orderOf(filter))
  const columns = (amount: string, asOf: string) =>
    sql.literal(`v.asset_id AS asset, v.network, v.symbol, v.vault_id AS "vaultId", ${amount} AS amount, ${asOf} AS "asOf",
      (SELECT a.number FROM assets a WHERE a.id = v.asset_id)::text AS number`)
  if (few !== undefined)
    return sql`
      SELECT ${columns("v.amount", "v.as_of")}, true AS matches, false AS last
      FROM (${rowsAlongVaults(sql, principal, few, filter, after, take)}) v ORDER BY ${order} LIMIT ${take}`
  const { amount, asOf, exists, join } = balanceAt(sql, filter.at)
  return sql`
    SELECT ${columns(amount, asOf)}, v.matches AND ${exists} AS matches, v.last FROM (
      SELECT v.*, ${selectsVault(sql, principal, filter)} AS matches, row_number() OVER (ORDER BY ${order}) = ${LOOK} AS last
      FROM (${rowsOfOrganization(sql, principal, filter, after, LOOK)}) v
    ) v ${join} WHERE (v.matches OR v.last) AND (${exists} OR v.last) ORDER BY ${order} LIMIT ${take}`
}

/**
 * The first `take` assets after the one of the key, each with the number of rows that were looked at and the sum over those that
 * match: of few vaults, or of the first `most` rows of the organization, which may end within an asset.
 */
export const totalsAcross = (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  few: ReadonlyArray<string> | undefined,
  filter: BalanceFilter,
  after: Key | null,
  take: number,
  most: number | null
): Statement.Statement<object> => {
  const { amount, exists, join } = balanceAt(sql, few === undefined ? filter.at : undefined)
  // After every vault of the asset: the tilde is greater than any character of an id.
  const place = after === null ? null : [after[0] ?? "", after[1] ?? "", "~"]
  const [rows, matches] =
    few === undefined
      ? [rowsOfOrganization(sql, principal, filter, place, most), sql`${selectsVault(sql, principal, filter)} AND ${exists}`]
      : [rowsAlongVaults(sql, principal, few, filter, place, take), sql`true`]
  // OFFSET 0: each row is checked once, and not for the sum and the count.
  const grouped = sql.literal(filter.network === undefined ? ASSET : ASSET.replace("v.network, ", ""))
  return sql`
    SELECT v.asset_id AS asset, v.symbol, ${filter.network === undefined ? sql.literal("v.network") : sql`${filter.network}::text AS network`},
      trim_scale(coalesce(sum(v.total) FILTER (WHERE v.matches), 0)) AS amount, count(*) FILTER (WHERE v.matches) AS "vaultCount",
      count(*) AS looked, (SELECT a.number FROM assets a WHERE a.id = v.asset_id)::text AS number
    FROM (SELECT v.*, ${sql.literal(amount)} AS total, ${matches} AS matches FROM (${rows}) v ${join} OFFSET 0) v
    GROUP BY ${grouped} ORDER BY ${grouped} LIMIT ${take}`
}
