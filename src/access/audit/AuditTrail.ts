/**
 * Writes the audit log: who did what, when and from where. An entry is written in the transaction of its change, so both
 * are committed or neither is. The table is append-only: a trigger rejects updates, and retention deletes entries older
 * than {@link AUDIT_DAYS}. No entry contains a secret. This room is separate from auditLog/ because many rooms write entries,
 * and only auditLog/ has the contract to read them. Decision D-50.
 */
import type { SqlClient, SqlError } from "@effect/sql"
import { Context, Effect, Option, Schema } from "effect"
import { RequestContext } from "../../http/RequestContext.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import * as Id from "../../values/Id.ts"

/** Days that entries are kept. */
export const AUDIT_DAYS = 400

/** Recorded actions. Others may be added. */
export const actions = [
  "webhook.created",
  "webhook.updated",
  "webhook.deleted",
  "webhook.secret_rotated",
  "webhook.pinged",
  "webhook.disabled",
  "webhook.held",
  "webhook.released",
  "webhook.deliveries_retried",
  "webhook.deliveries_canceled",
  "recovery.created",
  "recovery.paused",
  "recovery.resumed",
  "recovery.canceled",
  "delivery.redelivered",
  "delivery.retried",
  "delivery.canceled",
  "user.created",
  "user.updated",
  "api_key.created",
  "api_key.updated",
  "api_key.revoked",
  "account.invited",
  "account.invitation_accepted",
  "account.signed_in",
  "account.sign_in_failed",
  "account.second_factor_added",
  "account.second_factor_failed",
  "account.backup_code_used",
  "account.locked",
  "account.password_changed",
  "account.password_reset_requested",
  "account.password_reset",
  "account.backup_codes_renewed",
  "account.passkey_added",
  "account.passkey_removed",
  "account.sessions_ended",
  "master_key.reencrypted",
  "organization.exported",
  "organization.deleting",
  "organization.deleted"
] as const
export type Action = (typeof actions)[number]

/** The kinds of actor: an API key, a session of the portal, an operator at the command line, the custody platform by its records, the service itself. */
export const actorTypes = ["key", "session", "operator", "platform", "service"] as const

/** An actor. */
export interface Actor {
  readonly type: (typeof actorTypes)[number]
  /** The key or the session; null for an operator, the platform, the service, and before sign-in. */
  readonly id: string | null
  /** The user of the key or session; null if there is none. */
  readonly userId: string | null
}

/** An operator who runs a command. */
export const OPERATOR: Actor = { type: "operator", id: null, userId: null }
/** The custody platform, by its records. */
export const PLATFORM: Actor = { type: "platform", id: null, userId: null }
/** The service itself. */
export const SERVICE: Actor = { type: "service", id: null, userId: null }

/** The actor of a caller: its key or its session. */
export const actorOf = (caller: { readonly keyId: string | null; readonly sessionId: string | null; readonly userId: string }): Actor =>
  caller.keyId === null
    ? { type: "session", id: caller.sessionId, userId: caller.userId }
    : { type: "key", id: caller.keyId, userId: caller.userId }

/** Fields with their old and new values; null where there was or is none. */
export type Changes = Readonly<Record<string, { readonly old: unknown; readonly new: unknown }>>

/** One entry. */
export interface Entry {
  readonly organizationId: string
  readonly actor: Actor
  readonly action: Action
  readonly target: {
    readonly type: "webhook" | "recovery" | "delivery" | "api_key" | "user" | "account" | "organization"
    readonly id: string
  }
  readonly changes?: Changes
}

/**
 * The changed fields. The caller names the fields, so that a new one is recorded only after someone has decided that it
 * may be.
 */
export const changed = <Field extends string>(
  fields: ReadonlyArray<Field>,
  before: Readonly<Partial<Record<Field, unknown>>> | undefined,
  after: Readonly<Partial<Record<Field, unknown>>>
): Changes =>
  Object.fromEntries(
    fields
      .map((field) => [field, { old: before?.[field] ?? null, new: after[field] ?? null }] as const)
      .filter(([, { old, new: now }]) => JSON.stringify(old) !== JSON.stringify(now))
  )

/** Records entries; call it in the transaction of the change. Client address and request id are those of the current request. */
export const record = (sql: SqlClient.SqlClient, entries: ReadonlyArray<Entry>) =>
  Effect.withFiberRuntime<void, SqlError.SqlError>((fiber) => {
    if (entries.length === 0) return Effect.void
    const request = Option.getOrUndefined(Context.getOption(fiber.currentContext, RequestContext))
    const column = <A>(value: (entry: Entry) => A) => entries.map(value)
    return Effect.asVoid(sql`
      INSERT INTO audit_log (id, organization_id, at, actor_type, actor_id, user_id, action, target_type, target_id, client_address, request_id, changes)
      SELECT id, organization_id, clock_timestamp(), actor_type, actor_id, user_id, action, target_type, target_id,
        ${request?.client?.toString() ?? null}, ${request?.requestId ?? null}, changes
      FROM unnest(${column(() => Id.make("aud"))}::text[], ${column((_) => _.organizationId)}::text[], ${column((_) => _.actor.type)}::text[],
        ${column((_) => _.actor.id)}::text[], ${column((_) => _.actor.userId)}::text[], ${column((_) => _.action)}::text[],
        ${column((_) => _.target.type)}::text[], ${column((_) => _.target.id)}::text[], ${column((_) => JSON.stringify(_.changes ?? {}))}::text[])
        AS e (id, organization_id, actor_type, actor_id, user_id, action, target_type, target_id, changes)`)
  })

/** Records what a caller did to something of its organization; call it in the transaction of the change. */
export const recordOf = (
  sql: SqlClient.SqlClient,
  caller: Parameters<typeof actorOf>[0] & { readonly organizationId: string },
  action: Action,
  target: Entry["target"],
  changes: Changes = {}
) => record(sql, [{ organizationId: caller.organizationId, actor: actorOf(caller), action, target, changes }])

/** Records what the service did to a webhook by itself; call it in the transaction of the change. */
export const recordOfService = (sql: SqlClient.SqlClient, organizationId: string, action: Action, webhookId: string, changes: Changes) =>
  record(sql, [{ organizationId, actor: SERVICE, action, target: { type: "webhook", id: webhookId }, changes }])

const decodeOrganizations = decodeRows(Schema.Struct({ organizationId: Schema.String }))

/** Records an entry about a portal user, in that user's organization. */
export const recordOfUser = (sql: SqlClient.SqlClient, userId: string, actor: Actor, action: Action, changes: Changes = {}) =>
  Effect.flatMap(decodeOrganizations(sql`SELECT organization_id AS "organizationId" FROM users WHERE id = ${userId}`), (rows) =>
    record(
      sql,
      rows.map(({ organizationId }) => ({ organizationId, actor, action, target: { type: "account", id: userId }, changes }))
    )
  )
