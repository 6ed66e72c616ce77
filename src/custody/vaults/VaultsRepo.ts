/**
 * Reads of vaults. Every statement has the caller's visibility in its WHERE clause, so a hidden vault and an unknown one
 * give the same empty result. Lists are paginated by a keyset over a unique order. Spec: Custody reads; Authentication
 * 11. Decisions D-2, D-7.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { seesVault } from "../../access/visibility/visibility.ts"
import type { Key } from "../../http/Page.ts"
import { castRows, decodeRows } from "../../runtime/database/decodeRows.ts"
import { DirectRows } from "../../runtime/database/pgWorkarounds.ts"
import { and } from "../../runtime/database/sql.ts"
import * as Id from "../../values/Id.ts"
import { Balance, DepositAddress, Transaction, type TransactionDetail, TransactionState, Vault } from "../../values/Vault.ts"
import { type TransactionFilter, transactionPage } from "./transactionPage.ts"

/** A page of a vault's rows; none if the vault is not visible. */
export type Rows<Row> = Effect.Effect<Option.Option<ReadonlyArray<Row>>>

const TransactionRow = Schema.Struct({
  /** Its id as a UUID. */
  id: Schema.String,
  timestamp: Schema.String,
  /** The transaction as in the API's response. */
  json: Schema.String
})
export type TransactionRow = typeof TransactionRow.Type

const AddressRow = Schema.Struct({ id: Schema.Number, ...DepositAddress.fields, createdAt: Schema.String })

const decodeVaults = decodeRows(Vault)
/** A balance and the number of its asset, which is short enough for a cursor. */
export const BalanceRow = Schema.Struct({ ...Balance.fields, number: Schema.String })
export type BalanceRow = typeof BalanceRow.Type
const decodeBalances = decodeRows(BalanceRow)
const decodeAddresses = decodeRows(AddressRow)
// Hot: every page of transactions, of up to 501 rows.
const castTransactions = castRows(TransactionRow)

/** States of a transaction that its response has. */
const STATES = 1_000
/** A transaction with what is needed of its history: the earlier states as JSON, oldest first. */
const decodeDetail = decodeRows(
  Schema.Struct({
    json: Schema.parseJson(Transaction),
    version: Schema.Number,
    occurredAt: Schema.String,
    eventIds: Schema.Array(Schema.String),
    earlier: Schema.Array(Schema.parseJson(TransactionState))
  })
)

