/**
 * Every table with rows of organizations, in the order in which they can be deleted. test/access/organizations fails if a table of the
 * schema is missing here. Decision D-56.
 */
import type { SqlClient } from "@effect/sql"
import { Data } from "effect"
import { byOrganization, byUser, byWebhook, type OrganizationTable } from "../../runtime/database/OrganizationTable.ts"
import { custodyTables } from "./custodyTables.ts"

/** The command names an organization that does not exist. */
export class UnknownOrganization extends Data.TaggedError("UnknownOrganization")<{ readonly organizationId: string }> {
  override get message() {
    return `There is no organization ${this.organizationId}.`
  }
}

/** Another run of the command has deleted the organization, which may have been recorded again since. */
export class DeletedMeanwhile extends Data.TaggedError("DeletedMeanwhile")<{ readonly organizationId: string }> {
  override get message() {
    return `Another run of this command has deleted ${this.organizationId}.`
  }
}

/** Tables in daily partitions; each is deleted with the rows that belong to it. */
export const partitioned: { readonly [name in "deliveries" | "delivery_attempts" | "events" | "event_dispatches"]: OrganizationTable } = {
  deliveries: { table: "deliveries", of: byWebhook },
  delivery_attempts: {
    table: "delivery_attempts",
    of: (sql, organizationId) => sql`t.delivery_id IN (
      SELECT d.id FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE w.organization_id = ${organizationId})`
  },
  events: { table: "events", of: byOrganization },
  event_dispatches: {
    table: "event_dispatches",
    of: (sql, organizationId) => sql`t.event_id IN (SELECT e.id FROM events e WHERE e.organization_id = ${organizationId})`
  }
}

/** Commands to the workflows of deliveries; deleted with them. */
export const deliveryCommands: OrganizationTable = {
  table: "commands",
  of: (sql, organizationId) => sql`t.key IN (
    SELECT d.id FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE w.organization_id = ${organizationId})`,
  exported: "nothing"
}

/** Who sends requests: keys, and users who are signed in to the portal. */
const callers = (sql: SqlClient.SqlClient, organizationId: string) => sql`
  SELECT u.id FROM users u WHERE u.organization_id = ${organizationId}
  UNION ALL SELECT k.id FROM api_keys k JOIN users u ON u.id = k.user_id WHERE u.organization_id = ${organizationId}`

/** Rows of webhooks and users, children first. */
const others: ReadonlyArray<OrganizationTable> = [
  {
    // Pings of a webhook, and sign-ins by the hash of an e-mail address.
    table: "recent_attempts",
    of: (sql, organizationId) => sql`(
      t.key IN (SELECT 'ping/' || w.id FROM webhooks w WHERE w.organization_id = ${organizationId})
      OR t.key LIKE 'sign-in account%' AND split_part(t.key, '/', 2) IN (
        SELECT translate(rtrim(encode(sha256(convert_to(lower(u.email), 'UTF8')), 'base64'), '='), '+/', '-_')
        FROM users u WHERE u.organization_id = ${organizationId}))`,
    exported: "nothing"
  },
  {
    // Those of drains, recoveries and notices.
    table: "commands",
    of: (sql, organizationId) => sql`(
      t.key IN (SELECT 'drain/' || w.id FROM webhooks w WHERE w.organization_id = ${organizationId})
      OR t.key IN (SELECT r.id FROM recoveries r WHERE r.organization_id = ${organizationId})
      OR t.key IN (SELECT n.id FROM notices n WHERE n.organization_id = ${organizationId}))`,
    exported: "nothing"
  },
  { table: "notices", of: byOrganization },
  { table: "pings", of: byWebhook },
  { table: "recoveries", of: byWebhook },
  { table: "webhook_queues", of: byWebhook },
  { table: "webhook_health", of: byWebhook },
  { table: "webhook_counters", of: byWebhook },
  { table: "webhook_sequences", of: byWebhook },
  { table: "webhook_secrets", of: byWebhook, secret: ["ciphertext"] },
  { table: "webhook_entities", of: byWebhook },
  { table: "webhooks", of: byOrganization, secret: ["gateway_credentials"] },
  { table: "idempotency_keys", of: (sql, organizationId) => sql`t.key_id IN (${callers(sql, organizationId)})`, exported: "nothing" },
  { table: "rate_buckets", of: (sql, organizationId) => sql`t.key IN (${callers(sql, organizationId)})`, exported: "nothing" },
  { table: "api_keys", of: byUser, secret: ["secret_hash"] },
  { table: "portal_sessions", of: byUser, exported: "nothing" },
  {
    table: "portal_accounts",
    of: byUser,
    secret: ["password", "access_token", "refresh_token", "id_token"]
  },
  { table: "portal_passkeys", of: byUser },
  { table: "portal_second_factors", of: byUser, secret: ["secret", "backup_codes"] },
  { table: "portal_invitations", of: byUser, secret: ["token_hash"] },
  {
    table: "portal_verifications",
    of: (sql, organizationId) => sql`EXISTS (
      SELECT 1 FROM users u WHERE u.organization_id = ${organizationId}
        AND (position('"' || u.id || '"' IN t.value) > 0 OR position(lower(u.email) IN lower(t.identifier || t.value)) > 0))`,
    exported: "nothing"
  },
  {
    table: "portal_users",
    of: (sql, organizationId) => sql`t.id IN (SELECT u.id FROM users u WHERE u.organization_id = ${organizationId})`
  },
  { table: "event_dates", of: byOrganization, exported: "nothing" }
]

/** Events that wait; deleted first, so that no more deliveries are made. */
export const outbox: OrganizationTable = { table: "event_outbox", of: byOrganization, exported: "nothing" }

/** Tables without partitions, in the order in which their rows are deleted. */
export const plainTables: ReadonlyArray<OrganizationTable> = [...others, ...custodyTables]

/** Rows that stay when an organization is deleted. */
export const auditLog: OrganizationTable = { table: "audit_log", of: byOrganization }

/** Every table whose rows are deleted, apart from the organization's own row and its event stream. */
export const deletedTables: ReadonlyArray<OrganizationTable> = [outbox, deliveryCommands, ...Object.values(partitioned), ...plainTables]
