/**
 * Reads of the audit log. Each combination of filters has its own index, so the cost of a page does not depend on the
 * length of the log. A filter by actor matches a key, a session, or a user with all of theirs. Decisions D-2, D-50.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import type { Key } from "../../http/Page.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"
import { AuditEntry } from "./AuditEntry.ts"
import { AUDIT_DAYS } from "./AuditTrail.ts"

/** Filters of the list. */
export interface AuditFilter {
  readonly actor?: string | undefined
  readonly action?: string | undefined
  readonly occurredAfter?: string | undefined
  readonly occurredBefore?: string | undefined
}

const Row = Schema.Struct({
  ...AuditEntry.omit("actor", "target", "changes").fields,
  actorType: AuditEntry.fields.actor.fields.type,
  actorId: Schema.NullOr(Schema.String),
  userId: Schema.NullOr(Schema.String),
  targetType: Schema.String,
  targetId: Schema.String,
  changes: Schema.parseJson(AuditEntry.fields.changes)
})
const decode = decodeRows(Row)

const columns = `a.id, a.at, a.actor_type AS "actorType", a.actor_id AS "actorId", a.user_id AS "userId", a.action,
  a.target_type AS "targetType", a.target_id AS "targetId", a.client_address AS "clientAddress", a.request_id AS "requestId", a.changes`

const entryOf = ({
  action,
  actorId,
  actorType,
  at,
  changes,
  clientAddress,
  id,
  requestId,
  targetId,
  targetType,
  userId
}: typeof Row.Type): AuditEntry => ({
  id,
  at,
  actor: { type: actorType, id: actorId, userId },
  action,
  target: { type: targetType, id: targetId },
  clientAddress,
  requestId,
  changes
})

export class AuditLogRepo extends Effect.Service<AuditLogRepo>()("custody/AuditLogRepo", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => {
    const page = (where: Statement.Fragment, take: number) => sql`
      SELECT ${sql.literal(columns)} FROM audit_log a WHERE ${where} ORDER BY a.at DESC, a.id DESC LIMIT ${take}`

    const within = ({ occurredAfter, occurredBefore }: AuditFilter, after: Key | null) =>
      and(
        sql,
        sql`a.at >= clock_timestamp() - make_interval(days => ${AUDIT_DAYS})`,
        occurredAfter !== undefined && sql`a.at >= ${occurredAfter}::timestamptz`,
        occurredBefore !== undefined && sql`a.at <= ${occurredBefore}::timestamptz`,
        after !== null && sql`(a.at, a.id) < (${after[0]}::timestamptz, ${after[1]})`
      )

    /** Entries of an actor, by the index of the column that names it. */
    const by = (column: "actor_id" | "user_id", organizationId: string, actor: string, action: string | undefined) =>
      action === undefined
        ? sql`a.${sql(column)} IS NOT NULL AND (a.organization_id || '/' || a.${sql(column)}) = ${organizationId}::text || '/' || ${actor}::text`
        : sql`a.${sql(column)} IS NOT NULL AND (a.organization_id || '/' || a.${sql(column)} || '/' || a.action)
            = ${organizationId}::text || '/' || ${actor}::text || '/' || ${action}::text`

    return {
      /** A page of an organization's entries, newest first. */
      list: (organizationId: string, filter: AuditFilter, after: Key | null, take: number): Effect.Effect<ReadonlyArray<AuditEntry>> => {
        const { action, actor } = filter
        const common = within(filter, after)
        const rows =
          actor !== undefined
            ? sql`
                SELECT * FROM (
                  (${page(sql`${by("actor_id", organizationId, actor, action)} ${common}`, take)})
                  UNION (${page(sql`${by("user_id", organizationId, actor, action)} ${common}`, take)})
                ) a ORDER BY at DESC, id DESC LIMIT ${take}`
            : action !== undefined
              ? page(sql`(a.organization_id || '/' || a.action) = ${organizationId}::text || '/' || ${action}::text ${common}`, take)
              : page(sql`a.organization_id = ${organizationId} ${common}`, take)
        return Effect.orDie(Effect.map(decode(rows), (found) => found.map(entryOf)))
      }
    }
  })
}) {
  static readonly layer = this.Default
}
