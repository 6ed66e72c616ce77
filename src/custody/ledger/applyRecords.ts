/**
 * Applies records to the state in order: what changes, which events follow, or why a record is rejected. Pure: nothing
 * here reads or writes. Source: custody records, rules 1 to 4. Decision D-15.
 */

import type { Occurrence } from "../../events/log/Envelope.ts"
import type { Dated } from "../../events/log/EventLog.ts"
import type { Kind } from "../../events/log/Kind.ts"
import * as Amount from "../../values/Amount.ts"
import * as Id from "../../values/Id.ts"
import { applyBalance } from "./applyBalance.ts"
import { applyTransaction } from "./applyTransaction.ts"
import type { ChangedRows } from "./ChangedRows.ts"
import { deletingOf } from "./deletingOf.ts"
import { type Asset, after, keyOf, latest, type State, type Vault } from "./LedgerState.ts"
import type { Fault, Record, RecordOf } from "./Record.ts"

/** The result of a batch. If there are faults, nothing of it may be written. */
export interface ApplyResult {
  readonly faults: ReadonlyArray<Fault>
  readonly changed: number
  readonly unchanged: number
  /** Lines of records that are older than what their rows already say. */
  readonly stale: ReadonlyArray<number>
  readonly occurrences: ReadonlyArray<Occurrence<Kind>>
  /** The latest date of each object's changes so far. */
  readonly dates: ReadonlyMap<string, Dated>
}

/** A record with its line, from 1. */
export interface Numbered {
  readonly line: number
  readonly record: Record
}

/** The effect of one record: nothing, nothing because it is old news, or a change with its events. */
type Outcome = "unchanged" | "stale" | ReadonlyArray<Occurrence<Kind>>

/** How far ahead of the clock a record may say that it happened, and a transaction that it was seen or settled, in ms. C-9. */
const AHEAD_MS = 5 * 60_000,
  TIMESTAMP_AHEAD_MS = 2 * 3_600_000

/** Why a record is rejected. */
class Rejection {
  readonly field: string
  readonly reason: string
  constructor(field: string, reason: string) {
    this.field = field
    this.reason = reason
  }
}

/**
 * Applies records to the state. `broken` has ids of records that could not be decoded: records that refer to them are not
 * reported again. `now` is the time of recording, UTC ISO 8601, and the default date. Two changes of one object never
 * have the same date, because consumers order by it: `earlier` has the latest dates so far of objects that are
 * ahead of the clock, and each further change is a millisecond later.
 */
export const applyRecords = (
  state: State,
  records: ReadonlyArray<Numbered>,
  broken: ReadonlySet<string>,
  now: string,
  earlier: ReadonlyMap<string, Dated> = new Map()
): ApplyResult => {
  const faults: Array<Fault> = []
  const occurrences: Array<Occurrence<Kind>> = []
  const invalidIds = new Set(broken)
  const dates = new Map(earlier)
  const start = Date.parse(now)
  const stale: Array<number> = []
  let changed = 0,
    unchanged = 0
  for (const { line, record } of records) {
    const object = objectOf(record),
      date = Math.max(start, (dates.get(object)?.date ?? 0) + 1)
    // Up to a few minutes ahead is shown as now; records are compared by the times that they give.
    const happened = record.occurredAt === undefined || record.occurredAt > now ? new Date(date).toISOString() : record.occurredAt
    const outcome = fromFuture(record, start) ?? apply(state, record, happened, now, invalidIds)
    if (outcome instanceof Rejection) {
      if (outcome.reason !== "") faults.push({ line, field: outcome.field, reason: outcome.reason })
      if ("id" in record) invalidIds.add(record.id)
      if (record.type === "network") invalidIds.add(record.name)
    } else if (outcome === "unchanged") unchanged++
    else if (outcome === "stale") stale.push(line)
    else {
      changed++
      occurrences.push(...outcome)
      // A time of its own in the past says nothing about the next one.
      const [first] = outcome,
        at = Date.parse(happened)
      if (first !== undefined && at >= start)
        dates.set(object, { organizationId: first.organizationId, date: Math.max(dates.get(object)?.date ?? 0, at) })
    }
  }
  return { faults, changed, unchanged, stale, occurrences, dates }
}

