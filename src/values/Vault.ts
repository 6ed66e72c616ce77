/**
 * Vaults and their balances, transactions and deposit addresses in API responses. Each schema is declared once and used
 * by the responses, the OpenAPI document, the events and the typed client. Spec: Resources and their fields.
 */
import { Schema } from "effect"
import { Amount } from "./Amount.ts"
import { Timestamp, timestamp } from "./Timestamp.ts"

const described = (description: string, ...examples: ReadonlyArray<string>) =>
  Schema.String.annotations(examples.length === 0 ? { description } : { description, examples: [examples[0] ?? "", ...examples.slice(1)] })

const networkName = described("Friendly network name", "ethereum")
const assetId = described(
  "Asset identifier: {network}/{tokenType}[:{address}]",
  "ethereum/erc20:0xdac17f958d2ee523a2206206994597c13d831ec7"
)

/** A vault. */
export const Vault = Schema.Struct({
  id: described("Opaque, prefixed vault_", "vault_dkjh7m6gvxzc2wjrphqz46b3br"),
  label: described("Human-readable name", "Exchange Hot Wallet"),
  networks: Schema.Array(networkName).annotations({ description: "Networks that the vault operates on" }),
  createdAt: Timestamp
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
  hash: "0xc8da69aafa2777f2c7f47e3666575736b9753393255448ec0b3bde4fe278820d",
  network: "ethereum",
  status: "confirmed",
  direction: "inbound",
  asset: "ethereum/erc20:0xdac17f958d2ee523a2206206994597c13d831ec7",
  amount: "2455041.424650514344217245",
  from: "0x05d8912C1051a1Db984e9FbF9D482e7f836342b5",
  to: "0xA28C42486E15AD7dC8d58792cC2AdD3014006E1d",
  timestamp: "2025-03-24T22:01:59.000Z"
} as const

/** A transfer of one asset into or out of a vault. */
export const Transaction = Schema.Struct({
  hash: described("On-chain transaction hash", transactionExample.hash),
  network: described("Network it settled on", transactionExample.network),
  status: TransactionStatus,
  direction: Direction,
  asset: assetId,
  amount: Amount,
  from: described("Source address", transactionExample.from),
  to: described("Destination address", transactionExample.to),
  timestamp: timestamp("When it settled; before that, when it was first seen")
}).annotations({ identifier: "Transaction", title: "Transaction" })
export type Transaction = typeof Transaction.Type

/** A deposit address of a vault. */
export const DepositAddress = Schema.Struct({
  address: described("On-chain deposit address", "0x28C6c06298d514Db089934071355E5743bf21d60"),
  network: networkName,
  assetType: described("Kind of asset received", "native")
}).annotations({ identifier: "DepositAddress", title: "Deposit address" })
export type DepositAddress = typeof DepositAddress.Type

/** A transaction as JSON text, its keys in the documented order. The ledger stores it with the row. */
export const transactionJson = ({ amount, asset, direction, from, hash, network, status, timestamp, to }: Transaction): string =>
  JSON.stringify({ hash, network, status, direction, asset, amount, from, to, timestamp } satisfies Transaction)
