/**
 * A complete copy of a vault, and keeping it so: the lists, and every change since the moment before they were walked.
 * What a list shows too early or too late for the place that was taken first, the feed corrects: events are applied in
 * the order of recording. A change without an event (a corrected timestamp, the `asOf` of an amount that
 * stays) shows when its row is read again. C-1.
 */
import type { Balance, DepositAddress, Transaction, Vault } from "./custody.ts"
import type { Operations } from "./operations.ts"
import type { WebhookEvent } from "./webhooks.ts"

/** The operations that a copy calls. */
export type Copier = Pick<Operations, "getVault" | "listBalances" | "listTransactions" | "listAddresses" | "readEventFeed">

/** A vault as it was at a place of the event feed. Mutable: {@link applyEvent} keeps it. */
export interface VaultCopy {
  vault: Vault
  /** By asset. */
  readonly balances: Map<string, Balance>
  /** By network, hash and direction; several where one hash moved several amounts. */
  readonly transactions: Map<string, ReadonlyArray<Transaction>>
  readonly addresses: Array<DepositAddress>
  /** The place: pass it as `after` to the feed, to go on. */
  resumeCursor: string
}

const keyOf = ({ direction, hash, network }: Transaction): string => `${network} ${hash} ${direction}`

const sameMove = (a: Transaction, b: Transaction): boolean =>
  a.asset === b.asset && a.amount === b.amount && a.from === b.from && a.to === b.to

const sameAddress = (a: DepositAddress, b: DepositAddress): boolean =>
  a.address === b.address && a.network === b.network && a.assetType === b.assetType

/** Reads the rows of a hash again: whatever changes them later has an event, which comes later in the feed. */
const readAgain = async (custody: Copier, copy: VaultCopy, transaction: Transaction): Promise<void> => {
  const { direction, hash, network } = transaction
  const rows: Array<Transaction> = []
  for await (const row of custody.listTransactions(copy.vault.id, { hash, network, direction })) rows.push(row)
  copy.transactions.set(keyOf(transaction), rows)
}

/** Applies a transaction. Where its hash is known already, nothing tells whether it is that row or another one of the same hash. */
const applyTransaction = async (custody: Copier, copy: VaultCopy, transaction: Transaction): Promise<void> => {
  if (copy.transactions.has(keyOf(transaction))) await readAgain(custody, copy, transaction)
  else copy.transactions.set(keyOf(transaction), [transaction])
}

/** Applies an event of the feed to a copy. Events of other vaults, and those that change no row, leave it as it is. */
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

/** Applies everything that is recorded by now, and moves the copy's place to it. */
export const catchUp = async (custody: Copier, copy: VaultCopy): Promise<void> => {
  for (;;) {
    const page = await custody.readEventFeed({ after: copy.resumeCursor, vaultId: [copy.vault.id], limit: 500 })
    for (const event of page.data) await applyEvent(custody, copy, event)
    copy.resumeCursor = page.resumeCursor
    if (page.pagination.nextCursor === null) return
  }
}

/**
 * A complete copy of a vault, whatever is written meanwhile: its rows as they are at the copy's place in the feed. Needs
 * the scopes `vault:read` and `webhook:read`. Go on with {@link catchUp}, or with the feed and {@link applyEvent}.
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
  // A row that changed its place in the list while it was walked may have been listed twice.
  for (const [first, ...more] of copy.transactions.values())
    if (first !== undefined && more.some((one) => sameMove(first, one))) await readAgain(custody, copy, first)
  await catchUp(custody, copy)
  return copy
}
