/**
 * The history of balances. Each `balance` record that changes something is appended with its own time; the newest of an
 * asset is its present balance. A record without `occurredAt` is the balance at the time of recording. A record earlier
 * than the newest is added to the past and does not change the present; for equal times the last recorded counts. Records
 * are ordered by the times that they give, and those that are ahead of the clock are shown from their time of recording:
 * both times of an asset's records ascend together. C-6.
 */
import type { SqlClient } from "@effect/sql"
import { Schema } from "effect"
import { castRows } from "../../runtime/database/decodeRows.ts"
import type { RecordOf } from "./Record.ts"

/** One balance record. `balances` has the newest per asset, `balance_history` all of them. */
export const Balance = Schema.Struct({
  vaultId: Schema.String,
  asset: Schema.String,
  amount: Schema.String,
  /** When the balance had this amount, never in the future: the record's `occurredAt`, or the time of recording. */
  asOf: Schema.String,
  /** The same as the record gives it, up to 5 minutes ahead. */
  givenAt: Schema.String,
  recordedAt: Schema.String
})
export type Balance = typeof Balance.Type

/** A decoded `balance` record. */
export type BalanceRecord = RecordOf<"balance">

const keyOf = ({ asset, vaultId }: Pick<Balance, "vaultId" | "asset">) => `${vaultId}\n${asset}`

/** The last record of an asset at or before the time `at`. */
const LastRecord = Schema.Struct({
  vaultId: Schema.String,
  asset: Schema.String,
  at: Schema.String,
  amount: Schema.String,
  asOf: Schema.String,
  givenAt: Schema.String
})
export type LastRecord = typeof LastRecord.Type

// A batch has up to a thousand of them.
const cast = castRows(LastRecord)

/** The part of the history that a batch needs: the last records at the times that it names, and what it adds. */
export class BalanceHistory {
  readonly #loaded = new Map<string, LastRecord>()
  readonly #added = new Map<string, Array<Balance>>()
  /** The keys of the rows added since {@link mark}. */
  #since: Array<string> = []

  load(rows: ReadonlyArray<LastRecord>): void {
    for (const row of rows) this.#loaded.set(`${keyOf(row)}\n${row.at}`, row)
  }

  add(row: Balance): void {
    const key = keyOf(row),
      known = this.#added.get(key)
    if (known === undefined) this.#added.set(key, [row])
    else known.push(row)
    this.#since.push(key)
  }

  /** Starts a part that may be undone. */
  mark(): void {
    this.#since = []
  }
  /** Undoes what was added since {@link mark}. */
  undo(): void {
    for (const key of this.#since) this.#added.get(key)?.pop()
    this.#since = []
  }

  /** The record that counts at the `occurredAt` of a record: for equal times the last recorded. */
  lastAt(record: BalanceRecord, at: string): Omit<LastRecord, "at"> | undefined {
    let last: Omit<LastRecord, "at"> | undefined = this.#loaded.get(`${keyOf(record)}\n${at}`)
    for (const one of this.#added.get(keyOf(record)) ?? []) {
      if (one.asOf <= at && (last === undefined || one.asOf >= last.asOf)) last = one
    }
    return last
  }

  /** What the batch adds: the records of an asset in the order of recording. */
  added(): ReadonlyArray<Balance> {
    return [...this.#added.values()].flat()
  }
}

/** Reads, for each record with a time, the last one of its asset at or before it. */
export const lastRecords = (sql: SqlClient.SqlClient, records: ReadonlyArray<BalanceRecord>) => {
  const timed = records.filter(({ occurredAt }) => occurredAt !== undefined)
  return cast(sql`
    SELECT k.vault_id AS "vaultId", k.asset_id AS asset, k.at, h.amount::text AS amount, h.as_of AS "asOf", h.given_at AS "givenAt"
    FROM unnest(${timed.map((_) => _.vaultId)}::text[], ${timed.map((_) => _.asset)}::text[],
      ${timed.map((_) => _.occurredAt)}::timestamptz[]) AS k (vault_id, asset_id, at)
    CROSS JOIN LATERAL (
      SELECT b.amount, b.as_of, coalesce(b.given_at, b.as_of) AS given_at FROM balance_history b
      WHERE b.vault_id = k.vault_id AND b.asset_id = k.asset_id AND b.as_of <= k.at
      ORDER BY b.as_of DESC, b.id DESC LIMIT 1
    ) h`)
}
