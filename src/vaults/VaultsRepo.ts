/**
 * Reads of vaults. Every statement carries the caller's visibility in its WHERE, so a vault outside it and a
 * vault that does not exist give the same empty answer. Lists are bounded by a keyset over a unique order.
 * Spec: Custody reads; Authentication 11. Decisions D-2, D-7.
 */
import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import type { PrincipalState } from "../credentials/Principal.ts"
import { seesVault } from "../credentials/visibility.ts"
import { DirectRows } from "../database/Database.ts"
import { and, limit } from "../database/sql.ts"
import type { Key } from "../http/Page.ts"
import type { DepositAddress, TransactionStatus, Vault } from "./Vault.ts"

/** Filters of transactions, as the contract reads them; absent ones do not filter. */
export interface TransactionFilter {
  /** Stands in the statement's text, so it is one of the known words and nothing else. */
  readonly status?: TransactionStatus | undefined
  readonly direction?: string | undefined
  readonly asset?: string | undefined
  readonly network?: string | undefined
  readonly hash?: string | undefined
  readonly occurredAfter?: string | undefined
  readonly occurredBefore?: string | undefined
}

/** A page of a vault's rows; none when the vault is not visible. */
export type Rows<Row> = Effect.Effect<Option.Option<ReadonlyArray<Row>>>

export interface TransactionRow {
  readonly id: number
  readonly timestamp: string
  /** The transaction as the API answers it. */
  readonly json: string
}

export interface BalanceRow {
  readonly asset: string
  readonly network: string
  readonly symbol: string
  readonly amount: string
}

export class VaultsRepo extends Effect.Service<VaultsRepo>()("custody/VaultsRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const direct = yield* DirectRows

    /** Rows that came back empty either because there are none or because the vault is not visible. */
    const visible = Effect.fnUntraced(function* <Row>(principal: PrincipalState, vaultId: string, rows: ReadonlyArray<Row>) {
      if (rows.length > 0) return Option.some(rows)
      const seen = yield* sql`SELECT 1 FROM vaults v WHERE v.id = ${vaultId} AND ${seesVault(sql, principal, sql.literal("v.id"))}`
      return seen.length > 0 ? Option.some(rows) : Option.none()
    })
    /** The visibility of the vault named in the path, for a statement over its rows: asked once, and not for each row. */
    const sees = (principal: PrincipalState, vaultId: string) => seesVault(sql, principal, sql`${vaultId}::text`)

    return {
      list: (principal: PrincipalState, after: Key | null, take: number): Effect.Effect<ReadonlyArray<Vault>> =>
        Effect.orDie(sql<Vault>`
          SELECT v.id, v.label, v.networks, v.created_at AS "createdAt" FROM vaults v
          WHERE v.organization_id = ${principal.organizationId} AND ${seesVault(sql, principal, sql.literal("v.id"))}
          ${and(sql, after !== null && sql`(v.created_at, v.id) < (${after[0]}::timestamptz, ${after[1]})`)}
          ORDER BY v.created_at DESC, v.id DESC ${limit(sql, take)}`),

      find: (principal: PrincipalState, vaultId: string): Effect.Effect<Option.Option<Vault>> =>
        Effect.orDie(
          Effect.map(
            sql<Vault>`
          SELECT v.id, v.label, v.networks, v.created_at AS "createdAt" FROM vaults v
          WHERE v.id = ${vaultId} AND ${seesVault(sql, principal, sql.literal("v.id"))}`,
            (rows) => Option.fromNullable(rows[0])
          )
        ),

      balances: (
        principal: PrincipalState,
        vaultId: string,
        network: string | undefined,
        after: Key | null,
        take: number
      ): Rows<BalanceRow> =>
        Effect.orDie(
          Effect.flatMap(
            sql<BalanceRow>`
          SELECT v.asset, v.network, v.symbol, v.amount FROM (
            SELECT v.vault_id, v.asset_id AS asset, a.network, a.symbol, v.amount,
              CASE WHEN a.id = a.network || '/native' THEN '0' ELSE '1' END COLLATE "C" AS rank
            FROM balances v JOIN assets a ON a.id = v.asset_id
            WHERE v.vault_id = ${vaultId} ${and(sql, network !== undefined && sql`a.network = ${network}`)}
          ) v WHERE ${sees(principal, vaultId)}
          ${and(
            sql,
            after !== null &&
              sql`(v.network, v.rank, v.symbol, v.asset) > (
                SELECT a.network, CASE WHEN a.id = a.network || '/native' THEN '0' ELSE '1' END COLLATE "C", a.symbol, a.id
                FROM assets a WHERE a.id = ${after[0]})`
          )}
          ORDER BY v.network, v.rank, v.symbol, v.asset ${limit(sql, take)}`,
            (rows) => visible(principal, vaultId, rows)
          )
        ),

      transactions: (
        principal: PrincipalState,
        vaultId: string,
        filter: TransactionFilter,
        after: Key | null,
        take: number
      ): Rows<TransactionRow> =>
        Effect.orDie(
          Effect.flatMap(
            direct.query(sql<TransactionRow>`
          SELECT v.id, v.timestamp, v.json FROM transactions v
          WHERE v.vault_id = ${vaultId} AND ${sees(principal, vaultId)}
          ${and(
            sql,
            filter.status !== undefined && sql`v.status = ${sql.literal(`'${filter.status}'`)}`,
            filter.direction !== undefined && sql`v.direction = ${filter.direction}`,
            filter.asset !== undefined && sql`v.asset_id = ${filter.asset}`,
            filter.network !== undefined && sql`v.network = ${filter.network}`,
            filter.hash !== undefined && sql`v.hash = ${filter.hash}`,
            filter.occurredAfter !== undefined && sql`v.timestamp >= ${filter.occurredAfter}::timestamptz`,
            filter.occurredBefore !== undefined && sql`v.timestamp <= ${filter.occurredBefore}::timestamptz`,
            after !== null && sql`(v.timestamp, v.id) < (${after[0]}::timestamptz, ${after[1]}::bigint)`
          )}
          ORDER BY v.timestamp DESC, v.id DESC ${limit(sql, take)}`),
            (rows) => visible(principal, vaultId, rows)
          )
        ),

      addresses: (
        principal: PrincipalState,
        vaultId: string,
        network: string | undefined,
        after: Key | null,
        take: number
      ): Rows<DepositAddress & { readonly id: number; readonly createdAt: string }> =>
        Effect.orDie(
          Effect.flatMap(
            sql<DepositAddress & { readonly id: number; readonly createdAt: string }>`
          SELECT v.id, v.address, v.network, v.asset_type AS "assetType", v.created_at AS "createdAt" FROM deposit_addresses v
          WHERE v.vault_id = ${vaultId} AND ${sees(principal, vaultId)}
          ${and(
            sql,
            network !== undefined && sql`v.network = ${network}`,
            after !== null && sql`(v.created_at, v.id) < (${after[0]}::timestamptz, ${after[1]}::bigint)`
          )}
          ORDER BY v.created_at DESC, v.id DESC ${limit(sql, take)}`,
            (rows) => visible(principal, vaultId, rows)
          )
        )
    }
  })
}) {
  static readonly layer = this.Default
}
