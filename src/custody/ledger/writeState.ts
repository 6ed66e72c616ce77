/**
 * Writes the changes of a batch, one statement per table, in the order of the tables' foreign keys. Call it in the
 * transaction that loaded the state. `now` is the time of recording.
 */

import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { changed, PLATFORM, record, SERVICE } from "../../access/audit/AuditTrail.ts"
import { endSignIns } from "../../access/credentials/endSignIns.ts"
import { revokeKeys } from "../../access/keys/revokeKeys.ts"
import type { Occurrence } from "../../events/log/Envelope.ts"
import type { Kind } from "../../events/log/Kind.ts"
import * as Id from "../../values/Id.ts"
import { transactionJson, transactionStateJson } from "../../values/Vault.ts"
import { heldAssets, noteLateChanges, writeBalances } from "./applyBalance.ts"
import { transactionOf } from "./applyTransaction.ts"
import type { State, Transaction } from "./LedgerState.ts"

export const write = Effect.fn("Ledger.write")(function* (sql: SqlClient.SqlClient, state: State) {
  if (changesCatalog(state)) yield* sql`UPDATE catalog_version SET version = DEFAULT`
  const networks = state.networks.changed()
  if (networks.length > 0) {
    yield* sql`
      INSERT INTO networks (name, kind) SELECT * FROM unnest(${networks.map((_) => _.name)}::text[], ${networks.map((_) => _.kind)}::text[])
      ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, updated_at = now()`
  }
  const assets = state.assets.changed()
  if (assets.length > 0) {
    yield* sql`
      INSERT INTO assets (id, network, symbol, name, decimals, digits)
      SELECT * FROM unnest(${assets.map((_) => _.id)}::text[], ${assets.map((_) => _.network)}::text[], ${assets.map((_) => _.symbol)}::text[],
        ${assets.map((_) => _.name)}::text[], ${assets.map((_) => _.decimals)}::smallint[], ${assets.map((_) => _.digits)}::smallint[])
      ON CONFLICT (id) DO UPDATE SET symbol = excluded.symbol, name = excluded.name, decimals = excluded.decimals,
        digits = greatest(assets.digits, excluded.digits), updated_at = now()`
  }
  for (const one of state.organizations.changed()) {
    yield* sql`
      WITH stream AS (INSERT INTO event_streams (organization_id) VALUES (${one.id}) ON CONFLICT DO NOTHING)
      INSERT INTO organizations (id, name, networks) VALUES (${one.id}, ${one.name}, ${one.networks}::text[])
      ON CONFLICT (id) DO UPDATE SET name = excluded.name, networks = excluded.networks, updated_at = now()`
  }
  const entities = state.entities.changed()
  if (entities.length > 0) {
    yield* sql`
      INSERT INTO entities (id, organization_id, name)
      SELECT * FROM unnest(${entities.map((_) => _.id)}::text[], ${entities.map((_) => _.organizationId)}::text[], ${entities.map((_) => _.name)}::text[])
      ON CONFLICT (id) DO UPDATE SET name = excluded.name, updated_at = now()`
  }
  const vaults = state.vaults.changed()
  if (vaults.length > 0) {
    // Postgres has no arrays of arrays of different lengths, so each list of networks is passed as one text.
    yield* sql`
      INSERT INTO vaults (id, entity_id, organization_id, label, networks, created_at, given_at)
      SELECT id, entity_id, organization_id, label, string_to_array(networks, ' '), created_at, given_at
      FROM unnest(${vaults.map((_) => _.id)}::text[], ${vaults.map((_) => _.entityId)}::text[], ${vaults.map((_) => _.organizationId)}::text[],
        ${vaults.map((_) => _.label)}::text[], ${vaults.map((_) => _.networks.join(" "))}::text[], ${vaults.map((_) => _.createdAt)}::timestamptz[],
        ${vaults.map((_) => _.givenAt)}::timestamptz[]) AS v (id, entity_id, organization_id, label, networks, created_at, given_at)
      ON CONFLICT (id) DO UPDATE SET entity_id = excluded.entity_id, label = excluded.label, networks = excluded.networks,
        created_at = excluded.created_at, given_at = excluded.given_at, updated_at = now()`
  }
  yield* writeUsers(sql, state)
  const addresses = state.addresses.changedInOrder()
  if (addresses.length > 0) {
    yield* sql`
      INSERT INTO deposit_addresses (vault_id, network, address, asset_type, created_at)
      SELECT * FROM unnest(${addresses.map((_) => _.vaultId)}::text[], ${addresses.map((_) => _.network)}::text[],
        ${addresses.map((_) => _.address)}::text[], ${addresses.map((_) => _.assetType)}::text[], ${addresses.map((_) => _.createdAt)}::timestamptz[])
      ON CONFLICT (vault_id, network, address, asset_type) DO UPDATE SET created_at = excluded.created_at, updated_at = now()`
  }
  yield* writeTransactions(sql, state)
  yield* writeBalances(sql, state)
  yield* noteLateChanges(sql, state)
})

