/** Applies transaction records to the state: what changes, what it replaces, and which events follow. Pure. C-9. Decision D-15. */
import { Struct } from "effect"
import type { Occurrence } from "../../events/log/Envelope.ts"
import type { Kind } from "../../events/log/Kind.ts"
import * as Amount from "../../values/Amount.ts"
import { type Transaction as ApiTransaction, type PreviousTransaction, stateFields, transactionFields } from "../../values/Vault.ts"
import { accountChanged, after, keyOf, type State, type Transaction, type Vault } from "./LedgerState.ts"
import type { RecordOf } from "./Record.ts"

/** A field that is absent from a record keeps its value; null clears it. */
const kept = <A>(given: A | null | undefined, known: A | null | undefined): A | null => (given === undefined ? (known ?? null) : given)

/** What the record says, with what it leaves out. */
const merged = (record: RecordOf<"transaction">, known: Transaction | undefined) => ({
  status: record.status,
  asset: record.asset,
  amount: Amount.canonical(record.amount),
  from: record.from,
  to: record.to,
  timestamp: record.timestamp,
  fee: kept(record.fee && { asset: record.fee.asset, amount: Amount.canonical(record.fee.amount) }, known?.fee),
  blockNumber: kept(record.blockNumber, known?.blockNumber),
  blockHash: kept(record.blockHash, known?.blockHash),
  memo: kept(record.memo, known?.memo),
  externalId: kept(record.externalId, known?.externalId)
})

/** The old values of the fields that differ. */
const previousOf = (known: Transaction, next: ReturnType<typeof merged>): PreviousTransaction =>
  Object.fromEntries(stateFields.flatMap((name) => (Bun.deepEquals(known[name], next[name]) ? [] : [[name, known[name]]])))

/** The kinds of a change: leaving `confirmed` is told first, and a status that the row had before is an update. */
const kindsOf = (from: Transaction["status"] | undefined, to: Transaction["status"]): ReadonlyArray<TransactionKind> => {
  if (from === to) return ["transaction.updated"]
  if (from !== "confirmed") return [`transaction.${to}`]
  return to === "pending" ? ["transaction.reorged"] : ["transaction.reorged", `transaction.${to}`]
}
type TransactionKind = Extract<Kind, `transaction.${string}`>

/** Whether statements count a transaction: confirmed ones, and the fees of failed ones. C-10. */
const isBooked = ({ fee, status }: Transaction) => status === "confirmed" || (status === "failed" && fee !== null)

/**
 * Applies a record whose references are known. `date` is when it happened, at most now; `now` the time of recording. Old news
 * is `stale`: a record that gives an earlier time than that of the row's last change, except one that ends a transaction that was
 * never anything but pending. A repeated confirmation from before a re-org ends nothing.
 */
export const applyTransaction = (
  state: State,
  record: RecordOf<"transaction">,
  date: string,
  now: string,
  owner: Vault
): "unchanged" | "stale" | ReadonlyArray<Occurrence<Kind>> => {
  const { direction, hash, index, network, vaultId } = record
  const id = keyOf.transaction(record)
  const known = state.transactions.get(id)
  const next = merged(record, known)
  const previous = known && previousOf(known, next)
  if (previous !== undefined && Object.keys(previous).length === 0) return "unchanged"
  const given = record.occurredAt ?? date
  const late = known !== undefined && given < known.givenAt
  if (late && record.occurredAt !== undefined && (known.leftPending || next.status === "pending")) return "stale"
  const occurredAt = known !== undefined && date < known.occurredAt ? after(known.occurredAt) : date
  const givenAt = late ? after(known.givenAt) : given
  const eventIds: Array<string> = []
  const version = (known?.version ?? 0) + 1
  const leftPending = known?.leftPending === true || next.status !== "pending"
  const row: Transaction = {
    ...next,
    id,
    vaultId,
    hash,
    network,
    index,
    direction,
    version,
    leftPending,
    occurredAt,
    givenAt,
    updatedAt: now,
    eventIds
  }
  if (known !== undefined) state.replaced.change(`${id}\n${known.version}`, known)
  state.transactions.change(id, row)
  for (const one of [known, row]) if (one !== undefined && isBooked(one)) accountChanged(state, vaultId, one.timestamp, id)
  return kindsOf(known?.status, next.status).map((kind) => ({
    kind,
    date: occurredAt,
    organizationId: owner.organizationId,
    entityId: owner.entityId,
    vaultId,
    data: { vaultId, transaction: transactionOf(row), previous: previous ?? null },
    recordedIn: eventIds
  }))
}

/** A row as in API responses, its keys in the documented order. */
export const transactionOf = (row: Transaction): ApiTransaction => Struct.pick(row, ...transactionFields)