/** Rejects a record that says it happened later than clocks differ. */
const fromFuture = (record: Record, now: number): Rejection | undefined => {
  const isAhead = (time: string | undefined, millis: number) => time !== undefined && Date.parse(time) > now + millis
  if (isAhead(record.occurredAt, AHEAD_MS)) return new Rejection("occurredAt", "is more than 5 minutes ahead of the service's clock")
  if (record.type === "transaction" && isAhead(record.timestamp, TIMESTAMP_AHEAD_MS))
    return new Rejection("timestamp", "is more than 2 hours ahead of the service's clock")
  return undefined
}

/** The object of a record. */
const objectOf = (record: Record): string => {
  switch (record.type) {
    case "network":
      return `network ${record.name}`
    case "address":
      return `address ${keyOf.address(record)}`
    case "transaction":
      return `transaction ${record.vaultId}\n${keyOf.transaction(record)}`
    case "balance":
      return `balance ${keyOf.balance(record)}`
    default:
      return record.id
  }
}

const apply = (state: State, record: Record, date: string, now: string, invalidIds: ReadonlySet<string>): Outcome | Rejection => {
  /** The row that a field refers to, or a rejection; without a reason if the row's own record is invalid. */
  const refer = <Row>(rows: ChangedRows<Row>, field: string, id: string): Row | Rejection =>
    rows.get(id) ?? new Rejection(field, invalidIds.has(id) ? "" : `refers to ${id}, which was not recorded before`)

  const referAll = <Row>(rows: ChangedRows<Row>, field: string, ids: ReadonlyArray<string>): Rejection | undefined =>
    ids.map((id) => refer(rows, field, id)).find((row) => row instanceof Rejection)

  const deleting = deletingOf(state, record)
  if (deleting !== undefined) return new Rejection(deleting.field, `${deleting.organizationId} is being deleted`)

  switch (record.type) {
    case "network":
      return put(state.networks, record.name, { name: record.name, kind: record.kind })

    case "asset": {
      const network = refer(state.networks, "network", record.network)
      if (network instanceof Rejection) return network
      if (!record.id.startsWith(`${record.network}/`)) return new Rejection("id", `must begin with its network, ${record.network}/`)
      const { decimals, id, name, symbol } = record
      const digits = state.assets.get(id)?.digits ?? 0
      if (decimals < digits)
        return new Rejection("decimals", `cannot be less than ${digits}: recorded amounts have that many fraction digits`)
      return put(state.assets, id, { id, symbol, name, decimals, network: record.network, digits })
    }

    case "organization": {
      const { id, name, networks } = record
      return referAll(state.networks, "networks", networks) ?? put(state.organizations, id, { id, name, networks })
    }

    case "entity": {
      const { id, name, organizationId } = record
      const organization = refer(state.organizations, "organizationId", organizationId)
      if (organization instanceof Rejection) return organization
      return moved(state.entities.get(id), organizationId) ?? put(state.entities, id, { id, organizationId, name })
    }

    case "vault":
      return vault(
        state,
        record,
        date,
        refer(state.entities, "entityId", record.entityId),
        referAll(state.networks, "networks", record.networks)
      )

    case "user": {
      const { email, id, name, organizationId, organizationRole, status } = record
      const organization = refer(state.organizations, "organizationId", organizationId)
      if (organization instanceof Rejection) return organization
      const vaultIds = [...new Set(record.vaultRoles.map(({ vaultId }) => vaultId))].sort()
      const missing = referAll(state.vaults, "vaultRoles", vaultIds)
      if (missing !== undefined) return missing
      const foreign = vaultIds.find((vaultId) => state.vaults.get(vaultId)?.organizationId !== organizationId)
      if (foreign !== undefined) return new Rejection("vaultRoles", `${foreign} belongs to another organization`)
      if (status === "deactivated") state.deactivated.add(id)
      const before = state.users.get(id)
      const after = { id, organizationId, email, name, status, organizationRole, vaultIds }
      const outcome = moved(before, organizationId) ?? put(state.users, id, after)
      if (Array.isArray(outcome)) state.userChanges.change(Id.make("aud"), { before, after })
      return outcome
    }

    case "address": {
      const owner = refer(state.vaults, "vaultId", record.vaultId)
      if (owner instanceof Rejection) return owner
      const network = refer(state.networks, "network", record.network)
      if (network instanceof Rejection) return network
      const { address, assetType, vaultId } = record
      const known = state.addresses.get(keyOf.address(record))
      const createdAt = record.createdAt ?? known?.createdAt ?? date
      const outcome = put(state.addresses, keyOf.address(record), { vaultId, network: record.network, address, assetType, createdAt })
      if (outcome === "unchanged" || known !== undefined) return outcome
      return [event("deposit_address.created", owner, date, { vaultId, depositAddress: { address, network: record.network, assetType } })]
    }

    case "transaction": {
      const owner = refer(state.vaults, "vaultId", record.vaultId)
      if (owner instanceof Rejection) return owner
      const network = refer(state.networks, "network", record.network)
      if (network instanceof Rejection) return network
      for (const [field, moved] of [
        ["asset", record],
        ["fee.asset", record.fee]
      ] as const) {
        if (moved == null) continue
        const asset = refer(state.assets, field, moved.asset)
        if (asset instanceof Rejection) return asset
        if (asset.network !== record.network) return new Rejection(field, `is not an asset of ${record.network}`)
        const tooFine = fits(state, field === "asset" ? "amount" : "fee.amount", moved.amount, asset)
        if (tooFine !== undefined) return tooFine
      }
      return applyTransaction(state, record, date, now, owner)
    }

    case "balance": {
      const owner = refer(state.vaults, "vaultId", record.vaultId)
      if (owner instanceof Rejection) return owner
      const asset = refer(state.assets, "asset", record.asset)
      if (asset instanceof Rejection) return asset
      const tooFine = fits(state, "amount", record.amount, asset)
      if (tooFine !== undefined) return tooFine
      const { outcome, present } = applyBalance(state, record, date, now)
      if (outcome !== "present") return outcome === "history" ? [] : outcome
      const { amount, asOf, vaultId } = present
      return [
        event("balance.updated", owner, asOf, {
          vaultId,
          balance: { asset: asset.id, network: asset.network, symbol: asset.symbol, amount, asOf }
        })
      ]
    }
  }
}

