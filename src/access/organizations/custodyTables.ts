/**
 * The custody rows of one organization, in the order in which they can be deleted, and the two changes of the organization
 * itself that begin and end its deletion. Decision D-56.
 */
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { byEntity, byOrganization, byVault, type OrganizationTable } from "../../runtime/database/OrganizationTable.ts"

/** Custody tables, children first. The organization's own row and its event stream are deleted last, by {@link remove}. */
export const custodyTables: ReadonlyArray<OrganizationTable> = [
  { table: "statements", of: byVault },
  { table: "statement_chains", of: byVault },
  { table: "statement_changes", of: byVault, exported: "nothing" },
  { table: "vault_assets", of: byOrganization, exported: "nothing" },
  { table: "balance_history", of: byVault, exported: "records" },
  { table: "balances", of: byVault, exported: "records" },
  { table: "transaction_history", of: byVault, exported: "records" },
  { table: "transactions", of: byVault, exported: "records" },
  { table: "deposit_addresses", of: byVault, exported: "records" },
  { table: "vault_roles", of: byOrganization, exported: "records" },
  { table: "vault_entities", of: byVault, exported: "nothing" },
  { table: "vaults", of: byOrganization, exported: "records" },
  { table: "users", of: byOrganization, exported: "records" },
  { table: "event_checkpoints", of: byEntity },
  { table: "entity_chains", of: byOrganization },
  { table: "entities", of: byOrganization, exported: "records" }
]

const decodeTimes = decodeRows(Schema.Struct({ at: Schema.String }))

/**
 * Marks an organization as being deleted: from the commit on, no ledger accepts a record of it. Returns since when; undefined
 * if it does not exist. Call it in a transaction.
 */
export const markDeleting = (sql: SqlClient.SqlClient, organizationId: string) =>
  Effect.gen(function* () {
    // Waits for the batches that are being written; the next ones read the new version of the catalog.
    yield* sql`LOCK TABLE event_streams IN EXCLUSIVE MODE`
    const [row] = yield* decodeTimes(sql`
      UPDATE organizations SET deleting_at = coalesce(deleting_at, clock_timestamp()) WHERE id = ${organizationId} RETURNING deleting_at AS at`)
    if (row === undefined) return undefined
    yield* sql`UPDATE catalog_version SET version = DEFAULT`
    // No more checkpoints: one written at midnight, after the entity's other checkpoints were deleted, would remain.
    yield* sql`UPDATE event_streams SET sealed_until = 'infinity' WHERE organization_id = ${organizationId}`
    return row.at
  })

/** Deletes the organization's stream and row; nothing may refer to them. Returns whether they existed. Call it in a transaction. */
export const remove = (sql: SqlClient.SqlClient, organizationId: string) =>
  Effect.gen(function* () {
    yield* sql`DELETE FROM event_streams WHERE organization_id = ${organizationId}`
    const gone = yield* sql`DELETE FROM organizations WHERE id = ${organizationId} AND deleting_at IS NOT NULL RETURNING 1`
    // The new version clears the caches of ledgers, which still contain its vaults.
    yield* sql`UPDATE catalog_version SET version = DEFAULT`
    return gone.length > 0
  })
