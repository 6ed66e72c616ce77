/** The inputs of deliveries' workflows. */
import type { SqlClient, SqlError } from "@effect/sql"
import type { Effect } from "effect"
import { decodeRows } from "../database/decodeRows.ts"
import { ToStart } from "./WorkflowStarter.ts"

const decode = decodeRows(ToStart)

/** The existing ones of these deliveries, whatever their state: a workflow that starts for a completed one detects it. */
export const deliveriesToStart = (
  sql: SqlClient.SqlClient,
  ids: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<ToStart>, SqlError.SqlError> =>
  decode(sql`
    SELECT d.id, w.organization_id AS "organizationId", d.event_id AS "eventId", d.webhook_id AS "webhookId", d.kind, e.entity_id AS "entityId", w.url
    FROM unnest(${ids}::text[]) AS a (id) JOIN deliveries d ON d.id = a.id JOIN webhooks w ON w.id = d.webhook_id JOIN events e ON e.id = d.event_id`)