/** Keeps entities that vaults belonged to within the batch only, of which it has events: the table's trigger sees the last one. */
export const keepFormerEntities = (sql: SqlClient.SqlClient, state: State, occurrences: ReadonlyArray<Occurrence<Kind>>) => {
  const former = occurrences.filter(({ entityId, vaultId }) => vaultId !== null && state.vaults.get(vaultId)?.entityId !== entityId)
  return former.length === 0
    ? Effect.void
    : sql`
        INSERT INTO vault_entities (vault_id, entity_id, until)
        SELECT DISTINCT vault_id, entity_id, now()
        FROM unnest(${former.map((_) => _.vaultId)}::text[], ${former.map((_) => _.entityId)}::text[]) AS f (vault_id, entity_id)
        ON CONFLICT (vault_id, entity_id) DO UPDATE SET until = excluded.until`
}

/** The present rows of transactions, and the states that they had before. C-9. */
const writeTransactions = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, state: State) {
  const uuid = ({ id }: Transaction) => Id.uuidIn("tx", id) ?? ""
  const replaced = state.replaced.changed()
  if (replaced.length > 0) {
    const stateOf = (row: Transaction) => transactionStateJson({ ...row, recordedAt: row.updatedAt })
    yield* sql`
      INSERT INTO transaction_history (transaction_id, version, vault_id, state)
      SELECT * FROM unnest(${replaced.map(uuid)}::uuid[], ${replaced.map((_) => _.version)}::int[], ${replaced.map((_) => _.vaultId)}::text[],
        ${replaced.map(stateOf)}::text[])`
  }
  const rows = state.transactions.changed()
  if (rows.length > 0) {
    const column = <A>(value: (row: Transaction) => A) => rows.map(value)
    const states = [...rows, ...replaced]
    const fees = states.flatMap(({ fee, vaultId }) => (fee === null ? [] : [{ vaultId, asset: fee.asset }]))
    yield* sql`
      WITH held AS (${heldAssets(sql, state, [...states, ...fees])})
      INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp,
        fee_asset_id, fee_amount, block_number, block_hash, memo, external_id, version, occurred_at, given_at, updated_at, json, event_ids)
      SELECT id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp,
        fee_asset_id, fee_amount, block_number, block_hash, memo, external_id, version, occurred_at, nullif(given_at, occurred_at), updated_at, json,
        string_to_array(event_ids, ' ')
      FROM unnest(${column(uuid)}::uuid[], ${column((_) => _.vaultId)}::text[],
        ${column((_) => state.vaults.get(_.vaultId)?.organizationId)}::text[], ${column((_) => _.network)}::text[],
        ${column((_) => _.hash)}::text[], ${column((_) => _.index)}::int[], ${column((_) => _.direction)}::text[],
        ${column((_) => _.status)}::text[], ${column((_) => _.asset)}::text[], ${column((_) => _.amount)}::numeric[],
        ${column((_) => _.from)}::text[], ${column((_) => _.to)}::text[], ${column((_) => _.timestamp)}::timestamptz[],
        ${column((_) => _.fee?.asset ?? null)}::text[], ${column((_) => _.fee?.amount ?? null)}::numeric[],
        ${column((_) => _.blockNumber)}::text[], ${column((_) => _.blockHash)}::text[], ${column((_) => _.memo)}::text[],
        ${column((_) => _.externalId)}::text[], ${column((_) => _.version)}::int[], ${column((_) => _.occurredAt)}::timestamptz[],
        ${column((_) => _.givenAt)}::timestamptz[], ${column((_) => _.updatedAt)}::timestamptz[],
        ${column((_) => transactionJson(transactionOf(_)))}::text[],
        ${column((_) => _.eventIds.join(" "))}::text[])
        AS t (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp,
          fee_asset_id, fee_amount, block_number, block_hash, memo, external_id, version, occurred_at, given_at, updated_at, json, event_ids)
      ON CONFLICT (id) DO UPDATE SET status = excluded.status, asset_id = excluded.asset_id, amount = excluded.amount,
        from_address = excluded.from_address, to_address = excluded.to_address, timestamp = excluded.timestamp,
        fee_asset_id = excluded.fee_asset_id, fee_amount = excluded.fee_amount, block_number = excluded.block_number,
        block_hash = excluded.block_hash, memo = excluded.memo, external_id = excluded.external_id, version = excluded.version,
        occurred_at = excluded.occurred_at, given_at = excluded.given_at, updated_at = excluded.updated_at, json = excluded.json,
        event_ids = excluded.event_ids`
  }
})

