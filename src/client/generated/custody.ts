// Made from the contract by `bun run golden`; not to be edited.

/** A page of a list. */
export interface Page<A> {
  readonly data: ReadonlyArray<A>
  readonly pagination: Pagination
}

export interface FieldIssue {
  /** The part of the request */
  readonly in: "path" | "query" | "header" | "body"
  /** Name of the parameter, or path in the body */
  readonly field: string
  /** What kind of error it is */
  readonly code: string
  /** What is expected */
  readonly detail: string
}

export interface Vault {
  /** Opaque, prefixed vault_ */
  readonly id: string
  /** Operating unit (entity) that it belongs to */
  readonly entityId: string
  /** Human-readable name */
  readonly label: string
  /** Networks that the vault operates on */
  readonly networks: ReadonlyArray<string>
  /** When it was created on the platform */
  readonly createdAt: string
}

export interface Pagination {
  /** Page size */
  readonly limit: number
  /** Cursor of the next page; null on the last page */
  readonly nextCursor: string | null
}

export interface Balance {
  /** Asset identifier: {network}/{tokenType}[:{address}] */
  readonly asset: string
  /** Friendly network name */
  readonly network: string
  /** Ticker */
  readonly symbol: string
  /** Exact decimal; parse it with a decimal library, never as floating point */
  readonly amount: string
  /** Time of the record that the amount comes from */
  readonly asOf: string
}

export interface BalanceRecord {
  /** Asset identifier: {network}/{tokenType}[:{address}] */
  readonly asset: string
  /** Exact decimal; parse it with a decimal library, never as floating point */
  readonly amount: string
  /** Time from which the balance had this amount */
  readonly asOf: string
  /** When the service recorded it */
  readonly recordedAt: string
}

/** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
export type TransactionStatus = "pending" | "confirmed" | "failed" | "replaced" | "dropped"

/** Into or out of the vault */
export type Direction = "inbound" | "outbound"

export interface Transaction {
  /** Opaque, prefixed tx_; the same for a network, hash, index, vault and direction */
  readonly id: string
  /** On-chain transaction hash */
  readonly hash: string
  /** Network it settled on */
  readonly network: string
  /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
  readonly status: TransactionStatus
  /** Into or out of the vault */
  readonly direction: Direction
  /** Asset identifier: {network}/{tokenType}[:{address}] */
  readonly asset: string
  /** Exact decimal; parse it with a decimal library, never as floating point */
  readonly amount: string
  /** Source address */
  readonly from: string
  /** Destination address */
  readonly to: string
  /** When it settled; before that, when it was first seen */
  readonly timestamp: string
  /** What the vault paid for it; amount does not contain it */
  readonly fee: TransactionFee | null
  /** Number of its block, in digits */
  readonly blockNumber: string | null
  /** Hash of its block */
  readonly blockHash: string | null
  /** Memo or destination tag */
  readonly memo: string | null
  /** The custody platform's own id */
  readonly externalId: string | null
  /** When the service last changed it */
  readonly updatedAt: string
}

export interface TransactionFee {
  /** Asset identifier: {network}/{tokenType}[:{address}] */
  readonly asset: string
  /** Exact decimal; parse it with a decimal library, never as floating point */
  readonly amount: string
}

export interface TransactionDetail {
  /** Opaque, prefixed tx_; the same for a network, hash, index, vault and direction */
  readonly id: string
  /** On-chain transaction hash */
  readonly hash: string
  /** Network it settled on */
  readonly network: string
  /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
  readonly status: TransactionStatus
  /** Into or out of the vault */
  readonly direction: Direction
  /** Asset identifier: {network}/{tokenType}[:{address}] */
  readonly asset: string
  /** Exact decimal; parse it with a decimal library, never as floating point */
  readonly amount: string
  /** Source address */
  readonly from: string
  /** Destination address */
  readonly to: string
  /** When it settled; before that, when it was first seen */
  readonly timestamp: string
  /** What the vault paid for it; amount does not contain it */
  readonly fee: TransactionFee | null
  /** Number of its block, in digits */
  readonly blockNumber: string | null
  /** Hash of its block */
  readonly blockHash: string | null
  /** Memo or destination tag */
  readonly memo: string | null
  /** The custody platform's own id */
  readonly externalId: string | null
  /** When the service last changed it */
  readonly updatedAt: string
  /** Its states, oldest first: the newest 1,000 */
  readonly history: ReadonlyArray<TransactionState>
  /** Whether it had more states */
  readonly historyTruncated: boolean
}

export interface TransactionState {
  /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
  readonly status: TransactionStatus
  /** Asset identifier: {network}/{tokenType}[:{address}] */
  readonly asset: string
  /** Exact decimal; parse it with a decimal library, never as floating point */
  readonly amount: string
  /** Source address */
  readonly from: string
  /** Destination address */
  readonly to: string
  /** When it settled; before that, when it was first seen */
  readonly timestamp: string
  /** What the vault paid for it; amount does not contain it */
  readonly fee: TransactionFee | null
  /** Number of its block, in digits */
  readonly blockNumber: string | null
  /** Hash of its block */
  readonly blockHash: string | null
  /** Memo or destination tag */
  readonly memo: string | null
  /** The custody platform's own id */
  readonly externalId: string | null
  /** When the change happened on the custody platform */
  readonly occurredAt: string
  /** When the service recorded it */
  readonly recordedAt: string
  /** Its events, which the event log keeps for 31 days */
  readonly eventIds: ReadonlyArray<string>
}

