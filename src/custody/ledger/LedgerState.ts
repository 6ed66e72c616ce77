/**
 * The state that a batch of records is applied to: the rows that it names (readState.ts). The batch is applied to this state
 * record by record (applyRecords.ts), so that a later record sees the changes of earlier ones; the changes are then written
 * with one statement per table (writeState.ts).
 */
import { Schema } from "effect"
import * as Id from "../../values/Id.ts"
import { Transaction as ApiTransaction } from "../../values/Vault.ts"
import type { Balance, BalanceHistory } from "./BalanceHistory.ts"
import type { ChangedRows } from "./ChangedRows.ts"

export const Network = Schema.Struct({ name: Schema.String, kind: Schema.String })
export type Network = typeof Network.Type

export const Asset = Schema.Struct({
  id: Schema.String,
  symbol: Schema.String,
  name: Schema.String,
  decimals: Schema.Number,
  network: Schema.String,
  /** Most fraction digits of an amount of it that was ever recorded; `decimals` cannot fall below. */
  digits: Schema.Number
})
export type Asset = typeof Asset.Type

export const Organization = Schema.Struct({ id: Schema.String, name: Schema.String, networks: Schema.Array(Schema.String) })
export type Organization = typeof Organization.Type

export const Entity = Schema.Struct({ id: Schema.String, organizationId: Schema.String, name: Schema.String })
export type Entity = typeof Entity.Type

export const Vault = Schema.Struct({
  id: Schema.String,
  entityId: Schema.String,
  organizationId: Schema.String,
  label: Schema.String,
  networks: Schema.Array(Schema.String),
  createdAt: Schema.String,
  /** The time that the record of its last change gives: an older record changes nothing. */
  givenAt: Schema.String
})
export type Vault = typeof Vault.Type

export const User = Schema.Struct({
  id: Schema.String,
  organizationId: Schema.String,
  email: Schema.String,
  name: Schema.String,
  status: Schema.String,
  organizationRole: Schema.String,
  /** Vaults on which the user has the Developer role, sorted. */
  vaultIds: Schema.Array(Schema.String)
})
export type User = typeof User.Type

export const Address = Schema.Struct({
  vaultId: Schema.String,
  network: Schema.String,
  address: Schema.String,
  assetType: Schema.String,
  createdAt: Schema.String
})
export type Address = typeof Address.Type

export const Transaction = Schema.Struct({
  ...ApiTransaction.fields,
  vaultId: Schema.String,
  index: Schema.Number,
  /** How many states it has had, this one included. */
  version: Schema.Number,
  /** Whether it has, or once had, another status than `pending`. */
  leftPending: Schema.Boolean,
  /** When its last change happened, never in the future. */
  occurredAt: Schema.String,
  /** The time that the record of its last change gives, up to 5 minutes ahead: an older record changes nothing. */
  givenAt: Schema.String,
  /** The events of its last change; filled in when they have ids. */
  eventIds: Schema.mutable(Schema.Array(Schema.String))
})
export type Transaction = typeof Transaction.Type

/** A record that changed who may do what. */
export interface UserChange {
  readonly before: User | undefined
  readonly after: User
}

/** What changed a vault's account on a day: a transaction or the balance of an asset, by its id. */
export interface AccountChange {
  readonly vaultId: string
  readonly date: string
  readonly cause: string
}

export interface State {
  readonly networks: ChangedRows<Network>
  readonly assets: ChangedRows<Asset>
  readonly organizations: ChangedRows<Organization>
  /** Organizations that are being deleted, whose records are rejected. */
  readonly deleting: ReadonlySet<string>
  readonly entities: ChangedRows<Entity>
  readonly vaults: ChangedRows<Vault>
  readonly users: ChangedRows<User>
  /** What records of users changed, for the audit log: an entry for each record. */
  readonly userChanges: ChangedRows<UserChange>
  /** Users that a record of the batch deactivates, even if a later one activates them again. */
  readonly deactivated: Set<string>
  readonly addresses: ChangedRows<Address>
  /** By id. */
  readonly transactions: ChangedRows<Transaction>
  /** States that the batch replaced, by id and version. */
  readonly replaced: ChangedRows<Transaction>
  readonly balances: ChangedRows<Balance>
  readonly balanceHistory: BalanceHistory
  /** What changed the accounts of vaults: sealed statements are compared with the ledger again. */
  readonly accountChanges: ChangedRows<AccountChange>
}

const join = (...parts: ReadonlyArray<string | number>) => parts.join("\n")

/** Starts a part of a batch that {@link undo} can undo. */
export const mark = (state: State): void => {
  for (const rows of tables(state)) rows.mark()
}

/** Undoes what changed since {@link mark}. */
export const undo = (state: State): void => {
  for (const rows of tables(state)) rows.undo()
}

const tables = (state: State) => [
  state.networks,
  state.assets,
  state.organizations,
  state.entities,
  state.vaults,
  state.users,
  state.userChanges,
  state.addresses,
  state.transactions,
  state.replaced,
  state.balances,
  state.balanceHistory,
  state.accountChanges
]

/** A millisecond after a time. */
export const after = (time: string): string => new Date(Date.parse(time) + 1).toISOString()

/** The later of two times. */
export const latest = (time: string, other: string | undefined): string => (other !== undefined && other > time ? other : time)

/** Natural keys as text. Source: custody records, rule 1. */
export const keyOf = {
  address: (row: Pick<Address, "vaultId" | "network" | "address" | "assetType">) =>
    join(row.vaultId, row.network, row.address, row.assetType),
  /** Its id, which is derived from its natural key. */
  transaction: (row: Pick<Transaction, "network" | "hash" | "index" | "vaultId" | "direction">) =>
    Id.ofKey("tx", row.network, row.hash, String(row.index), row.vaultId, row.direction),
  balance: (row: Pick<Balance, "vaultId" | "asset">) => join(row.vaultId, row.asset)
}

/** Records that a transaction or the balance of an asset changed a vault's account at a time. */
export const accountChanged = ({ accountChanges }: State, vaultId: string, at: string, cause: string): void => {
  const date = at.slice(0, 10)
  accountChanges.change(join(vaultId, date, cause), { vaultId, date, cause })
}
