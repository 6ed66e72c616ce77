/** Applies balance records to the state and writes their changes: present balances, history, and notes for statements. C-6. */
import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import * as Amount from "../../values/Amount.ts"
import type { Balance, BalanceRecord } from "./BalanceHistory.ts"
import { accountChanged, keyOf, type State } from "./LedgerState.ts"

/** The effect of a balance record: none; a change of the past or of the present's time only; or a new present amount. */
interface Applied {
  readonly outcome: "unchanged" | "history" | "present"
  readonly present: Balance
}

/** Applies a balance record. `date` is its `occurredAt`, or the time of recording; `now` the time of recording. */
export const applyBalance = (state: State, record: BalanceRecord, date: string, now: string): Applied => {
  const key = keyOf.balance(record),
    known = state.balances.get(key),
    amount = Amount.canonical(record.amount),
    { asset, vaultId } = record
  const own = record.occurredAt !== undefined
  // The newest record is in the future: either it was given such a time, or the clock was set back since. In the latter
  // case the order of recording counts.
  const setBack = !own && known !== undefined && known.asOf > date && known.asOf <= known.recordedAt
  const asOf = setBack ? known.asOf : date
  const row: Balance = { vaultId, asset, amount, asOf, recordedAt: own ? now : asOf }
  const last = known !== undefined && known.asOf <= asOf ? known : state.balanceHistory.lastAt(record, asOf)
  if (last?.amount === amount && (!own || last.asOf === asOf) && known !== undefined) return { outcome: "unchanged", present: known }
  state.balanceHistory.add(row)
  accountChanged(state, vaultId, asOf)
  if (known !== undefined && asOf < known.asOf) return { outcome: "history", present: known }
  state.balances.change(key, row)
  return { outcome: known?.amount === amount ? "history" : "present", present: row }
}

/** Writes the changed present balances, and appends to the history. */
export const writeBalances = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, state: State) {
  const balances = state.balances.changed()
  if (balances.length > 0) {
    yield* sql`
      INSERT INTO balances (vault_id, asset_id, network, symbol, amount, as_of, recorded_at)
      SELECT b.vault_id, b.asset_id, a.network, a.symbol, b.amount, b.as_of, b.recorded_at
      FROM unnest(${balances.map((_) => _.vaultId)}::text[], ${balances.map((_) => _.asset)}::text[],
        ${balances.map((_) => _.amount)}::numeric[], ${balances.map((_) => _.asOf)}::timestamptz[], ${balances.map((_) => _.recordedAt)}::timestamptz[])
        AS b (vault_id, asset_id, amount, as_of, recorded_at) JOIN assets a ON a.id = b.asset_id
      ON CONFLICT (vault_id, asset_id) DO UPDATE SET amount = excluded.amount, as_of = excluded.as_of, recorded_at = excluded.recorded_at, updated_at = now()`
  }
  const added = state.balanceHistory.added()
  if (added.length > 0) {
    yield* sql`
      INSERT INTO balance_history (vault_id, asset_id, amount, as_of, recorded_at)
      SELECT * FROM unnest(${added.map((_) => _.vaultId)}::text[], ${added.map((_) => _.asset)}::text[],
        ${added.map((_) => _.amount)}::numeric[], ${added.map((_) => _.asOf)}::timestamptz[], ${added.map((_) => _.recordedAt)}::timestamptz[])`
  }
})

/** Longest time from applying a batch to its commit, with a margin for clocks that differ, in ms. */
const COMMIT_MS = 300_000

/**
 * Records the vaults whose past days the batch changed, so that sealing compares those days with their statements. The
 * current day needs no note: it is sealed later, from the data at that time.
 */
export const noteLateChanges = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { accountChanges }: State) {
  const today = new Date(Date.now() + COMMIT_MS).toISOString().slice(0, 10)
  const late = accountChanges.changed().filter(({ at }) => at < today)
  if (late.length === 0) return
  yield* sql`
    INSERT INTO statement_changes (vault_id, from_date)
    SELECT * FROM unnest(${late.map((_) => _.vaultId)}::text[], ${late.map((_) => _.at.slice(0, 10))}::date[])
    ON CONFLICT (vault_id) DO UPDATE SET from_date = least(statement_changes.from_date, excluded.from_date)`
})
