/** Applies balance records to the state and writes their changes: present balances, history, and notes for statements. C-6. */
import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import * as Amount from "../../values/Amount.ts"
import type { Balance, BalanceRecord } from "./BalanceHistory.ts"
import { accountChanged, after, keyOf, latest, type State } from "./LedgerState.ts"

/** The effect of a balance record: none; none because it is old news; a change of the past or of the present's time; a new present amount. */
interface Applied {
  readonly outcome: "unchanged" | "stale" | "history" | "present"
  readonly present: Balance
}

/**
 * Applies a balance record. `date` is its `occurredAt`, at most now, or the time of recording; `now` the time of recording. A
 * record without `occurredAt` is the newest. One that was ahead is shown from the time of recording on, so an older one that comes
 * afterwards with a time since then is old news.
 */
export const applyBalance = (state: State, record: BalanceRecord, date: string, now: string): Applied => {
  const key = keyOf.balance(record),
    known = state.balances.get(key),
    amount = Amount.canonical(record.amount),
    { asset, vaultId } = record
  const own = record.occurredAt !== undefined
  const given = record.occurredAt ?? latest(date, known && after(known.givenAt))
  const isPresent = known === undefined || given >= known.givenAt
  // A new amount is dated after the last one, which may be ahead of the clock.
  const asOf = isPresent && known !== undefined && date < known.asOf ? after(known.asOf) : date
  const row: Balance = { vaultId, asset, amount, asOf, givenAt: given, recordedAt: own ? now : asOf }
  const last = isPresent ? known : state.balanceHistory.lastAt(record, given)
  if (known !== undefined && last?.amount === amount && (!own || last.givenAt === given)) return { outcome: "unchanged", present: known }
  if (known !== undefined && last !== undefined && given < last.givenAt) return { outcome: "stale", present: known }
  state.balanceHistory.add(row)
  accountChanged(state, vaultId, asOf, asset)
  if (!isPresent) return { outcome: "history", present: known }
  state.balances.change(key, row)
  return { outcome: known?.amount === amount ? "history" : "present", present: row }
}

/** Keeps which assets vaults hold or moved, as a statement. C-9. */
export const heldAssets = (sql: SqlClient.SqlClient, { vaults }: State, moved: ReadonlyArray<Pick<Balance, "vaultId" | "asset">>) => {
  const pairs = [...new Map(moved.map(({ asset, vaultId }) => [`${vaultId}\n${asset}`, { asset, vaultId }])).values()]
  return sql`
    INSERT INTO vault_assets (organization_id, asset_id, vault_id)
    SELECT * FROM unnest(${pairs.map(({ vaultId }) => vaults.get(vaultId)?.organizationId ?? null)}::text[], ${pairs.map((_) => _.asset)}::text[],
      ${pairs.map((_) => _.vaultId)}::text[]) ON CONFLICT DO NOTHING`
}

/** Writes the changed present balances, and appends to the history. */
export const writeBalances = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, state: State) {
  const balances = state.balances.changed()
  if (balances.length > 0) {
    yield* sql`
      WITH held AS (${heldAssets(sql, state, balances)})
      INSERT INTO balances (vault_id, organization_id, asset_id, network, symbol, amount, as_of, given_at, recorded_at)
      SELECT b.vault_id, b.organization_id, b.asset_id, a.network, a.symbol, b.amount, b.as_of, nullif(b.given_at, b.as_of), b.recorded_at
      FROM unnest(${balances.map((_) => _.vaultId)}::text[], ${balances.map((_) => state.vaults.get(_.vaultId)?.organizationId)}::text[],
        ${balances.map((_) => _.asset)}::text[], ${balances.map((_) => _.amount)}::numeric[],
        ${balances.map((_) => _.asOf)}::timestamptz[], ${balances.map((_) => _.givenAt)}::timestamptz[],
        ${balances.map((_) => _.recordedAt)}::timestamptz[])
        AS b (vault_id, organization_id, asset_id, amount, as_of, given_at, recorded_at) JOIN assets a ON a.id = b.asset_id
      ON CONFLICT (vault_id, asset_id) DO UPDATE SET amount = excluded.amount, as_of = excluded.as_of,
        given_at = excluded.given_at, recorded_at = excluded.recorded_at, updated_at = now()`
  }
  const added = state.balanceHistory.added()
  if (added.length > 0) {
    yield* sql`
      INSERT INTO balance_history (vault_id, asset_id, amount, as_of, given_at, recorded_at)
      SELECT vault_id, asset_id, amount, as_of, nullif(given_at, as_of), recorded_at
      FROM unnest(${added.map((_) => _.vaultId)}::text[], ${added.map((_) => _.asset)}::text[],
        ${added.map((_) => _.amount)}::numeric[], ${added.map((_) => _.asOf)}::timestamptz[],
        ${added.map((_) => _.givenAt)}::timestamptz[], ${added.map((_) => _.recordedAt)}::timestamptz[])
        AS h (vault_id, asset_id, amount, as_of, given_at, recorded_at)`
  }
})

/**
 * Notes what changed days that are already sealed, so that sealing compares those days with the ledger. Which days are sealed
 * does not change meanwhile, because sealing holds the organization's stream too; no clock says it, because each may be set back.
 * A balance of before the first day changes that day's opening.
 */
export const noteLateChanges = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { accountChanges }: State) {
  const changes = accountChanges.changed()
  if (changes.length === 0) return
  yield* sql`
    INSERT INTO statement_changes (vault_id, date, cause)
    SELECT c.vault_id, greatest(n.date, c.first_date), n.cause
    FROM unnest(${changes.map((_) => _.vaultId)}::text[], ${changes.map((_) => _.date)}::date[], ${changes.map((_) => _.cause)}::text[])
      AS n (vault_id, date, cause) JOIN statement_chains c ON c.vault_id = n.vault_id AND n.date < c.next_date
    ON CONFLICT DO NOTHING`
})
