/**
 * The statements for transactions across vaults (vaultChoice.ts), newest first. The rows of the organization are read in the
 * range of one index, by hash, address, status or asset if one of them is given; other filters are checked for each row. Most rows
 * are confirmed, so that status has no index. C-11.
 */
import type { SqlClient, Statement } from "@effect/sql"
import { Effect } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import type { Key } from "../../http/Page.ts"
import type { ExportSource } from "../vaults/TransactionExport.ts"
import { byHash, byKey, JSON_OF_ROW, newest, type Ordered, type TransactionFilter, vaultRows, within } from "../vaults/transactionPage.ts"
import { LOOK, selectedVaults, selectsVault, type VaultFilter } from "./vaultChoice.ts"

/** Filters of transactions across vaults; absent ones do not filter. */
export interface AcrossFilter extends TransactionFilter, VaultFilter {
  /** From or to this address. */
  readonly address?: string | undefined
}

/** A row `v` as the text of its response. */
const JSON_WITH_VAULT = `left(${JSON_OF_ROW}, -1) || ',"vaultId":' || to_json(v.vault_id)::text || '}'`

/**
 * Whether each vault has an index for the filters. It has none for a hash, whose few rows are read together, nor for an address
 * with further filters.
 */
export const isAlongVaults = ({ address, asset, direction, hash, network, status }: AcrossFilter): boolean =>
  hash === undefined && (address === undefined || [asset, direction, network, status].every((one) => one === undefined))

/** True for rows `v` by an index over the 64-bit hash of an owner (a column, and its value) and another column. */
const hasKey = (sql: SqlClient.SqlClient, owner: string, ownerId: Statement.Fragment, column: string, value: string) =>
  sql`hashtextextended(${sql.literal(`v.${owner} || '/' || v.${column}`)}, 0) = hashtextextended(${ownerId} || '/' || ${value}::text, 0)
    AND ${sql.literal(`v.${column}`)} = ${value}`

/** Rows from or to an address, each once. */
const ofAddress = (
  sql: SqlClient.SqlClient,
  owner: string,
  ownerId: Statement.Fragment,
  address: string,
  rows: (where: Statement.Fragment) => Statement.Fragment
) =>
  sql`(${rows(hasKey(sql, owner, ownerId, "from_address", address))})
    UNION ALL (${rows(sql`${hasKey(sql, owner, ownerId, "to_address", address)} AND v.from_address <> ${address}`)})`

/** The first `take` keys `id, timestamp` of the vault `k`. */
const ofVault = (sql: SqlClient.SqlClient, filter: AcrossFilter, after: Key | null, take: number): Ordered => {
  const columns = "v.id, v.timestamp",
    vaultId = sql.literal("k.vault_id")
  if (filter.address === undefined) return vaultRows(sql, vaultId, filter, after, take, columns)
  const rows = (where: Statement.Fragment) => sql`
    SELECT ${sql.literal(columns)} FROM transactions v WHERE v.vault_id = k.vault_id AND ${where} ${within(sql, filter, after)}
    ORDER BY ${sql.literal(byKey)} LIMIT ${take}`
  return { rows: ofAddress(sql, "vault_id", vaultId, filter.address, rows), order: byKey }
}

/** Rows `v` that the most selective filter selects in the organization, at most `most` of each range. */
const ofOrganization = (
  sql: SqlClient.SqlClient,
  { organizationId }: PrincipalState,
  filter: AcrossFilter,
  after: Key | null,
  most: number | null
): Ordered => {
  const { address, asset, hash, status } = filter,
    owner = sql`${organizationId}::text`
  const rows = (order: string) => (where: Statement.Fragment) =>
    sql`SELECT v.* FROM transactions v WHERE ${where} ${within(sql, filter, after)} ORDER BY ${sql.literal(order)} LIMIT ${most}`
  if (hash !== undefined)
    return {
      rows: sql`SELECT v.* FROM transactions v WHERE v.hash = ${hash} AND v.organization_id = ${owner} ${within(sql, filter, after)} ORDER BY ${sql.literal(byHash)}`,
      order: newest
    }
  if (address !== undefined) return { rows: ofAddress(sql, "organization_id", owner, address, rows(byKey)), order: byKey }
  if (status !== undefined && status !== "confirmed")
    return { rows: rows(byKey)(sql`${hasKey(sql, "organization_id", owner, "status", status)} AND v.status <> 'confirmed'`), order: byKey }
  if (asset !== undefined) return { rows: rows(byKey)(hasKey(sql, "organization_id", owner, "asset_id", asset)), order: byKey }
  return { rows: rows(newest)(sql`v.organization_id = ${organizationId}`), order: newest }
}

