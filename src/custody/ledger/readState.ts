/** Reads the rows that a batch of records names, with one statement per table; the catalog's rows are cached. */
import type { SqlClient, SqlError } from "@effect/sql"
import { Effect, Schema } from "effect"
import type { LRUCache } from "lru-cache"
import { castRows, decodeRows } from "../../runtime/database/decodeRows.ts"
import { Balance, BalanceHistory, lastRecords } from "./BalanceHistory.ts"
import { ChangedRows } from "./ChangedRows.ts"
import { knownTransactions } from "./knownTransactions.ts"
import type { LedgerCatalog } from "./LedgerCatalog.ts"
import { Address, Asset, Entity, keyOf, Network, Organization, type State, User, Vault } from "./LedgerState.ts"
import type { Record } from "./Record.ts"

const decodeIds = decodeRows(Schema.Struct({ id: Schema.String })),
  decodeNetworks = decodeRows(Network),
  decodeAssets = decodeRows(Asset),
  decodeOrganizations = decodeRows(Organization),
  decodeEntities = decodeRows(Entity),
  decodeVaults = decodeRows(Vault)
// A batch names up to a thousand of these rows, and none of them is cached.
const castUsers = castRows(User),
  castAddresses = castRows(Address),
  castBalances = castRows(Balance)

/** The ids in the records, by table. */
const idsIn = (records: ReadonlyArray<Record>) => {
  const ids = {
    networks: new Set<string>(),
    assets: new Set<string>(),
    organizations: new Set<string>(),
    entities: new Set<string>(),
    vaults: new Set<string>(),
    users: new Set<string>()
  }
  for (const record of records) {
    if (record.type === "network") ids.networks.add(record.name)
    if ("network" in record) ids.networks.add(record.network)
    if ("networks" in record) for (const name of record.networks) ids.networks.add(name)
    if (record.type === "asset") ids.assets.add(record.id)
    if ("asset" in record) ids.assets.add(record.asset)
    if ("fee" in record && record.fee != null) ids.assets.add(record.fee.asset)
    if (record.type === "organization") ids.organizations.add(record.id)
    if ("organizationId" in record) ids.organizations.add(record.organizationId)
    if (record.type === "entity") ids.entities.add(record.id)
    if ("entityId" in record) ids.entities.add(record.entityId)
    if (record.type === "vault") ids.vaults.add(record.id)
    if ("vaultId" in record) ids.vaults.add(record.vaultId)
    if (record.type === "user") {
      ids.users.add(record.id)
      for (const { vaultId } of record.vaultRoles) ids.vaults.add(vaultId)
    }
  }
  return ids
}

