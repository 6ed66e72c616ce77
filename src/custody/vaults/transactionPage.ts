/**
 * The statement for a page of a vault's transactions. Filters by asset or network, status and direction use ranges of one
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
const newest = "timestamp DESC, id DESC",
  byAsset = "timestamp DESC NULLS LAST, id DESC",
  byNetwork = "timestamp DESC, id DESC NULLS LAST",
  byStatus = "timestamp DESC NULLS LAST, id DESC NULLS LAST"

/**
 * A row `v` as the text of its response, which the ledger stores: building it from the columns costs a quarter of the requests a
 * second at 100 rows (docs/benchmarks.md). A field that is added later is a column that is appended here, with null for older
 * rows: `left(v.json, -1) || ',"memo":' || coalesce(to_json(v.memo)::text, 'null') || '}'`. So nothing needs a backfill.
 * Decision D-61.
 */
export const JSON_OF_ROW = "v.json"

/** The rows `id, timestamp, json` of a page, newest first, if `visible` holds. */
export const transactionPage = (
  sql: SqlClient.SqlClient,
  vaultId: string,
  filter: TransactionFilter,
  after: Key | null,
  take: number,
  visible: Statement.Fragment
): Statement.Statement<object> => {
  const { asset, direction, hash, network, status } = filter
  const within = sql`${inPeriod(sql, "v.timestamp", filter)} ${and(
    sql,
    // An asset's id begins with its network, and the ledger rejects a transaction with another one.
    asset !== undefined && network !== undefined && !asset.startsWith(`${network}/`) && sql`false`,
    after !== null && sql`(v.timestamp, v.id) < (${after[0]}::timestamptz, ${after[1]}::uuid)`
  )}`
  const json = sql.literal(`${JSON_OF_ROW} AS json`)
  const rows = (where: Statement.Fragment, order: string) =>
    sql`SELECT v.id, v.timestamp, ${json} FROM transactions v WHERE v.vault_id = ${vaultId} ${where} ${within}
      ORDER BY ${sql.literal(order)} LIMIT ${take}`
  const page = (rows: Statement.Fragment, order: string) =>
    sql`SELECT v.id, v.timestamp, v.json FROM (${rows}) v WHERE ${visible} ORDER BY ${sql.literal(order)} LIMIT ${take}`

  if (hash !== undefined) {
    // Few rows share a hash. They are read in the order of its index and then sorted.
    const rest = and(
      sql,
      status !== undefined && sql`v.status = ${status}`,
      direction !== undefined && sql`v.direction = ${direction}`,
      asset !== undefined && sql`v.asset_id = ${asset}`,
      network !== undefined && sql`v.network = ${network}`
    )
    const found = sql`SELECT v.id, v.timestamp, ${json} FROM transactions v WHERE v.hash = ${hash} AND v.vault_id = ${vaultId} ${rest} ${within}
      ORDER BY v.hash, v.vault_id, v.network, v.index, v.direction`
    return page(found, newest)
  }
  if (asset === undefined && network === undefined && status === undefined && direction === undefined)
    return page(rows(sql``, newest), newest)

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
      (each) => sql`(${rows(sql`${indexPrefix} AND (left(v.status, 1) || left(v.direction, 1)) = ${`${one[0]}${each[0]}`}`, order)})`
    )
  )
  return page(sql.join(" UNION ALL ", false)(runs), order)
}
