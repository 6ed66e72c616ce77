/** How the rows of one organization are found in a table, for its export and its deletion. Decision D-56. */
import type { SqlClient, Statement } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "./decodeRows.ts"

/** A table with rows of organizations. */
export interface OrganizationTable {
  readonly table: string
  /** A condition on the table's row `t`. */
  readonly of: (sql: SqlClient.SqlClient, organizationId: string) => Statement.Fragment
  /** How it is exported: its rows (the default), as custody records, or not at all. */
  readonly exported?: "rows" | "records" | "nothing"
  /** Columns with secrets, which are not exported. */
  readonly secret?: ReadonlyArray<string>
}

/** Conditions on `t`, by the column that leads to the organization. */
export const byOrganization: OrganizationTable["of"] = (sql, organizationId) => sql`t.organization_id = ${organizationId}`
export const byWebhook: OrganizationTable["of"] = (sql, organizationId) =>
  sql`t.webhook_id IN (SELECT w.id FROM webhooks w WHERE w.organization_id = ${organizationId})`
export const byVault: OrganizationTable["of"] = (sql, organizationId) =>
  sql`t.vault_id IN (SELECT v.id FROM vaults v WHERE v.organization_id = ${organizationId})`
export const byEntity: OrganizationTable["of"] = (sql, organizationId) =>
  sql`t.entity_id IN (SELECT n.id FROM entities n WHERE n.organization_id = ${organizationId})`
export const byUser: OrganizationTable["of"] = (sql, organizationId) =>
  sql`t.user_id IN (SELECT u.id FROM users u WHERE u.organization_id = ${organizationId})`

const decodeCounts = decodeRows(Schema.Struct({ count: Schema.Number }))

/**
 * Deletes about this many of the organization's rows from a table; returns how many. In a table with partitions they can be more:
 * a row's address is only unique within its partition, so every other row at one of the addresses is checked again.
 */
export const deletePart = (sql: SqlClient.SqlClient, { of, table }: OrganizationTable, organizationId: string, most: number) =>
  Effect.map(
    decodeCounts(sql`
      WITH gone AS (
        DELETE FROM ${sql(table)} t
        WHERE t.ctid = ANY (ARRAY(SELECT t.ctid FROM ${sql(table)} t WHERE ${of(sql, organizationId)} LIMIT ${most})) AND ${of(sql, organizationId)}
        RETURNING 1
      )
      SELECT count(*) AS count FROM gone`),
    ([row]) => row?.count ?? 0
  )
