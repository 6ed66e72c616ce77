/** The inputs of deliveries' workflows, read from the rows. */
import type { SqlClient, SqlError } from "@effect/sql"
import { type Effect, Schema } from "effect"
import { decodeRows } from "../database/decodeRows.ts"
import { ToStart } from "./WorkflowStarter.ts"

/** The columns of a {@link ToStart}, of `deliveries d` with {@link toStartJoins}. */
export const toStartColumns = `d.id, w.organization_id AS "organizationId", d.event_id AS "eventId", d.webhook_id AS "webhookId", d.kind,
  coalesce(e.entity_id, '') AS "entityId", w.url`

/** The joins of {@link toStartColumns}. The event of a redelivery may no longer be in the log; its workflow then ends it. */
export const toStartJoins = "JOIN webhooks w ON w.id = d.webhook_id LEFT JOIN events e ON e.id = d.event_id"

const decode = decodeRows(Schema.Struct({ ...ToStart.fields, status: Schema.String }))

/** The existing ones of these deliveries, whatever their state: a workflow that starts for a completed one detects it. */
export const deliveriesToStart = (
  sql: SqlClient.SqlClient,
  ids: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<ToStart & { readonly status: string }>, SqlError.SqlError> =>
  decode(sql`
    SELECT ${sql.literal(toStartColumns)}, d.status FROM unnest(${ids}::text[]) AS a (id) JOIN deliveries d ON d.id = a.id ${sql.literal(toStartJoins)}`)