/** True for rows `v` that the filters select, also those that an index has selected. */
const selects = (sql: SqlClient.SqlClient, principal: PrincipalState, filter: AcrossFilter): Statement.Fragment => {
  const { address, asset, direction, hash, network, status } = filter
  return sql.and([
    ...(hash === undefined ? [] : [sql`v.hash = ${hash}`]),
    ...(address === undefined ? [] : [sql`(v.from_address = ${address} OR v.to_address = ${address})`]),
    ...(asset === undefined ? [] : [sql`v.asset_id = ${asset}`]),
    ...(network === undefined ? [] : [sql`v.network = ${network}`]),
    ...(status === undefined ? [] : [sql`v.status = ${status}`]),
    ...(direction === undefined ? [] : [sql`v.direction = ${direction}`]),
    selectsVault(sql, principal, filter)
  ])
}

/** The keys `id, timestamp` of the first `take` rows of each of a few vaults, as `v`. */
const keysAlongVaults = (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  ids: ReadonlyArray<string>,
  filter: AcrossFilter,
  after: Key | null,
  take: number
): Ordered => {
  const { order, rows } = ofVault(sql, filter, after, take)
  return {
    rows: sql`(${selectedVaults(sql, principal, filter, ids)}) k
      CROSS JOIN LATERAL (SELECT v.id, v.timestamp FROM (${rows}) v ORDER BY ${sql.literal(order)} LIMIT ${take}) v`,
    order
  }
}

/** The first `take` rows `v` of few vaults; their keys are found first, without reading the rows of each vault. */
const rowsAlongVaults = (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  ids: ReadonlyArray<string>,
  filter: AcrossFilter,
  after: Key | null,
  take: number
): Statement.Fragment => {
  const { order, rows } = keysAlongVaults(sql, principal, ids, filter, after, take)
  const sorted = sql.literal(order)
  return sql`
    SELECT v.* FROM (SELECT v.id, v.timestamp FROM ${rows} ORDER BY ${sorted} LIMIT ${take}) p
    CROSS JOIN LATERAL (SELECT v.* FROM transactions v WHERE v.id = p.id LIMIT 1) v ORDER BY ${sql.literal(order.replaceAll("v.", "p."))}`
}

/** The first `take` rows `v` that match, however many there are to look at. */
const rowsAlongOrganization = (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  filter: AcrossFilter,
  after: Key | null,
  take: number
): Statement.Fragment => {
  const { order, rows } = ofOrganization(sql, principal, filter, after, null)
  return sql`SELECT v.* FROM (${rows}) v WHERE ${selects(sql, principal, filter)} ORDER BY ${sql.literal(order)} LIMIT ${take}`
}

/**
 * The rows `id, timestamp, json, last` of a page: along few vaults, or after looking at no more than {@link LOOK} rows of the
 * organization. Then `last` is true for the last of them, which has no `json` if it does not match.
 */
export const transactionsAcross = (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  few: ReadonlyArray<string> | undefined,
  filter: AcrossFilter,
  after: Key | null,
  take: number
): Statement.Statement<object> => {
  const json = sql.literal(JSON_WITH_VAULT)
  if (few !== undefined)
    return sql`SELECT v.id, v.timestamp, ${json} AS json, false AS last FROM (${rowsAlongVaults(sql, principal, few, filter, after, take)}) v`
  const { order, rows } = ofOrganization(sql, principal, filter, after, LOOK)
  const sorted = sql.literal(order)
  return sql`
    SELECT v.id, v.timestamp, CASE WHEN v.matches THEN ${json} END AS json, v.last FROM (
      SELECT v.*, ${selects(sql, principal, filter)} AS matches,
        row_number() OVER (ORDER BY ${sorted}) = ${LOOK} AS last
      FROM (SELECT v.* FROM (${rows}) v ORDER BY ${sorted} LIMIT ${LOOK}) v
    ) v WHERE v.matches OR v.last ORDER BY ${sorted} LIMIT ${take}`
}

/** The rows of a file (TransactionExport.ts). */
export const exportedAcross = (
  sql: SqlClient.SqlClient,
  principal: PrincipalState,
  few: ReadonlyArray<string> | undefined,
  filter: AcrossFilter
): ExportSource => {
  const [only, ...others] = few ?? filter.vaultId ?? []
  const vaultId = only === undefined || others.length > 0 ? null : only
  const named = { vaultId, permit: () => Effect.succeed("All vaults"), plainLabel: "All-vaults", period: filter }
  return few === undefined
    ? {
        ...named,
        json: JSON_WITH_VAULT,
        some: (most) => rowsAlongOrganization(sql, principal, filter, null, most),
        page: (after, take) => rowsAlongOrganization(sql, principal, filter, after, take)
      }
    : {
        ...named,
        json: JSON_WITH_VAULT,
        // In any order: sorting them all would take most of the time.
        some: (most) => sql`SELECT v.id FROM ${keysAlongVaults(sql, principal, few, filter, null, most).rows} LIMIT ${most}`,
        page: (after, take) => rowsAlongVaults(sql, principal, few, filter, after, take)
      }
}
