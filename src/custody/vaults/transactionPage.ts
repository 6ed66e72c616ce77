/**
 * The statement for a page of a vault's transactions, and the rows of a vault for lists across vaults. Filters by asset or network, status and direction use ranges of one
 * index: a given status and direction are one range, and an open one is a merge of the ranges of each value, which reads
 * row by row and stops at the end of the page. So the cost of a page does not depend on the filters, even if each matches
 * half of the vault and together they match nothing. Each index has its own order (the position of nulls): the pool's
 * planner does not sort (Database.ts), so only that index can be used. Indexes contain the first letters of status and
 * direction, which are distinct. Spec: Custody reads. Decisions D-2, D-15.
 */
import type { SqlClient, Statement } from "@effect/sql"
import type { Key } from "../../http/Page.ts"
import { inPeriod, type Period } from "../../http/Period.ts"
import { and } from "../../runtime/database/sql.ts"
import { Direction, TransactionStatus } from "../../values/Vault.ts"

/** Filters of transactions; absent ones do not filter. */
export interface TransactionFilter extends Period {
  readonly status?: string | undefined
  readonly direction?: string | undefined
  readonly asset?: string | undefined
  readonly network?: string | undefined
  readonly hash?: string | undefined
}

/** The orders of the indexes, all newest first. Columns without nulls: the position of nulls only selects the index. */
export const newest = "v.timestamp DESC, v.id DESC",
  byKey = "v.timestamp DESC, v.id DESC NULLS LAST"
const byAsset = "v.timestamp DESC NULLS LAST, v.id DESC",
  byNetwork = byKey,
  byStatus = "v.timestamp DESC NULLS LAST, v.id DESC NULLS LAST"

/**
 * A row `v` as the text of its response, which the ledger stores: building it from the columns costs a quarter of the requests a
 * second at 100 rows (docs/benchmarks.md). A field that is added later is a column that is appended here, with null for older
 * rows: `left(v.json, -1) || ',"memo":' || coalesce(to_json(v.memo)::text, 'null') || '}'`. So nothing needs a backfill.
 * Decision D-61.
 */
export const JSON_OF_ROW = "v.json"

/** The rows of transactions `v` in the period and after the previous page: a condition that begins with AND. */
export const within = (sql: SqlClient.SqlClient, period: Period, after: Key | null): Statement.Fragment =>
  sql`${inPeriod(sql, "v.timestamp", period)} ${and(sql, after !== null && sql`(v.timestamp, v.id) < (${after[0]}::timestamptz, ${after[1]}::uuid)`)}`

/** The order of the index by hash. Few rows share one: they are read in this order and then sorted. */
export const byHash = "v.hash, v.vault_id, v.network, v.index, v.direction"

/** Rows of transactions, and the order of a page of them. */
export interface Ordered {
  readonly rows: Statement.Fragment
  readonly order: string
}

/** The first `take` rows `v` of a vault after the previous page, or more: of each range of an index that the filters select. */
export const vaultRows = (
  sql: SqlClient.SqlClient,
  vaultId: Statement.Fragment,
  filter: TransactionFilter,
  after: Key | null,
  take: number,
  columns: string
): Ordered => {
  const { asset, direction, hash, network, status } = filter
  const rows = (where: Statement.Fragment, order: string) =>
    sql`SELECT ${sql.literal(columns)} FROM transactions v WHERE v.vault_id = ${vaultId} ${where} ${within(sql, filter, after)} ${and(
      sql,
      // An asset's id begins with its network, and the ledger rejects a transaction with another one.
      asset !== undefined && network !== undefined && !asset.startsWith(`${network}/`) && sql`false`
    )}
      ORDER BY ${sql.literal(order)}`
  const first = (where: Statement.Fragment, order: string) => sql`${rows(where, order)} LIMIT ${take}`

  if (hash !== undefined) {
    const rest = and(
      sql,
      status !== undefined && sql`v.status = ${status}`,
      direction !== undefined && sql`v.direction = ${direction}`,
      asset !== undefined && sql`v.asset_id = ${asset}`,
      network !== undefined && sql`v.network = ${network}`
    )
    return { rows: rows(sql`AND v.hash = ${hash} ${rest}`, byHash), order: newest }
  }
  if (asset === undefined && network === undefined && status === undefined && direction === undefined)
    return { rows: first(sql``, newest), order: newest }

  const [indexPrefix, order] =
    asset !== undefined
      ? [sql`AND v.asset_id = ${asset}`, byAsset]
      : network !== undefined
        ? [sql`AND v.network = ${network}`, byNetwork]
        : [sql``, byStatus]
  const statuses = status === undefined ? TransactionStatus.literals : [status]
  const directions = direction === undefined ? Direction.literals : [direction]
  const runs = statuses.flatMap((one) =>
    directions.map(
      (each) => sql`(${first(sql`${indexPrefix} AND (left(v.status, 1) || left(v.direction, 1)) = ${`${one[0]}${each[0]}`}`, order)})`
    )
  )
  return { rows: sql.join(" UNION ALL ", false)(runs), order }
}

/** The rows `id, timestamp, json` of a page of a vault, newest first, if `visible` holds. */
export const transactionPage = (
  sql: SqlClient.SqlClient,
  vaultId: string,
  filter: TransactionFilter,
  after: Key | null,
  take: number,
  visible: Statement.Fragment
): Statement.Statement<object> => {
  const columns = `v.id, v.timestamp, ${JSON_OF_ROW} AS json`
  const { order, rows } = vaultRows(sql, sql`${vaultId}`, filter, after, take, columns)
  return sql`SELECT v.id, v.timestamp, v.json FROM (${rows}) v WHERE ${visible} ORDER BY ${sql.literal(order)} LIMIT ${take}`
}
