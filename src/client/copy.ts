/**
 * A complete copy of a vault that the event feed keeps current. The copy takes a cursor of the feed, then reads the lists,
 * then applies the events after the cursor in the order of recording, which corrects rows that a list showed too early or
 * too late. A change without an event (a corrected timestamp, or a new `asOf` of an unchanged amount) becomes visible when
 * its row is read again. C-1.
 */
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
  /** By network, hash and direction; several if one hash moved several amounts. */
  readonly transactions: Map<string, ReadonlyArray<Transaction>>
  readonly addresses: Array<DepositAddress>
  /** The cursor: pass it as `after` to the feed to continue. */
  resumeCursor: string
}

const keyOf = ({ direction, hash, network }: Transaction): string => `${network} ${hash} ${direction}`

const sameMove = (a: Transaction, b: Transaction): boolean =>
  a.asset === b.asset && a.amount === b.amount && a.from === b.from && a.to === b.to

const sameAddress = (a: DepositAddress, b: DepositAddress): boolean =>
  a.address === b.address && a.network === b.network && a.assetType === b.assetType

/** Reads the rows of a hash again. Any later change of them has an event, which comes later in the feed. */
const readAgain = async (custody: Copier, copy: VaultCopy, transaction: Transaction): Promise<void> => {
  const { direction, hash, network } = transaction
  const rows: Array<Transaction> = []
  for await (const row of custody.listTransactions(copy.vault.id, { hash, network, direction })) rows.push(row)
  copy.transactions.set(keyOf(transaction), rows)
}

/** Applies a transaction. If its hash is known, the event alone does not show whether it is that row or another of the same hash. */
const applyTransaction = async (custody: Copier, copy: VaultCopy, transaction: Transaction): Promise<void> => {
  if (copy.transactions.has(keyOf(transaction))) await readAgain(custody, copy, transaction)
  else copy.transactions.set(keyOf(transaction), [transaction])
}

/** Applies an event of the feed to a copy. Events of other vaults, and events that change no row, have no effect. */
export const applyEvent = async (custody: Copier, copy: VaultCopy, event: WebhookEvent): Promise<void> => {
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
      await applyTransaction(custody, copy, received.data.transaction)
  }
}

/** Applies everything recorded so far, and moves the copy's cursor there. */
export const catchUp = async (custody: Copier, copy: VaultCopy): Promise<void> => {
  for (;;) {
    const page = await custody.readEventFeed({ after: copy.resumeCursor, vaultId: [copy.vault.id], limit: 500 })
    for (const event of page.data) await applyEvent(custody, copy, event)
    copy.resumeCursor = page.resumeCursor
    if (page.pagination.nextCursor === null) return
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
  for await (const transaction of custody.listTransactions(vaultId, { limit: 500 })) {
    const key = keyOf(transaction)
    copy.transactions.set(key, [...(copy.transactions.get(key) ?? []), transaction])
  }
  // A row that moved within the list while it was read may be listed twice.
  for (const [first, ...more] of copy.transactions.values())
    if (first !== undefined && more.some((one) => sameMove(first, one))) await readAgain(custody, copy, first)
  await catchUp(custody, copy)
  return copy
}
