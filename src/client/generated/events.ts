// Made from the contract by `bun run golden`; not to be edited.

import type { Balance, DepositAddress, Transaction, TransactionStatus, Vault } from "./custody.ts"

/** What the event of each kind carries in its `data`. */
export interface EventData {
  /** A transaction was seen before it was included in a block */
  readonly "transaction.pending": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly transaction: Transaction
    /** The fields that changed, with their values before; null for a new transaction. The two events of a change that leaves confirmed have the same */
    readonly previous: {
      /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
      readonly status?: TransactionStatus | undefined
      /** Asset identifier: {network}/{tokenType}[:{address}] */
      readonly asset?: string | undefined
      /** Exact decimal; parse it with a decimal library, never as floating point */
      readonly amount?: string | undefined
      /** Source address */
      readonly from?: string | undefined
      /** Destination address */
      readonly to?: string | undefined
      /** When it settled; before that, when it was first seen */
      readonly timestamp?: string | undefined
      /** What the vault paid for it; amount does not contain it */
      readonly fee?:
        | {
            /** Asset identifier: {network}/{tokenType}[:{address}] */
            readonly asset: string
            /** Exact decimal; parse it with a decimal library, never as floating point */
            readonly amount: string
          }
        | null
        | undefined
      /** Number of its block, in digits */
      readonly blockNumber?: string | null | undefined
      /** Hash of its block */
      readonly blockHash?: string | null | undefined
      /** Memo or destination tag */
      readonly memo?: string | null | undefined
      /** The custody platform's own id */
      readonly externalId?: string | null | undefined
    } | null
  }
  /** A transaction settled */
  readonly "transaction.confirmed": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly transaction: Transaction
    /** The fields that changed, with their values before; null for a new transaction. The two events of a change that leaves confirmed have the same */
    readonly previous: {
      /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
      readonly status?: TransactionStatus | undefined
      /** Asset identifier: {network}/{tokenType}[:{address}] */
      readonly asset?: string | undefined
      /** Exact decimal; parse it with a decimal library, never as floating point */
      readonly amount?: string | undefined
      /** Source address */
      readonly from?: string | undefined
      /** Destination address */
      readonly to?: string | undefined
      /** When it settled; before that, when it was first seen */
      readonly timestamp?: string | undefined
      /** What the vault paid for it; amount does not contain it */
      readonly fee?:
        | {
            /** Asset identifier: {network}/{tokenType}[:{address}] */
            readonly asset: string
            /** Exact decimal; parse it with a decimal library, never as floating point */
            readonly amount: string
          }
        | null
        | undefined
      /** Number of its block, in digits */
      readonly blockNumber?: string | null | undefined
      /** Hash of its block */
      readonly blockHash?: string | null | undefined
      /** Memo or destination tag */
      readonly memo?: string | null | undefined
      /** The custody platform's own id */
      readonly externalId?: string | null | undefined
    } | null
  }
  /** A transaction is in a block but reverted */
  readonly "transaction.failed": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly transaction: Transaction
    /** The fields that changed, with their values before; null for a new transaction. The two events of a change that leaves confirmed have the same */
    readonly previous: {
      /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
      readonly status?: TransactionStatus | undefined
      /** Asset identifier: {network}/{tokenType}[:{address}] */
      readonly asset?: string | undefined
      /** Exact decimal; parse it with a decimal library, never as floating point */
      readonly amount?: string | undefined
      /** Source address */
      readonly from?: string | undefined
      /** Destination address */
      readonly to?: string | undefined
      /** When it settled; before that, when it was first seen */
      readonly timestamp?: string | undefined
      /** What the vault paid for it; amount does not contain it */
      readonly fee?:
        | {
            /** Asset identifier: {network}/{tokenType}[:{address}] */
            readonly asset: string
            /** Exact decimal; parse it with a decimal library, never as floating point */
            readonly amount: string
          }
        | null
        | undefined
      /** Number of its block, in digits */
      readonly blockNumber?: string | null | undefined
      /** Hash of its block */
      readonly blockHash?: string | null | undefined
      /** Memo or destination tag */
      readonly memo?: string | null | undefined
      /** The custody platform's own id */
      readonly externalId?: string | null | undefined
    } | null
  }
  /** A pending transaction was replaced by another */
  readonly "transaction.replaced": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly transaction: Transaction
    /** The fields that changed, with their values before; null for a new transaction. The two events of a change that leaves confirmed have the same */
    readonly previous: {
      /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
      readonly status?: TransactionStatus | undefined
      /** Asset identifier: {network}/{tokenType}[:{address}] */
      readonly asset?: string | undefined
      /** Exact decimal; parse it with a decimal library, never as floating point */
      readonly amount?: string | undefined
      /** Source address */
      readonly from?: string | undefined
      /** Destination address */
      readonly to?: string | undefined
      /** When it settled; before that, when it was first seen */
      readonly timestamp?: string | undefined
      /** What the vault paid for it; amount does not contain it */
      readonly fee?:
        | {
            /** Asset identifier: {network}/{tokenType}[:{address}] */
            readonly asset: string
            /** Exact decimal; parse it with a decimal library, never as floating point */
            readonly amount: string
          }
        | null
        | undefined
      /** Number of its block, in digits */
      readonly blockNumber?: string | null | undefined
      /** Hash of its block */
      readonly blockHash?: string | null | undefined
      /** Memo or destination tag */
      readonly memo?: string | null | undefined
      /** The custody platform's own id */
      readonly externalId?: string | null | undefined
    } | null
  }
  /** A pending transaction will not settle */
  readonly "transaction.dropped": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly transaction: Transaction
    /** The fields that changed, with their values before; null for a new transaction. The two events of a change that leaves confirmed have the same */
    readonly previous: {
      /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
      readonly status?: TransactionStatus | undefined
      /** Asset identifier: {network}/{tokenType}[:{address}] */
      readonly asset?: string | undefined
      /** Exact decimal; parse it with a decimal library, never as floating point */
      readonly amount?: string | undefined
      /** Source address */
      readonly from?: string | undefined
      /** Destination address */
      readonly to?: string | undefined
      /** When it settled; before that, when it was first seen */
      readonly timestamp?: string | undefined
      /** What the vault paid for it; amount does not contain it */
      readonly fee?:
        | {
            /** Asset identifier: {network}/{tokenType}[:{address}] */
            readonly asset: string
            /** Exact decimal; parse it with a decimal library, never as floating point */
            readonly amount: string
          }
        | null
        | undefined
      /** Number of its block, in digits */
      readonly blockNumber?: string | null | undefined
      /** Hash of its block */
      readonly blockHash?: string | null | undefined
      /** Memo or destination tag */
      readonly memo?: string | null | undefined
      /** The custody platform's own id */
      readonly externalId?: string | null | undefined
    } | null
  }
  /** A confirmed transaction is no longer confirmed, as after a re-organization of the chain; unless it is pending, the event of its new status follows */
  readonly "transaction.reorged": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly transaction: Transaction
    /** The fields that changed, with their values before; null for a new transaction. The two events of a change that leaves confirmed have the same */
    readonly previous: {
      /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
      readonly status?: TransactionStatus | undefined
      /** Asset identifier: {network}/{tokenType}[:{address}] */
      readonly asset?: string | undefined
      /** Exact decimal; parse it with a decimal library, never as floating point */
      readonly amount?: string | undefined
      /** Source address */
      readonly from?: string | undefined
      /** Destination address */
      readonly to?: string | undefined
      /** When it settled; before that, when it was first seen */
      readonly timestamp?: string | undefined
      /** What the vault paid for it; amount does not contain it */
      readonly fee?:
        | {
            /** Asset identifier: {network}/{tokenType}[:{address}] */
            readonly asset: string
            /** Exact decimal; parse it with a decimal library, never as floating point */
            readonly amount: string
          }
        | null
        | undefined
      /** Number of its block, in digits */
      readonly blockNumber?: string | null | undefined
      /** Hash of its block */
      readonly blockHash?: string | null | undefined
      /** Memo or destination tag */
      readonly memo?: string | null | undefined
      /** The custody platform's own id */
      readonly externalId?: string | null | undefined
    } | null
  }
  /** Another field of a transaction than its status changed */
  readonly "transaction.updated": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly transaction: Transaction
    /** The fields that changed, with their values before; null for a new transaction. The two events of a change that leaves confirmed have the same */
    readonly previous: {
      /** pending: not in a block yet; confirmed: settled; failed: in a block but reverted; replaced, dropped: will not settle. Values may be added. */
      readonly status?: TransactionStatus | undefined
      /** Asset identifier: {network}/{tokenType}[:{address}] */
      readonly asset?: string | undefined
      /** Exact decimal; parse it with a decimal library, never as floating point */
      readonly amount?: string | undefined
      /** Source address */
      readonly from?: string | undefined
      /** Destination address */
      readonly to?: string | undefined
      /** When it settled; before that, when it was first seen */
      readonly timestamp?: string | undefined
      /** What the vault paid for it; amount does not contain it */
      readonly fee?:
        | {
            /** Asset identifier: {network}/{tokenType}[:{address}] */
            readonly asset: string
            /** Exact decimal; parse it with a decimal library, never as floating point */
            readonly amount: string
          }
        | null
        | undefined
      /** Number of its block, in digits */
      readonly blockNumber?: string | null | undefined
      /** Hash of its block */
      readonly blockHash?: string | null | undefined
      /** Memo or destination tag */
      readonly memo?: string | null | undefined
      /** The custody platform's own id */
      readonly externalId?: string | null | undefined
    } | null
  }
  /** A vault has a new deposit address */
  readonly "deposit_address.created": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly depositAddress: DepositAddress
  }
  /** A settled balance changed */
  readonly "balance.updated": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly balance: Balance
  }
  /** A vault was created */
  readonly "vault.created": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly vault: Vault
  }
  /** A vault's label or networks changed, or it moved to another entity: an event of both */
  readonly "vault.updated": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly vault: Vault
  }
  /** The statement of a day was sealed */
  readonly "statement.sealed": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly statement: {
      /** The UTC day */
      readonly date: string
      /** Number of the revision: 1, and one more each time late records change the day */
      readonly revision: number
      /** SHA-256 (hex) of the statement as RFC 8785 JSON without `hash` and `jws` */
      readonly hash: string
      /** Hash of the statement that was sealed before this one for the vault, whatever its day; null for the first */
      readonly previousHash: string | null
      /** When it was sealed */
      readonly sealedAt: string
    }
    /** What late records caused a revision; null for the first */
    readonly because: {
      /** Transactions of the day that were recorded or changed since */
      readonly transactionIds: ReadonlyArray<string>
      /** Assets with another balance, recorded since for the day or an earlier one */
      readonly assets: ReadonlyArray<string>
      /** How many more there are: at most 20 are named */
      readonly more: number
    } | null
  }
  /** Late records changed a sealed day: its statement has another revision */
  readonly "statement.revised": {
    /** The vault in which it occurred */
    readonly vaultId: string
    readonly statement: {
      /** The UTC day */
      readonly date: string
      /** Number of the revision: 1, and one more each time late records change the day */
      readonly revision: number
      /** SHA-256 (hex) of the statement as RFC 8785 JSON without `hash` and `jws` */
      readonly hash: string
      /** Hash of the statement that was sealed before this one for the vault, whatever its day; null for the first */
      readonly previousHash: string | null
      /** When it was sealed */
      readonly sealedAt: string
    }
    /** What late records caused a revision; null for the first */
    readonly because: {
      /** Transactions of the day that were recorded or changed since */
      readonly transactionIds: ReadonlyArray<string>
      /** Assets with another balance, recorded since for the day or an earlier one */
      readonly assets: ReadonlyArray<string>
      /** How many more there are: at most 20 are named */
      readonly more: number
    } | null
  }
  /** A webhook was disabled automatically */
  readonly "webhook.disabled": {
    /** The webhook that it concerns */
    readonly webhookId: string
    readonly webhook: {
      /** The webhook that it concerns */
      readonly id: string
      /** Its status */
      readonly status: "DISABLED"
      /** FAILING: no 2xx response for too long; GONE: the endpoint returned 410 twice */
      readonly disabledReason: "FAILING" | "GONE"
      /** When it was disabled */
      readonly disabledAt: string
    }
  }
  /** A webhook has a new signing secret */
  readonly "webhook.secret_rotated": {
    /** The webhook that it concerns */
    readonly webhookId: string
    readonly webhook: {
      /** The webhook that it concerns */
      readonly id: string
      /** When the previous secret expires; until then requests are signed with both */
      readonly previousSecretExpiresAt: string
    }
  }
  /** An API key expires in 30 days, 7 days or 1 day */
  readonly "api_key.expiring": {
    /** The API key that it concerns */
    readonly apiKeyId: string
    readonly apiKey: {
      /** The API key that it concerns */
      readonly id: string
      /** Free text for people */
      readonly label: string
      /** The user that the key is bound to */
      readonly userId: string
      /** When it expires */
      readonly expiresAt: string
      /** When it was used last; null: never */
      readonly lastUsedAt: string | null
    }
    /** Which warning this is: 30, 7 or 1 days before the expiry */
    readonly daysBefore: number
  }
  /** A test, sent by a ping and not in the log */
  readonly "webhook.ping": { readonly webhookId: string }
}

/** Kinds whose events name the vault that they happened in. */
export type VaultEventKind =
  | "transaction.pending"
  | "transaction.confirmed"
  | "transaction.failed"
  | "transaction.replaced"
  | "transaction.dropped"
  | "transaction.reorged"
  | "transaction.updated"
  | "deposit_address.created"
  | "balance.updated"
  | "vault.created"
  | "vault.updated"
  | "statement.sealed"
  | "statement.revised"
