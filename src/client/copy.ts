/**
 * A complete copy of a vault that the event feed keeps current. The copy takes a cursor of the feed, then reads the lists,
 * then applies the events after the cursor in the order of recording, which corrects rows that a list showed too early or
 * too late. A new `asOf` of an unchanged amount has no event: it becomes visible when the balance is read again. C-1.
 */
import { eachPage } from "./eachPage.ts"
import type { Balance, DepositAddress, Transaction, Vault } from "./generated/custody.ts"
import type { Operations } from "./generated/operations.ts"
import type { WebhookEvent } from "./generated/webhooks.ts"

/** The operations that a copy calls. */
export type Copier = Pick<Operations, "getVault" | "listBalances" | "listTransactions" | "listAddresses" | "readEventFeed">

/** A vault as of a cursor of the event feed. Mutable: {@link applyEvent} updates it. */
export interface VaultCopy {
  vault: Vault
  /** By asset. */
  readonly balances: Map<string, Balance>
  /** By id. */
  readonly transactions: Map<string, Transaction>
  readonly addresses: Array<DepositAddress>
  /** The cursor: pass it as `after` to the feed to continue. */
  resumeCursor: string
}

const sameAddress = (a: DepositAddress, b: DepositAddress): boolean =>
  a.address === b.address && a.network === b.network && a.assetType === b.assetType

/** Applies an event of the feed to a copy. Events of other vaults, and events that change no row, have no effect. */
export const applyEvent = (copy: VaultCopy, event: WebhookEvent): void => {
  if (event.vaultIds?.includes(copy.vault.id) !== true) return
  const received = event.payload
  switch (received.kind) {
    case "vault.created":
    case "vault.updated":
      copy.vault = received.data.vault
      return
    case "balance.updated":
      copy.balances.set(received.data.balance.asset, received.data.balance)
      return
    case "deposit_address.created": {
      const { depositAddress } = received.data
      if (!copy.addresses.some((known) => sameAddress(known, depositAddress))) copy.addresses.push(depositAddress)
      return
    }
    case "transaction.pending":
    case "transaction.confirmed":
    case "transaction.failed":
    case "transaction.replaced":
    case "transaction.dropped":
    case "transaction.reorged":
    case "transaction.updated":
      copy.transactions.set(received.data.transaction.id, received.data.transaction)
  }
}

/** Applies everything recorded so far, and moves the copy's cursor there. Rejects with `not_found` while the key does not see the vault. */
export const catchUp = async (custody: Copier, copy: VaultCopy): Promise<void> => {
  const read = (cursor = copy.resumeCursor) => custody.readEventFeed({ after: cursor, vaultId: [copy.vault.id], limit: 500 })
  for await (const page of eachPage(read, copy.resumeCursor)) {
    // A page skips events of a vault that the key does not see.
    await custody.getVault(copy.vault.id)
    for (const event of page.data) applyEvent(copy, event)
    copy.resumeCursor = page.resumeCursor
  }
}

/**
 * A complete copy of a vault, even during writes: its rows as of the copy's cursor in the feed. Requires the scopes
 * `vault:read` and `webhook:read`. Continue with {@link catchUp}, or with the feed and {@link applyEvent}.
 */
export const copyVault = async (custody: Copier, vaultId: string): Promise<VaultCopy> => {
  const { resumeCursor } = await custody.readEventFeed({ from: "now", limit: 1 })
  const copy: VaultCopy = {
    vault: await custody.getVault(vaultId),
    balances: new Map(),
    transactions: new Map(),
    addresses: [],
    resumeCursor
  }
  for await (const balance of custody.listBalances(vaultId)) copy.balances.set(balance.asset, balance)
  for await (const address of custody.listAddresses(vaultId, { limit: 500 })) copy.addresses.push(address)
  for await (const transaction of custody.listTransactions(vaultId, { limit: 500 })) copy.transactions.set(transaction.id, transaction)
  await catchUp(custody, copy)
  return copy
}
