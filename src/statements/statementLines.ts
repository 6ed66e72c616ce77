/**
 * The lines of a vault's statement of a day, read from the ledger in one consistent statement. Sums are Postgres
 * `numeric`, exact to the last digit. 00:00:00.000 UTC belongs to the day that begins. C-6.
 */
import type { SqlClient } from "@effect/sql"
import type { StatementLine } from "./Statement.ts"

/** The day after a day, or so many days later, both as `YYYY-MM-DD`. */
export const dayAfter = (date: string, days = 1): string =>
  new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10)

/**
 * One line per asset with a balance record or a confirmed transaction by the end of the day, without lines that are all
 * zero and have no record.
 */
export const statementLines = (sql: SqlClient.SqlClient, vaultId: string, date: string) => {
  const from = `${date}T00:00:00.000Z`,
    to = `${dayAfter(date)}T00:00:00.000Z`
  /** The balance at a bound of the day. */
  const before = (bound: string) => sql`
    SELECT h.amount FROM balance_history h
    WHERE h.vault_id = b.vault_id AND h.asset_id = b.asset_id AND h.as_of < ${bound}::timestamptz
    ORDER BY h.as_of DESC, h.id DESC LIMIT 1`
  return sql<StatementLine>`
    WITH flows AS (
      SELECT t.asset_id, coalesce(sum(t.amount) FILTER (WHERE t.direction = 'inbound'), 0) AS inbound,
        coalesce(sum(t.amount) FILTER (WHERE t.direction = 'outbound'), 0) AS outbound, count(*) AS count
      FROM transactions t
      WHERE t.vault_id = ${vaultId} AND t.status = 'confirmed' AND t.timestamp >= ${from}::timestamptz AND t.timestamp < ${to}::timestamptz
      GROUP BY t.asset_id
    ), held AS (
      SELECT b.asset_id, coalesce(o.amount, 0) AS opening, c.amount AS closing
      FROM balances b CROSS JOIN LATERAL (${before(to)}) c LEFT JOIN LATERAL (${before(from)}) o ON true
      WHERE b.vault_id = ${vaultId}
    ), ids AS (
      SELECT asset_id FROM held UNION SELECT asset_id FROM flows
    ), lines AS (
      SELECT i.asset_id, coalesce(h.opening, 0) AS opening, coalesce(h.closing, 0) AS closing,
        coalesce(f.inbound, 0) AS inbound, coalesce(f.outbound, 0) AS outbound, coalesce(f.count, 0) AS count
      FROM ids i LEFT JOIN held h ON h.asset_id = i.asset_id LEFT JOIN flows f ON f.asset_id = i.asset_id
    )
    SELECT a.id AS asset, a.symbol, trim_scale(l.opening)::text AS opening, trim_scale(l.inbound)::text AS inbound,
      trim_scale(l.outbound)::text AS outbound, trim_scale(l.closing - l.opening - l.inbound + l.outbound)::text AS other,
      trim_scale(l.closing)::text AS closing, l.count AS "transactionCount"
    FROM lines l JOIN assets a ON a.id = l.asset_id
    ORDER BY a.network, a.id <> a.network || '/native', a.symbol, a.id`
}

/** Whether two statements of a day have the same content. A symbol is only a name. */
export const sameAccount = (a: ReadonlyArray<StatementLine>, b: ReadonlyArray<StatementLine>): boolean => {
  const account = (lines: ReadonlyArray<StatementLine>) =>
    JSON.stringify(lines.map(({ symbol: _, ...line }) => line).sort((x, y) => (x.asset < y.asset ? -1 : 1)))
  return account(a) === account(b)
}
