// Made from the contract by `bun run golden`; not to be edited.

/** A page of a list. */
export interface Page<A> {
  readonly data: ReadonlyArray<A>
  readonly pagination: Pagination
}

export interface Vault {
  /** Opaque, prefixed vault_ */
  readonly id: string
  /** Human-readable name */
  readonly label: string
  /** Networks that the vault operates on */
  readonly networks: ReadonlyArray<string>
  readonly createdAt: string
}

export interface Pagination {
  /** Rows asked for */
  readonly limit: number
  /** Continues the list; null on its last page */
  readonly nextCursor: string | null
}

export interface FieldIssue {
  readonly in: "path" | "query" | "header" | "body"
  readonly field: string
  readonly code: string
  readonly detail: string
}

export interface Balance {
  /** Asset identifier: {network}/{tokenType}[:{address}] */
  readonly asset: string
  /** Friendly network name */
  readonly network: string
  /** Ticker */
  readonly symbol: string
  readonly amount: string
}

export interface Transaction {
  /** On-chain transaction hash */
  readonly hash: string
  /** Network it settled on */
  readonly network: string
  /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. More may come. */
  readonly status: TransactionStatus
  readonly direction: Direction
  /** Asset identifier: {network}/{tokenType}[:{address}] */
  readonly asset: string
  readonly amount: string
  /** Source address */
  readonly from: string
  /** Destination address */
  readonly to: string
  readonly timestamp: string
}

/** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. More may come. */
export type TransactionStatus = "pending" | "confirmed" | "failed" | "replaced" | "dropped"

export type Direction = "inbound" | "outbound"

export interface DepositAddress {
  /** On-chain deposit address */
  readonly address: string
  /** Friendly network name */
  readonly network: string
  /** Kind of asset received */
  readonly assetType: string
}

export interface Asset {
  /** Asset identifier */
  readonly id: string
  /** Ticker; does not name an asset */
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
  readonly kind: "mainnet" | "testnet"
}
