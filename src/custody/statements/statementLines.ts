/**
 * The lines of a vault's statements of some days, read from the ledger in one consistent statement. Sums are Postgres
 * `numeric`, exact to the last digit. 00:00:00.000 UTC belongs to the day that begins. C-6.
 */
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { dayAfter } from "../../values/Day.ts"
import { StatementLine } from "../../values/Statement.ts"

const decode = decodeRows(Schema.Struct({ date: Schema.String, ...StatementLine.fields }))

/**
 * The lines of `days` days from `from` on, by day: one per asset that is held at a bound of the day, or has a booked transaction
 * or fee in it. Lines of zeros are left out, and a day without lines is absent.
 */
export const statementLines = (sql: SqlClient.SqlClient, vaultId: string, from: string, days: number) => {
  const midnight = (date: string) => `${date}T00:00:00.000Z`
  return Effect.map(
    decode(sql`
      WITH bounds AS (
        SELECT n AS at FROM generate_series(${midnight(from)}::timestamptz, ${midnight(dayAfter(from, days))}::timestamptz, interval '24 hours') n
      ), held AS (
        SELECT asset_id, at, amount AS opening, lead(amount) OVER (PARTITION BY asset_id ORDER BY at) AS closing FROM (
          SELECT b.asset_id, n.at, h.amount FROM balances b CROSS JOIN bounds n LEFT JOIN LATERAL (
            SELECT h.amount FROM balance_history h
            WHERE h.vault_id = b.vault_id AND h.asset_id = b.asset_id AND h.as_of < n.at
            ORDER BY h.as_of DESC, h.id DESC LIMIT 1
          ) h ON true
          WHERE b.vault_id = ${vaultId}
        ) amounts
      ), flows AS (
        SELECT m.asset_id, date_bin('24 hours', t.timestamp, timestamptz '2000-01-01T00:00:00Z') AS at,
          sum(m.inbound) AS inbound, sum(m.outbound) AS outbound, sum(m.fees) AS fees, sum(m.count) AS count
        FROM transactions t CROSS JOIN LATERAL (
          SELECT t.asset_id, CASE t.direction WHEN 'inbound' THEN t.amount ELSE 0 END AS inbound,
            CASE t.direction WHEN 'outbound' THEN t.amount ELSE 0 END AS outbound, 0 AS fees, 1 AS count WHERE t.status = 'confirmed'
          UNION ALL SELECT t.fee_asset_id, 0, 0, t.fee_amount, 0 WHERE t.fee_asset_id IS NOT NULL
        ) m
        WHERE t.vault_id = ${vaultId} AND t.status IN ('confirmed', 'failed')
          AND t.timestamp >= ${midnight(from)}::timestamptz AND t.timestamp < ${midnight(dayAfter(from, days))}::timestamptz
        GROUP BY 1, 2
      ), lines AS (
        SELECT asset_id, at, coalesce(max(opening), 0) AS opening, coalesce(max(closing), 0) AS closing,
          sum(inbound) AS inbound, sum(outbound) AS outbound, sum(fees) AS fees, sum(count)::bigint AS count
        FROM (
          SELECT asset_id, at, opening, closing, 0 AS inbound, 0 AS outbound, 0 AS fees, 0 AS count FROM held WHERE closing IS NOT NULL
          UNION ALL SELECT asset_id, at, NULL, NULL, inbound, outbound, fees, count FROM flows
        ) parts GROUP BY asset_id, at
      )
      SELECT to_char(l.at, 'YYYY-MM-DD') AS date, a.id AS asset, a.symbol, trim_scale(l.opening)::text AS opening,
        trim_scale(l.inbound)::text AS inbound, trim_scale(l.outbound)::text AS outbound, trim_scale(l.fees)::text AS fees,
        trim_scale(l.closing - l.opening - l.inbound + l.outbound + l.fees)::text AS other, trim_scale(l.closing)::text AS closing,
        l.count AS "transactionCount"
      FROM lines l JOIN assets a ON a.id = l.asset_id
      WHERE l.count > 0 OR greatest(l.opening, l.closing, l.inbound, l.outbound, l.fees) > 0
      ORDER BY a.network, a.id <> a.network || '/native', a.symbol, a.id`),
    (rows) => {
      const byDate = new Map<string, Array<StatementLine>>()
      for (const { date, ...line } of rows) byDate.set(date, [...(byDate.get(date) ?? []), line])
      return byDate as ReadonlyMap<string, ReadonlyArray<StatementLine>>
    }
  )
}

/** The assets whose lines differ between two statements of a day. A symbol is only a name. */
export const changedAssets = (before: ReadonlyArray<StatementLine>, after: ReadonlyArray<StatementLine>): ReadonlySet<string> => {
  const accounts = (lines: ReadonlyArray<StatementLine>) =>
    new Map(lines.map(({ asset, symbol: _, ...line }) => [asset, JSON.stringify(line)]))
  const [old, now] = [accounts(before), accounts(after)]
  return new Set([...old.keys(), ...now.keys()].filter((asset) => old.get(asset) !== now.get(asset)))
}
