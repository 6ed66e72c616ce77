/**
 * Balances at a time: of a row `v` of the present balances, the last record until then. The history is looked up only if the
 * newest record is later. C-6.
 */
import type { SqlClient, Statement } from "@effect/sql"
import { Effect } from "effect"
import { problem } from "../../http/Problem.ts"
import { databaseTime } from "../../runtime/database/databaseTime.ts"

/** Rejects a time of the parameter `at` that is in the future. */
export const requirePast = (sql: SqlClient.SqlClient, at: string | undefined) =>
  Effect.gen(function* () {
    if (at === undefined || Date.parse(at) <= (yield* Effect.orDie(databaseTime(sql)))) return
    return yield* problem("invalid_parameter", "at must not be in the future.", {
      fields: [{ in: "query", field: "at", code: "invalid_parameter", detail: "must not be in the future" }]
    })
  })

/** What a statement over `balances v` needs to read them at a time. */
export interface BalanceAt {
  /** A join, which gives each row at most one. */
  readonly join: Statement.Fragment
  /** The amount and the time of its record. */
  readonly amount: string
  readonly asOf: string
  /** True if there is a record. */
  readonly exists: Statement.Fragment
}

/** Balances at a time, or present ones without it. */
export const balanceAt = (sql: SqlClient.SqlClient, at: string | undefined): BalanceAt =>
  at === undefined
    ? { join: sql.literal(""), amount: "v.amount", asOf: "v.as_of", exists: sql.literal("true") }
    : {
        join: sql`LEFT JOIN LATERAL (
            SELECT h.amount, h.as_of FROM balance_history h
            WHERE h.vault_id = v.vault_id AND h.asset_id = v.asset_id AND h.as_of <= ${at}::timestamptz AND v.as_of > ${at}::timestamptz
            ORDER BY h.as_of DESC, h.id DESC LIMIT 1
          ) h ON true`,
        amount: "coalesce(h.amount, v.amount)",
        asOf: "coalesce(h.as_of, v.as_of)",
        exists: sql`(h.as_of IS NOT NULL OR v.as_of <= ${at}::timestamptz)`
      }