export class VaultsRepo extends Effect.Service<VaultsRepo>()("custody/VaultsRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const direct = yield* DirectRows

    /** No rows: either there are none, or the vault is not visible. */
    const visible = Effect.fnUntraced(function* <Row>(principal: PrincipalState, vaultId: string, rows: ReadonlyArray<Row>) {
      if (rows.length > 0) return Option.some(rows)
      const seen = yield* sql`SELECT 1 FROM vaults v WHERE v.id = ${vaultId} AND ${seesVault(sql, principal, sql.literal("v.id"))}`
      return seen.length > 0 ? Option.some(rows) : Option.none()
    })
    /** The visibility of the vault in the path, for a statement over its rows: checked once, not per row. */
    const sees = (principal: PrincipalState, vaultId: string) => seesVault(sql, principal, sql`${vaultId}::text`)

    return {
      /** The vaults that the caller can see, newest first: by the user's roles, or by a key's allowlist, which is short. */
      list: (principal: PrincipalState, after: Key | null, take: number): Effect.Effect<ReadonlyArray<Vault>> => {
        const { userId, vaultAllowlist } = principal
        // LIMIT 1: Postgres must look up a role by its vault, and not read all of the user's to join.
        const behind = and(sql, after !== null && sql`(r.vault_created_at, r.vault_id) < (${after[0]}::timestamptz, ${after[1]})`)
        const seen =
          vaultAllowlist === null
            ? sql`vault_roles r WHERE (r.user_id || '') = ${userId} ${behind}`
            : sql`(SELECT DISTINCT id FROM unnest(${vaultAllowlist}::text[]) k (id)) k CROSS JOIN LATERAL (
                SELECT r.vault_id, r.vault_created_at FROM vault_roles r WHERE r.user_id = ${userId} AND r.vault_id = k.id LIMIT 1) r WHERE true ${behind}`
        return Effect.orDie(
          decodeVaults(sql`
          SELECT v.id, v.entity_id AS "entityId", v.label, v.networks, v.created_at AS "createdAt" FROM (
            SELECT r.vault_id, r.vault_created_at FROM ${seen} ORDER BY r.vault_created_at DESC, r.vault_id DESC LIMIT ${take}
          ) r JOIN vaults v ON v.id = r.vault_id
          ORDER BY r.vault_created_at DESC, r.vault_id DESC`)
        )
      },

      find: (principal: PrincipalState, vaultId: string): Effect.Effect<Option.Option<Vault>> =>
        Effect.orDie(
          Effect.map(
            decodeVaults(sql`
          SELECT v.id, v.entity_id AS "entityId", v.label, v.networks, v.created_at AS "createdAt" FROM vaults v
          WHERE v.id = ${vaultId} AND ${seesVault(sql, principal, sql.literal("v.id"))}`),
            (rows) => Option.fromNullable(rows[0])
          )
        ),

      balances: (
        principal: PrincipalState,
        vaultId: string,
        network: string | undefined,
        after: Key | null,
        take: number
      ): Rows<BalanceRow> => {
        const last = (column: string) => sql`(SELECT ${sql.literal(column)} FROM assets a WHERE a.number = ${after?.[0]}::bigint)`
        return Effect.orDie(
          Effect.flatMap(
            decodeBalances(sql`
          SELECT v.asset_id AS asset, v.network, v.symbol, v.amount, v.as_of AS "asOf",
            (SELECT a.number FROM assets a WHERE a.id = v.asset_id)::text AS number FROM balances v
          WHERE v.vault_id = ${vaultId} AND ${sees(principal, vaultId)}
          ${and(
            sql,
            network !== undefined && sql`v.network = ${network}`,
            after !== null &&
              sql`(v.network, v.is_token, v.symbol, v.asset_id) > (${last("a.network")}, ${last("a.id <> a.network || '/native'")}, ${after[1]}, ${last("a.id")})`
          )}
          ORDER BY v.network, v.is_token, v.symbol, v.asset_id LIMIT ${take}`),
            (rows) => visible(principal, vaultId, rows)
          )
        )
      },

      transactions: (
        principal: PrincipalState,
        vaultId: string,
        filter: TransactionFilter,
        after: Key | null,
        take: number
      ): Rows<TransactionRow> =>
        Effect.orDie(
          Effect.flatMap(
            castTransactions(direct.query(transactionPage(sql, vaultId, filter, after, take, sees(principal, vaultId)))),
            (rows) => visible(principal, vaultId, rows)
          )
        ),

      /** A transaction of a vault that the caller can see, with its history. C-9. */
      transaction: (principal: PrincipalState, vaultId: string, id: string): Effect.Effect<Option.Option<typeof TransactionDetail.Type>> =>
        Effect.orDie(
          Effect.map(
            decodeDetail(sql`
          SELECT t.json, t.version, t.occurred_at AS "occurredAt", t.event_ids AS "eventIds", ARRAY(
            SELECT state FROM (
              SELECT h.version, h.state FROM transaction_history h WHERE h.transaction_id = t.id ORDER BY h.version DESC LIMIT ${STATES - 1}
            ) newest ORDER BY version) AS earlier
          FROM transactions t WHERE t.id = ${Id.uuidIn("tx", id) ?? null}::uuid AND t.vault_id = ${vaultId} AND ${sees(principal, vaultId)}`),
            ([row]) =>
              Option.map(Option.fromNullable(row), ({ earlier, eventIds, json, occurredAt, version }) => ({
                ...json,
                history: [...earlier, { ...json, occurredAt, recordedAt: json.updatedAt, eventIds }],
                historyTruncated: version > STATES
              }))
          )
        ),

      addresses: (
        principal: PrincipalState,
        vaultId: string,
        network: string | undefined,
        after: Key | null,
        take: number
      ): Rows<typeof AddressRow.Type> =>
        Effect.orDie(
          Effect.flatMap(
            decodeAddresses(sql`
          SELECT v.id, v.address, v.network, v.asset_type AS "assetType", v.created_at AS "createdAt" FROM deposit_addresses v
          WHERE ${network === undefined ? sql`v.vault_id = ${vaultId}` : sql`(v.vault_id || '/' || v.network) = ${vaultId}::text || '/' || ${network}::text`}
          AND ${sees(principal, vaultId)}
          ${and(sql, after !== null && sql`(v.created_at, v.id) < (${after[0]}::timestamptz, ${after[1]}::bigint)`)}
          ORDER BY v.created_at DESC, v.id DESC LIMIT ${take}`),
            (rows) => visible(principal, vaultId, rows)
          )
        )
    }
  })
}) {
  static readonly layer = this.Default
}
