/** Reads of transactions and balances across the vaults that the caller can see. C-11. Decision D-7. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import type { Key, Searched } from "../../http/Page.ts"
import { castRows, decodeRows } from "../../runtime/database/decodeRows.ts"
import { DirectRows } from "../../runtime/database/pgWorkarounds.ts"
import { Balance } from "../../values/Vault.ts"
import { placeOf } from "../vaults/balancePlace.ts"
import type { ExportSource } from "../vaults/TransactionExport.ts"
import { type BalanceFilter, balancesAcross, totalsAcross } from "./balancesAcross.ts"
import { type AcrossFilter, exportedAcross, isAlongVaults, transactionsAcross } from "./transactionsAcross.ts"
import { fewVaults } from "./vaultChoice.ts"

const TransactionRow = Schema.Struct({
  /** Its id as a UUID. */
  id: Schema.String,
  timestamp: Schema.String,
  /** The transaction as in the API's response; null if it does not match. */
  json: Schema.NullOr(Schema.String),
  /** Whether it is the last row that a page looks at. */
  last: Schema.Boolean
})
type TransactionRow = typeof TransactionRow.Type

/** `number` is the asset's, which is short enough for a cursor. */
const BalanceRow = Schema.Struct({
  ...Balance.fields,
  vaultId: Schema.String,
  number: Schema.String,
  matches: Schema.Boolean,
  last: Schema.Boolean
})
type BalanceRow = typeof BalanceRow.Type

const { asOf: _, ...sumFields } = Balance.fields
const TotalRow = Schema.Struct({ ...sumFields, vaultCount: Schema.Number, number: Schema.String, looked: Schema.Number })
type TotalRow = typeof TotalRow.Type

// Hot: up to 501 rows.
const castTransactions = castRows(TransactionRow)
const decodeBalances = decodeRows(BalanceRow),
  decodeTotals = decodeRows(TotalRow)

/** Balances that a page of totals adds up, if it has more than one asset. */
const SUMMED = 100_000

export class PortfolioRepo extends Effect.Service<PortfolioRepo>()("custody/PortfolioRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const direct = yield* DirectRows

    const few = (principal: PrincipalState, filter: AcrossFilter, take: number) =>
      isAlongVaults(filter) ? fewVaults(sql, principal, filter, take) : Effect.succeed(undefined)

    /** Totals of the organization: of whole assets only. */
    const totalsOfOrganization = Effect.fnUntraced(function* (
      principal: PrincipalState,
      filter: BalanceFilter,
      after: Key | null,
      take: number
    ) {
      const rows = yield* decodeTotals(totalsAcross(sql, principal, undefined, filter, after, take, SUMMED))
      const [first] = rows
      const isCut = rows.reduce((sum, { looked }) => sum + looked, 0) === SUMMED
      if (!isCut || first === undefined) return { rows, isLast: rows.length < take }
      // The last asset may have more balances.
      if (rows.length > 1) return { rows: rows.slice(0, -1), isLast: false }
      return {
        rows: yield* decodeTotals(totalsAcross(sql, principal, undefined, { ...filter, asset: first.asset }, null, 1, null)),
        isLast: false
      }
    })

    return {
      /** A page of transactions, newest first. */
      transactions: (
        principal: PrincipalState,
        filter: AcrossFilter,
        after: Key | null,
        take: number
      ): Effect.Effect<Searched<TransactionRow>> =>
        Effect.gen(function* () {
          const vaults = yield* few(principal, filter, take)
          const rows = yield* castTransactions(direct.query(transactionsAcross(sql, principal, vaults, filter, after, take)))
          const last = rows.at(-1)
          return { rows: rows.filter(({ json }) => json !== null), place: last?.last === true ? [last.timestamp, last.id] : null }
        }).pipe(Effect.orDie),

      /** The transactions of a file, which is read in small parts. */
      exported: (principal: PrincipalState, filter: AcrossFilter): Effect.Effect<ExportSource> =>
        Effect.orDie(Effect.map(few(principal, filter, 1), (vaults) => exportedAcross(sql, principal, vaults, filter))),

      /** A page of balances, in the order of their assets, then by vault. */
      balances: (principal: PrincipalState, filter: BalanceFilter, after: Key | null, take: number): Effect.Effect<Searched<BalanceRow>> =>
        Effect.gen(function* () {
          const vaults = yield* fewVaults(sql, principal, filter, take)
          const rows = yield* decodeBalances(balancesAcross(sql, principal, vaults, filter, after, take))
          const last = rows.at(-1)
          return { rows: rows.filter(({ matches }) => matches), place: last?.last === true ? [...placeOf(last), last.vaultId] : null }
        }).pipe(Effect.orDie),

      /** A page of the sums of all balances of each asset, in the order of assets. */
      totals: (principal: PrincipalState, filter: BalanceFilter, after: Key | null, take: number): Effect.Effect<Searched<TotalRow>> =>
        Effect.gen(function* () {
          const vaults = yield* fewVaults(sql, principal, filter, take)
          if (vaults !== undefined)
            return { rows: yield* decodeTotals(totalsAcross(sql, principal, vaults, filter, after, take, null)), place: null }
          const { isLast, rows } = yield* totalsOfOrganization(principal, filter, after, take)
          const last = rows.at(-1)
          return { rows: rows.filter(({ vaultCount }) => vaultCount > 0), place: isLast || last === undefined ? null : placeOf(last) }
        }).pipe(Effect.orDie)
    }
  })
}) {
  static readonly layer = this.Default
}
