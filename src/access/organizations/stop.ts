/**
 * Stops an organization before it is deleted: records of it are refused, its keys are revoked, its users are signed out, and
 * nothing is sent to its webhooks. Every statement can be repeated. Decision D-56.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schedule, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { transaction } from "../../runtime/database/sql.ts"
import { OPERATOR, record } from "../audit/AuditTrail.ts"
import { revokeKeys } from "../keys/revokeKeys.ts"
import { markDeleting } from "./custodyTables.ts"
import { DeletedMeanwhile, UnknownOrganization } from "./organizationTables.ts"

/** How long an attempt without an outcome counts as in flight: longer than any attempt takes. */
const IN_FLIGHT = "30 seconds"

const decodeTimes = decodeRows(Schema.Struct({ at: Schema.NullOr(Schema.String) }))

/**
 * Runs a part of the deletion that began at this time, in a transaction. Fails with {@link DeletedMeanwhile} if that deletion is over:
 * a new organization may have the id.
 */
export const whileDeleting = <A, E, R>(sql: SqlClient.SqlClient, organizationId: string, since: string, part: Effect.Effect<A, E, R>) =>
  transaction(sql)(
    Effect.gen(function* () {
      const still = yield* sql`
        SELECT 1 FROM organizations WHERE id = ${organizationId} AND deleting_at = ${since}::timestamptz FOR KEY SHARE`
      return still.length > 0 ? yield* part : yield* new DeletedMeanwhile({ organizationId })
    })
  )

/** Marks the organization, and revokes its keys in the same transaction. Returns since when it is being deleted. */
const mark = (organizationId: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    transaction(sql)(
      Effect.gen(function* () {
        const before = yield* decodeTimes(sql`SELECT deleting_at AS at FROM organizations WHERE id = ${organizationId}`)
        const since = yield* markDeleting(sql, organizationId)
        if (since === undefined) return yield* new UnknownOrganization({ organizationId })
        const revoked = yield* revokeKeys(sql, sql`u.organization_id = ${organizationId}`)
        yield* record(sql, [
          ...(typeof before[0]?.at === "string"
            ? []
            : [
                {
                  organizationId,
                  actor: OPERATOR,
                  action: "organization.deleting" as const,
                  target: { type: "organization" as const, id: organizationId }
                }
              ]),
          ...revoked.map(({ id }) => ({
            organizationId,
            actor: OPERATOR,
            action: "api_key.revoked" as const,
            target: { type: "api_key" as const, id }
          }))
        ])
        return since
      })
    )
  )

/** Ends sessions, and marks webhooks as deleted, as their owner would; the rows stay. */
const stopSending = (organizationId: string, since: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const webhooks = sql`(SELECT w.id FROM webhooks w WHERE w.organization_id = ${organizationId})`
    return whileDeleting(
      sql,
      organizationId,
      since,
      Effect.gen(function* () {
        yield* sql`
          UPDATE webhooks SET deleted_at = coalesce(deleted_at, now()), status = 'DISABLED', disabled_reason = coalesce(disabled_reason, 'MANUAL'),
            disabled_at = coalesce(disabled_at, now()), header_names = '{}', oauth = NULL, gateway_credentials = NULL, updated_at = now()
          WHERE organization_id = ${organizationId} AND (deleted_at IS NULL OR status <> 'DISABLED')`
        yield* sql`
          UPDATE recoveries SET status = 'CANCELED', completed_at = now(), updated_at = now()
          WHERE webhook_id IN ${webhooks} AND status IN ('RUNNING', 'PAUSED')`
        yield* sql`UPDATE recoveries SET canceling = false WHERE webhook_id IN ${webhooks}`
        yield* sql`DELETE FROM webhook_secrets WHERE webhook_id IN ${webhooks}`
        yield* sql`DELETE FROM portal_sessions s USING users u WHERE u.id = s.user_id AND u.organization_id = ${organizationId}`
      })
    )
  })

/** Whether an attempt or a ping that began before may still be in flight. */
const inFlight = (organizationId: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql`
        SELECT 1 FROM webhooks w JOIN deliveries d ON d.webhook_id = w.id JOIN delivery_attempts t ON t.delivery_id = d.id
        WHERE w.organization_id = ${organizationId} AND t.result IS NULL AND t.at > clock_timestamp() - ${IN_FLIGHT}::interval
          AND d.status IN ('PENDING', 'RETRYING')
        UNION ALL
        SELECT 1 FROM webhooks w JOIN deliveries d ON d.webhook_id = w.id JOIN delivery_attempts t ON t.delivery_id = d.id
        WHERE w.organization_id = ${organizationId} AND t.result IS NULL AND t.at > clock_timestamp() - ${IN_FLIGHT}::interval AND d.status = 'HELD'
        UNION ALL
        SELECT 1 FROM pings p WHERE p.organization_id = ${organizationId} AND p.result IS NULL AND p.until > clock_timestamp()
        LIMIT 1`,
      (rows) => rows.length > 0
    )
  )

/**
 * Stops the organization and waits until nothing of it is in flight. Can be repeated. Returns since when it is being deleted. Fails
 * with {@link UnknownOrganization} or {@link DeletedMeanwhile}.
 */
export const stop = (organizationId: string) =>
  Effect.gen(function* () {
    const since = yield* mark(organizationId)
    yield* stopSending(organizationId, since)
    yield* Effect.repeat(inFlight(organizationId), { while: (waits) => waits, schedule: Schedule.spaced("500 millis") })
    return since
  })
