/**
 * Reads of past balances. Each asset of a vault costs one lookup in the history's index, or none if its newest record is
 * old enough, so the cost of a page does not depend on the length of the history. C-6.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { seesVault } from "../../access/visibility/visibility.ts"
import type { Key } from "../../http/Page.ts"
import { inPeriod, type Period } from "../../http/Period.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"
import { BalanceRecord } from "../../values/Vault.ts"
import { balanceAt, requirePast } from "./balanceAt.ts"
import { resolvePlace } from "./balancePlace.ts"
import { BalanceRow, type Rows } from "./VaultsRepo.ts"

/** Filters of an asset's history. */
export interface HistoryFilter extends Period {
  readonly asset: string
}

const HistoryRow = Schema.Struct({ id: Schema.Number, ...BalanceRecord.fields })
/** A row of the history. */
export type HistoryRow = typeof HistoryRow.Type

const decodeBalances = decodeRows(BalanceRow)
const decodeHistory = decodeRows(HistoryRow)

export class BalanceHistoryRepo extends Effect.Service<BalanceHistoryRepo>()("custody/BalanceHistoryRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const sees = (principal: PrincipalState, vaultId: string) => seesVault(sql, principal, sql`${vaultId}::text`)

    /** No rows: either there are none, or the vault is not visible. */
    const visible = Effect.fnUntraced(function* <Row>(principal: PrincipalState, vaultId: string, rows: ReadonlyArray<Row>) {
      if (rows.length > 0) return Option.some(rows)
      const seen = yield* sql`SELECT 1 FROM vaults v WHERE v.id = ${vaultId} AND ${sees(principal, vaultId)}`
      return seen.length > 0 ? Option.some(rows) : Option.none()
    })

    return {
      /** The place of a cursor in a list of balances. */
      place: (after: Key | null) => resolvePlace(sql, after),

      /** Rejects a time of the parameter `at` that is in the future. */
      requirePast: (at: string | undefined) => requirePast(sql, at),

      /** A page of the balances at a time, ordered like present balances. */
      at: (
        principal: PrincipalState,
        vaultId: string,
        at: string,
        network: string | undefined,
        after: Key | null,
        take: number
      ): Rows<BalanceRow> => {
        const { amount, asOf, exists, join } = balanceAt(sql, at)
        return decodeBalances(sql`
          SELECT v.asset_id AS asset, v.network, v.symbol, ${sql.literal(amount)} AS amount, ${sql.literal(asOf)} AS "asOf",
            (SELECT a.number FROM assets a WHERE a.id = v.asset_id)::text AS number
          FROM balances v ${join} WHERE v.vault_id = ${vaultId} AND ${sees(principal, vaultId)} AND ${exists}
          ${and(
            sql,
            network !== undefined && sql`v.network = ${network}`,
            after !== null &&
              sql`(v.network, v.is_token, v.symbol, v.asset_id) > (
                SELECT a.network, a.id <> a.network || '/native', ${after[1]}, a.id FROM assets a WHERE a.number = ${after[0]}::bigint)`
          )}
          ORDER BY v.network, v.is_token, v.symbol, v.asset_id LIMIT ${take}`).pipe(
          Effect.flatMap((rows) => visible(principal, vaultId, rows)),
          Effect.orDie
        )
      },

      /** A page of an asset's history, newest first; for equal times the last recorded first. */
      history: (
        principal: PrincipalState,
        vaultId: string,
        { asset, ...period }: HistoryFilter,
        after: Key | null,
        take: number
      ): Rows<HistoryRow> =>
        decodeHistory(sql`
          SELECT h.id, h.asset_id AS asset, h.amount, h.as_of AS "asOf", h.recorded_at AS "recordedAt" FROM balance_history h
          WHERE h.vault_id = ${vaultId} AND h.asset_id = ${asset} AND ${sees(principal, vaultId)}
          ${inPeriod(sql, "h.as_of", period)} ${and(sql, after !== null && sql`(h.as_of, h.id) < (${after[0]}::timestamptz, ${after[1]}::bigint)`)}
          ORDER BY h.as_of DESC, h.id DESC LIMIT ${take}`).pipe(
          Effect.flatMap((rows) => visible(principal, vaultId, rows)),
          Effect.orDie
        )
    }
  })
}) {
  static readonly layer = this.Default
}
