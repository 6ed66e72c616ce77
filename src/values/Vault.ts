/**
 * Vaults and their balances, transactions and deposit addresses in API responses. Each schema is declared once and used
 * by the responses, the OpenAPI document, the events and the typed client. Spec: Resources and their fields.
 */
import { Schema } from "effect"
import { Amount } from "./Amount.ts"
import { timestamp } from "./Timestamp.ts"

const described = (description: string, ...examples: ReadonlyArray<string>) =>
  Schema.String.annotations(examples.length === 0 ? { description } : { description, examples: [examples[0] ?? "", ...examples.slice(1)] })

/** Text or null: the custody platform may not have sent it. */
const nullable = (description: string, example: string) =>
  Schema.NullOr(Schema.String.annotations({ examples: [example] })).annotations({ description })

const networkName = described("Friendly network name", "ethereum")
const assetId = described(
  "Asset identifier: {network}/{tokenType}[:{address}]",
  "ethereum/erc20:0xdac17f958d2ee523a2206206994597c13d831ec7"
)

/** A vault. */
export const Vault = Schema.Struct({
  id: described("Opaque, prefixed vault_", "vault_dkjh7m6gvxzc2wjrphqz46b3br"),
  entityId: described("Operating unit (entity) that it belongs to", "entity_k3vwj9pbkx2z8z81zfse2sm8ra"),
  label: described("Human-readable name", "Exchange Hot Wallet"),
  networks: Schema.Array(networkName).annotations({ description: "Networks that the vault operates on" }),
  createdAt: timestamp("When it was created on the platform")
}).annotations({ identifier: "Vault", title: "Vault" })
export type Vault = typeof Vault.Type

/** A vault's balance of one asset. */
export const Balance = Schema.Struct({
  asset: assetId,
  network: networkName,
  symbol: described("Ticker", "USDT"),
  amount: Amount,
  asOf: timestamp("Time of the record that the amount comes from")
}).annotations({ identifier: "Balance", title: "Balance" })
export type Balance = typeof Balance.Type

/** The vault of a row in lists across vaults. */
const vaultId = described("Vault that it belongs to", "vault_dkjh7m6gvxzc2wjrphqz46b3br")

/** In the list across vaults: a balance of a vault, or the sum of an asset's balances. One schema, for generators of clients. C-11. */
export const PortfolioBalance = Schema.Struct({
  ...Balance.fields,
  asOf: Schema.optional(timestamp("Time of the record that the amount comes from; absent with `sumBy`")),
  vaultId: Schema.optional(vaultId.annotations({ description: "Vault that it belongs to; absent with `sumBy`" })),
  vaultCount: Schema.optional(
    Schema.Int.annotations({
      jsonSchema: {
        type: "integer",
        minimum: 1,
        description: "With `sumBy`: vaults with a balance of the asset, zero included"
      }
    })
  )
}).annotations({ identifier: "PortfolioBalance", title: "Balance of a vault or of all" })

/** One record of a balance's history. C-6. */
export const BalanceRecord = Schema.Struct({
  asset: assetId,
  amount: Amount,
  asOf: timestamp("Time from which the balance had this amount"),
  recordedAt: timestamp("When the service recorded it")
}).annotations({ identifier: "BalanceRecord", title: "Balance record" })
export type BalanceRecord = typeof BalanceRecord.Type

/** Every status of a transaction. Decision D-15. */
export const TransactionStatus = Schema.Literal("pending", "confirmed", "failed", "replaced", "dropped").annotations({
  identifier: "TransactionStatus",
  title: "TransactionStatus",
  description:
    "pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added.",
  examples: ["confirmed"]
})
export type TransactionStatus = typeof TransactionStatus.Type

/** Into or out of the vault. */
export const Direction = Schema.Literal("inbound", "outbound").annotations({
  identifier: "Direction",
  title: "Direction",
  description: "Into or out of the vault"
})

/** A transaction, for the OpenAPI document. */
export const transactionExample = {
  id: "tx_4r6zq2m8ke8h5tx4m5j0c1y9qa",
  hash: "0xc8da69aafa2777f2c7f47e3666575736b9753393255448ec0b3bde4fe278820d",
  network: "ethereum",
  status: "confirmed",
  direction: "inbound",
  asset: "ethereum/erc20:0xdac17f958d2ee523a2206206994597c13d831ec7",
  amount: "2455041.424650514344217245",
  from: "0x05d8912C1051a1Db984e9FbF9D482e7f836342b5",
  to: "0xA28C42486E15AD7dC8d58792cC2AdD3014006E1d",
  timestamp: "2025-03-24T22:01:59.000Z",
  fee: null,
  blockNumber: "19505152",
  blockHash: "0x4e3a3754410177e6937ef1f84bba68ea139e8d1a2258c5f85db9f1cd715a1bdd",
  memo: null,
  externalId: "wd-20394",
  updatedAt: "2025-03-24T22:02:03.000Z"
} as const