/** The named rows of a table: cached ones, and the others by one statement, which are cached from then on. */
const named = Effect.fnUntraced(function* <Row extends object, E>(
  ids: ReadonlySet<string>,
  remembered: LRUCache<string, Row>,
  keyOf: (row: Row) => string,
  read: (missing: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Row>, E>
) {
  const rows = new ChangedRows<Row>()
  const missing: Array<string> = []
  for (const id of ids) {
    const row = remembered.get(id)
    if (row === undefined) missing.push(id)
    else rows.load(id, row)
  }
  for (const row of missing.length === 0 ? [] : yield* read(missing)) {
    remembered.set(keyOf(row), row)
    rows.load(keyOf(row), row)
  }
  return rows
})

/** Reads the rows that the records name. Call it under the locks of their organizations, with a catalog of the version read under them. */
export const load = Effect.fn("Ledger.load")(function* (sql: SqlClient.SqlClient, records: ReadonlyArray<Record>, catalog: LedgerCatalog) {
  const ids = idsIn(records)
  catalog.deleting ??= new Set((yield* decodeIds(sql`SELECT id FROM organizations WHERE deleting_at IS NOT NULL`)).map(({ id }) => id))
  const transactions = records.filter((record) => record.type === "transaction")
  const state: State = {
    networks: yield* named(
      ids.networks,
      catalog.networks,
      ({ name }) => name,
      (missing) => decodeNetworks(sql`SELECT name, kind FROM networks WHERE name = ANY(${missing})`)
    ),
    assets: yield* named(
      ids.assets,
      catalog.assets,
      ({ id }) => id,
      (missing) => decodeAssets(sql`SELECT id, symbol, name, decimals, network, digits FROM assets WHERE id = ANY(${missing})`)
    ),
    organizations: yield* named(
      ids.organizations,
      catalog.organizations,
      ({ id }) => id,
      (missing) => decodeOrganizations(sql`SELECT id, name, networks FROM organizations WHERE id = ANY(${missing})`)
    ),
    entities: yield* named(
      ids.entities,
      catalog.entities,
      ({ id }) => id,
      (missing) => decodeEntities(sql`SELECT id, organization_id AS "organizationId", name FROM entities WHERE id = ANY(${missing})`)
    ),
    vaults: yield* named(
      ids.vaults,
      catalog.vaults,
      ({ id }) => id,
      (missing) =>
        decodeVaults(sql`
          SELECT id, entity_id AS "entityId", organization_id AS "organizationId", label, networks, created_at AS "createdAt",
            given_at AS "givenAt"
          FROM vaults WHERE id = ANY(${missing})`)
    ),
    deleting: catalog.deleting,
    users: new ChangedRows(),
    userChanges: new ChangedRows(),
    deactivated: new Set(),
    addresses: new ChangedRows(),
    transactions: new ChangedRows(),
    replaced: new ChangedRows(),
    balances: new ChangedRows(),
    balanceHistory: new BalanceHistory(),
    accountChanges: new ChangedRows()
  }
  const unlessEmpty = <Row>(
    wanted: { readonly size: number } | { readonly length: number },
    rows: Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>
  ) => (("size" in wanted ? wanted.size : wanted.length) === 0 ? Effect.succeed<ReadonlyArray<Row>>([]) : rows)

  for (const row of yield* unlessEmpty(
    ids.users,
    castUsers(sql`
      SELECT u.id, u.organization_id AS "organizationId", u.email, u.name, u.status, u.organization_role AS "organizationRole",
        ARRAY(SELECT r.vault_id FROM vault_roles r WHERE r.user_id = u.id ORDER BY r.vault_id)::text[] AS "vaultIds"
      FROM users u WHERE u.id = ANY(${[...ids.users]})`)
  ))
    state.users.load(row.id, row)

  const addresses = records.filter((record) => record.type === "address")
  for (const row of yield* unlessEmpty(
    addresses,
    castAddresses(sql`
      SELECT a.vault_id AS "vaultId", a.network, a.address, a.asset_type AS "assetType", a.created_at AS "createdAt"
      FROM unnest(${addresses.map((_) => _.vaultId)}::text[], ${addresses.map((_) => _.network)}::text[],
        ${addresses.map((_) => _.address)}::text[], ${addresses.map((_) => _.assetType)}::text[]) AS k (vault_id, network, address, asset_type)
      JOIN deposit_addresses a USING (vault_id, network, address, asset_type)`)
  ))
    state.addresses.load(keyOf.address(row), row)

  for (const row of yield* unlessEmpty(transactions, knownTransactions(sql, transactions))) state.transactions.load(row.id, row)

  const balances = records.filter((record) => record.type === "balance")
  for (const row of yield* unlessEmpty(
    balances,
    castBalances(sql`
      SELECT b.vault_id AS "vaultId", b.asset_id AS asset, b.amount::text AS amount, b.as_of AS "asOf",
        coalesce(b.given_at, b.as_of) AS "givenAt", b.recorded_at AS "recordedAt"
      FROM unnest(${balances.map((_) => _.vaultId)}::text[], ${balances.map((_) => _.asset)}::text[]) AS k (vault_id, asset_id)
      JOIN balances b USING (vault_id, asset_id)`)
  ))
    state.balances.load(keyOf.balance(row), row)
  state.balanceHistory.load(yield* unlessEmpty(balances, lastRecords(sql, balances)))

  return state
})
