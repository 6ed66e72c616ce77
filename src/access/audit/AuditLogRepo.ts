/**
 * Reads of the audit log. Each combination of filters has its own index, so the cost of a page does not depend on the
 * length of the log. A filter by actor matches a key, a session, or a user with all of theirs. Decisions D-2, D-50.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { type Key, type Searched, upToLast } from "../../http/Page.ts"
import { castRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"
import { upToBytes } from "../../runtime/database/upToBytes.ts"
import { AuditEntry } from "./AuditEntry.ts"
import { AUDIT_DAYS } from "./AuditTrail.ts"

/** Filters of the list. */
export interface AuditFilter {
  readonly actor?: string | undefined
  readonly action?: string | undefined
  readonly target?: string | undefined
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
  /** As JSON text, with the lists of a webhook. */
  changes: Schema.String,
  behind: Schema.Number
})
type Row = typeof Row.Type
const cast = castRows(Row)

/** A column and the value to look for. */
type Value = readonly [column: "target_id" | "actor_id" | "user_id" | "action", value: string]

const selected = `a.id, a.at, a.actor_type AS "actorType", a.actor_id AS "actorId", a.user_id AS "userId", a.action,
  a.target_type AS "targetType", a.target_id AS "targetId", a.client_address AS "clientAddress", a.request_id AS "requestId", a.changes,
  octet_length(a.changes) AS size`

/** An entry of the API as JSON text. */
export const entryJson = ({
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
}: Row): string => {
  const actor = { type: actorType, id: actorId, userId },
    target = { type: targetType, id: targetId }
  return `${JSON.stringify({ id, at, actor, action, target, clientAddress, requestId }).slice(0, -1)},"changes":${changes}}`
}

export class AuditLogRepo extends Effect.Service<AuditLogRepo>()("custody/AuditLogRepo", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => {
    const within = (organizationId: string, { occurredAfter, occurredBefore }: AuditFilter, after: Key | null) =>
      and(
        sql,
        // Not what a deleted organization with the same id did.
        sql`a.at >= (SELECT o.recorded_at FROM organizations o WHERE o.id = ${organizationId})`,
        sql`a.at >= clock_timestamp() - make_interval(days => ${AUDIT_DAYS})`,
        occurredAfter !== undefined && sql`a.at >= ${occurredAfter}::timestamptz`,
        occurredBefore !== undefined && sql`a.at <= ${occurredBefore}::timestamptz`,
        after !== null && sql`(a.at, a.id) < (${after[0]}::timestamptz, ${after[1]})`
      )

    /** A page of the entries with these values, by the index of their columns. */
    const page = (organizationId: string, values: ReadonlyArray<Value>, common: Statement.Fragment, take: number) => {
      const columns = ["organization_id", ...values.map(([column]) => column)]
      const actor = columns.find((column) => column === "actor_id" || column === "user_id")
      return sql`
        SELECT ${sql.literal(selected)} FROM audit_log a
        WHERE (${sql.literal(columns.map((column) => `a.${column}`).join(" || '/' || "))})
            = ${[organizationId, ...values.map(([, value]) => value)].join("/")}
          ${sql.literal(actor === undefined ? "" : `AND a.${actor} IS NOT NULL`)} ${common}
        ORDER BY a.at DESC, a.id DESC LIMIT ${take}`
    }

    return {
      /** A page of an organization's entries, newest first. */
      list: (organizationId: string, filter: AuditFilter, after: Key | null, take: number): Effect.Effect<Searched<Row>> => {
        const { action, actor, target } = filter
        const common = within(organizationId, filter, after)
        /** In the order of the columns in the indexes. */
        const by = (column: "actor_id" | "user_id") =>
          page(
            organizationId,
            [
              ...(target === undefined ? [] : [["target_id", target] as const]),
              ...(actor === undefined ? [] : [[column, actor] as const]),
              ...(action === undefined ? [] : [["action", action] as const])
            ],
            common,
            take
          )
        const rows =
          actor === undefined
            ? by("actor_id")
            : sql`SELECT DISTINCT ON (at, id) * FROM ((${by("actor_id")}) UNION ALL (${by("user_id")})) a ORDER BY at DESC, id DESC LIMIT ${take}`
        const found = cast(upToBytes(sql, rows, "at DESC, id DESC"))
        return Effect.orDie(Effect.map(found, (entries) => upToLast(entries, ({ at, id }) => [at, id])))
      }
    }
  })
}) {
  static readonly layer = this.Default
}
