/** How the rows of one organization are found in a table, for its export and its deletion. Decision D-56. */
import type { SqlClient, Statement } from "@effect/sql"

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
