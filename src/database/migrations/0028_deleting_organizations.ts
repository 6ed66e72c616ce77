/**
 * Organizations that are being deleted: their keys, records and deliveries are refused from then on. The audit log stays when
 * an organization is deleted, so its entries no longer refer to the organization's row. Decision D-56.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE organizations ADD COLUMN deleting_at timestamptz(3);
CREATE INDEX organizations_deleting ON organizations (id) WHERE deleting_at IS NOT NULL;
ALTER TABLE audit_log DROP CONSTRAINT audit_log_organization_id_fkey;
`)
)