export type ExportFormat = "csv" | "ndjson"

export type ExportAmounts = "spreadsheet" | "plain"

export interface DepositAddress {
  /** On-chain deposit address */
  readonly address: string
  /** Friendly network name */
  readonly network: string
  /** Kind of asset received */
  readonly assetType: string
}

export interface VaultTransaction {
  /** Opaque, prefixed tx_; the same for a network, hash, index, vault and direction */
  readonly id: string
  /** On-chain transaction hash */
  readonly hash: string
  /** Network it settled on */
  readonly network: string
  /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
  readonly status: TransactionStatus
  /** Into or out of the vault */
  readonly direction: Direction
  /** Asset identifier: {network}/{tokenType}[:{address}] */
  readonly asset: string
  /** Exact decimal; parse it with a decimal library, never as floating point */
  readonly amount: string
  /** Source address */
  readonly from: string
  /** Destination address */
  readonly to: string
  /** When it settled; before that, when it was first seen */
  readonly timestamp: string
  /** What the vault paid for it; amount does not contain it */
  readonly fee: TransactionFee | null
  /** Number of its block, in digits */
  readonly blockNumber: string | null
  /** Hash of its block */
  readonly blockHash: string | null
  /** Memo or destination tag */
  readonly memo: string | null
  /** The custody platform's own id */
  readonly externalId: string | null
  /** When the service last changed it */
  readonly updatedAt: string
  /** Vault that it belongs to */
  readonly vaultId: string
}

export type BalanceSum = "asset"

export interface PortfolioBalance {
  /** Asset identifier: {network}/{tokenType}[:{address}] */
  readonly asset: string
  /** Friendly network name */
  readonly network: string
  /** Ticker */
  readonly symbol: string
  /** Exact decimal; parse it with a decimal library, never as floating point */
  readonly amount: string
  /** Time of the record that the amount comes from; absent with `sumBy` */
  readonly asOf?: string | undefined
  /** Vault that it belongs to; absent with `sumBy` */
  readonly vaultId?: string | undefined
  /** With `sumBy`: vaults with a balance of the asset, zero included */
  readonly vaultCount?: number | undefined
}

export interface Statement {
  /** The vault */
  readonly vaultId: string
  /** The UTC day */
  readonly date: string
  /** Number of the revision: 1, and one more each time late records change the day */
  readonly revision: number
  /** When it was sealed */
  readonly sealedAt: string
  /** Hash of the statement that was sealed before this one for the vault, whatever its day; null for the first */
  readonly previousHash: string | null
  /** SHA-256 (hex) of the statement as RFC 8785 JSON without `hash` and `jws` */
  readonly hash: string
  /** One line per asset */
  readonly assets: ReadonlyArray<StatementLine>
  /** Compact JWS (EdDSA) over iss, vaultId, date, revision and hash; verify it with /v1/jwks.json */
  readonly jws: string
}

export interface StatementLine {
  /** Asset identifier */
  readonly asset: string
  /** Ticker */
  readonly symbol: string
  /** Balance when the day began */
  readonly opening: string
  /** Sum of the confirmed inbound transactions of the day */
  readonly inbound: string
  /** Sum of the confirmed outbound transactions of the day */
  readonly outbound: string
  /** Sum of the fees of the confirmed and failed transactions of the day */
  readonly fees: string
  /** Everything else: adjustments, unexplained differences; negative values have a minus sign */
  readonly other: string
  /** Balance when the day ended */
  readonly closing: string
  /** Confirmed transactions of the day */
  readonly transactionCount: number
}

export interface StatementSummary {
  /** The vault */
  readonly vaultId: string
  /** First day: not before the vault's first statement */
  readonly from: string
  /** Last day */
  readonly to: string
  /** Hash of the first day's newest revision */
  readonly firstHash: string
  /** Hash of the last day's newest revision */
  readonly lastHash: string
  /** One line per asset: the first day's opening, the sums of the days, and the last day's closing */
  readonly assets: ReadonlyArray<StatementLine>
}

export interface Asset {
  /** Asset identifier */
  readonly id: string
  /** Ticker; not a unique identifier */
  readonly symbol: string
  /** Full name */
  readonly name: string
  /** Decimal places of the smallest unit */
  readonly decimals: number
  /** Friendly network name */
  readonly network: string
}

export interface Network {
  /** Friendly name */
  readonly name: string
  /** Whether its assets have value */
  readonly kind: "mainnet" | "testnet"
}

export interface Entity {
  /** Opaque, prefixed entity_ */
  readonly id: string
  /** Human-readable name */
  readonly name: string
}