/** What a vault paid for a transaction. `amount` of the transaction never contains it. */
const fee = Schema.Struct({ asset: assetId, amount: Amount })
const feeDescription = { description: "What the vault paid for it; amount does not contain it" }

/** The fields of a transaction that may change. A field that the platform did not send is null. C-9. */
const state = {
  status: TransactionStatus,
  asset: assetId,
  amount: Amount,
  from: described("Source address", transactionExample.from),
  to: described("Destination address", transactionExample.to),
  timestamp: timestamp("When it settled; before that, when it was first seen"),
  fee: Schema.NullOr(fee.annotations({ identifier: "TransactionFee", title: "Transaction fee" })).annotations(feeDescription),
  blockNumber: nullable("Number of its block, in digits", transactionExample.blockNumber),
  blockHash: nullable("Hash of its block", transactionExample.blockHash),
  memo: nullable("Memo or destination tag", "104721"),
  externalId: nullable("The custody platform's own id", transactionExample.externalId)
}

/** The names of {@link state}, in the documented order. */
export const stateFields = Object.keys(state) as ReadonlyArray<keyof typeof state>

/** A transfer of one asset into or out of a vault. */
export const Transaction = Schema.Struct({
  id: described("Opaque, prefixed tx_; the same for a network, hash, index, vault and direction", transactionExample.id),
  hash: described("On-chain transaction hash", transactionExample.hash),
  network: described("Network it settled on", transactionExample.network),
  status: state.status,
  direction: Direction,
  asset: state.asset,
  amount: state.amount,
  from: state.from,
  to: state.to,
  timestamp: state.timestamp,
  fee: state.fee,
  blockNumber: state.blockNumber,
  blockHash: state.blockHash,
  memo: state.memo,
  externalId: state.externalId,
  updatedAt: timestamp("When the service last changed it")
}).annotations({ identifier: "Transaction", title: "Transaction" })
export type Transaction = typeof Transaction.Type

/** A transaction in lists across vaults. C-11. */
export const VaultTransaction = Schema.Struct({ ...Transaction.fields, vaultId }).annotations({
  identifier: "VaultTransaction",
  title: "Transaction of a vault"
})

/** The names of a transaction's fields, in the documented order. */
export const transactionFields = Object.keys(Transaction.fields) as ReadonlyArray<keyof Transaction>

/**
 * The fields of a transaction that a change replaced, with their values before it. C-9. Its fee has no name: openapi-generator for
 * Python fails on a name that may be null in an object without one.
 */
export const PreviousTransaction = Schema.partial(
  Schema.Struct({ ...state, fee: Schema.NullOr(fee).annotations(feeDescription) })
).annotations({ title: "Previous values of a transaction" })
export type PreviousTransaction = typeof PreviousTransaction.Type

/** A transaction as it was after one of its changes. C-9. */
export const TransactionState = Schema.Struct({
  ...state,
  occurredAt: timestamp("When the change happened on the custody platform"),
  recordedAt: timestamp("When the service recorded it"),
  eventIds: Schema.Array(Schema.String.annotations({ examples: ["evt_01jz0000000000000000000000"] })).annotations({
    description: "Its events, which the event log keeps for 31 days"
  })
}).annotations({ identifier: "TransactionState", title: "Transaction state" })
export type TransactionState = typeof TransactionState.Type

/** A transaction with its history. C-9. */
export const TransactionDetail = Schema.Struct({
  ...Transaction.fields,
  history: Schema.Array(TransactionState).annotations({ description: "Its states, oldest first: the newest 1,000" }),
  historyTruncated: Schema.Boolean.annotations({ description: "Whether it had more states" })
}).annotations({ identifier: "TransactionDetail", title: "Transaction with its history" })

/** A deposit address of a vault. */
export const DepositAddress = Schema.Struct({
  address: described("On-chain deposit address", "0x28C6c06298d514Db089934071355E5743bf21d60"),
  network: networkName,
  assetType: described("Kind of asset received", "native")
}).annotations({ identifier: "DepositAddress", title: "Deposit address" })
export type DepositAddress = typeof DepositAddress.Type

/** A transaction as JSON text, its keys, and those of its fee, in the documented order. The ledger stores it with the row. */
export const transactionJson = (one: Transaction): string => JSON.stringify(one, [...transactionFields])

/** A state of a transaction as JSON text, its keys in the documented order. */
export const transactionStateJson = (one: TransactionState): string => JSON.stringify(one, Object.keys(TransactionState.fields))