/** Whether anything changed that a ledger caches between batches. */
const changesCatalog = ({ assets, entities, networks, organizations, vaults }: State): boolean =>
  [networks, assets, organizations, entities, vaults].some((rows) => rows.changed().length > 0)

/** What may be told of a user: not the name and the address, which the entry would keep for longer than the user. */
const audited = ["status", "organizationRole", "vaultIds"] as const

/** Users with their complete set of roles; deactivating a user also ends their sign-ins and revokes their keys. Spec: Authentication 10. */
const writeUsers = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, state: State) {
  yield* record(
    sql,
    state.userChanges.changedInOrder().map(({ after, before }) => ({
      organizationId: after.organizationId,
      actor: PLATFORM,
      action: before === undefined ? "user.created" : "user.updated",
      target: { type: "user", id: after.id },
      changes: changed(audited, before, after)
    }))
  )
  for (const one of state.users.changed()) {
    yield* sql`
      INSERT INTO users (id, organization_id, email, name, status, organization_role)
      VALUES (${one.id}, ${one.organizationId}, ${one.email}, ${one.name}, ${one.status}, ${one.organizationRole})
      ON CONFLICT (id) DO UPDATE SET email = excluded.email, name = excluded.name, status = excluded.status,
        organization_role = excluded.organization_role, updated_at = now()`
    yield* sql`DELETE FROM vault_roles WHERE user_id = ${one.id} AND vault_id <> ALL(${one.vaultIds}::text[])`
    yield* sql`
      INSERT INTO vault_roles (user_id, vault_id, organization_id, role, vault_created_at, entity_id)
      SELECT ${one.id}, v.id, ${one.organizationId}, 'developer', v.created_at, v.entity_id FROM vaults v WHERE v.id = ANY(${one.vaultIds}::text[])
      ON CONFLICT (user_id, vault_id, role) DO NOTHING`
    if (state.deactivated.has(one.id)) {
      yield* endSignIns(sql, one.id)
      const revoked = yield* revokeKeys(sql, sql`u.id = ${one.id}`, "user_deactivated")
      yield* record(
        sql,
        revoked.map(({ id }) => ({
          organizationId: one.organizationId,
          actor: SERVICE,
          action: "api_key.revoked",
          target: { type: "api_key", id }
        }))
      )
    }
  }
})