const vault = (
  state: State,
  record: RecordOf<"vault">,
  date: string,
  entity: { readonly organizationId: string } | Rejection,
  missing: Rejection | undefined
): Outcome | Rejection => {
  if (entity instanceof Rejection) return entity
  if (missing !== undefined) return missing
  const { createdAt, entityId, id, label, networks } = record
  const known = state.vaults.get(id)
  const away = moved(known, entity.organizationId)
  if (away !== undefined) return away
  const given = record.occurredAt ?? latest(date, known && after(known.givenAt))
  const row = { id, entityId, organizationId: entity.organizationId, label, networks, createdAt, givenAt: known?.givenAt ?? given }
  if (known !== undefined && Bun.deepEquals(known, row)) return "unchanged"
  if (given < row.givenAt) return "stale"
  state.vaults.change(id, { ...row, givenAt: given })
  const kind = known === undefined ? "vault.created" : "vault.updated"
  const change = (owner: Vault) => event(kind, owner, date, { vaultId: id, vault: { id, entityId, label, networks, createdAt } })
  // Who follows the former entity learns that the vault has left it.
  return known === undefined || known.entityId === entityId ? [change(row)] : [change(known), change(row)]
}

const event = <K extends Kind>(kind: K, owner: Vault, date: string, data: Occurrence<K>["data"]): Occurrence<K> => ({
  kind,
  date,
  organizationId: owner.organizationId,
  entityId: owner.entityId,
  vaultId: owner.id,
  data
})

/** Stores a row; an identical row changes nothing. */
const put = <Row extends object>(rows: ChangedRows<Row>, key: string, row: Row): Outcome => {
  const known = rows.get(key)
  if (known !== undefined && Bun.deepEquals(known, row)) return "unchanged"
  rows.change(key, row)
  return []
}

const moved = (known: { readonly organizationId: string } | undefined, organizationId: string): Rejection | undefined =>
  known === undefined || known.organizationId === organizationId
    ? undefined
    : new Rejection("organizationId", `cannot move to another organization; it belongs to ${known.organizationId}`)

/** Rejects an amount with more fraction digits than its asset has, and keeps the most that were recorded. */
const fits = (state: State, field: string, amount: string, asset: Asset): Rejection | undefined => {
  if (Amount.fractionDigits(amount) > asset.decimals)
    return new Rejection(field, `has more fraction digits than the asset's ${asset.decimals} decimals`)
  const digits = Amount.fractionDigits(Amount.canonical(amount))
  if (digits > asset.digits) state.assets.change(asset.id, { ...asset, digits })
  return undefined
}
