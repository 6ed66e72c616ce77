/**
 * Removes deleted webhooks of which the log has no delivery any more. Until then a webhook's row decides who can see its
 * deliveries through their events. Decision D-29.
 */
import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"

const decodeCounts = decodeRows(Schema.Struct({ count: Schema.Number }))

/** Tables with rows of webhooks that are removed with them. Notices and recoveries have a retention of their own. */
const tables = [
  "webhook_entities",
  "webhook_secrets",
  "webhook_health",
  "webhook_counters",
  "webhook_sequences",
  "webhook_queues",
  "pings"
] as const

/** Webhooks per statement: few enough for its timeout, since each is looked up in every day of deliveries. */
const PART = 1_000

/** Removes at most `PART` webhooks `w` that a condition selects, if nothing else needs them. Returns how many. */
const remove = (sql: SqlClient.SqlClient, which: Statement.Fragment) => {
  const without = (table: string, condition = "true") =>
    sql`(SELECT NOT EXISTS (SELECT 1 FROM ${sql(table)} t WHERE t.webhook_id = w.id AND ${sql.literal(condition)}))`
  const gone = tables.map((table) => sql`${sql(`of_${table}`)} AS (DELETE FROM ${sql(table)} t USING gone g WHERE t.webhook_id = g.id)`)
  return Effect.map(
    decodeCounts(sql`
      WITH gone AS MATERIALIZED (
        SELECT w.id FROM webhooks w WHERE ${which} AND ${without("deliveries")} AND ${without("recoveries")} AND ${without("notices")}
          AND ${without("pings", "t.result IS NULL AND t.until > clock_timestamp()")}
        ORDER BY w.id LIMIT ${PART} FOR UPDATE SKIP LOCKED
      ), ${sql.csv(gone)}, removed AS (
        DELETE FROM webhooks w USING gone g WHERE w.id = g.id RETURNING 1
      )
      SELECT count(*) AS count FROM removed`),
    ([row]) => row?.count ?? 0
  )
}

/**
 * Removes a webhook, in the transaction that locked it to delete it, if it has no deliveries; returns whether it did. The locks keep
 * a dispatcher from creating one: it locks the webhook's sequence, or, for the first delivery, the key of the webhook.
 */
export const removeUnused = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, webhookId: string) {
  yield* sql`SELECT 1 FROM webhooks WHERE id = ${webhookId} FOR UPDATE`
  yield* sql`SELECT 1 FROM webhook_sequences WHERE webhook_id = ${webhookId} FOR UPDATE`
  return (yield* remove(sql, sql`w.id = ${webhookId}`)) > 0
})

/** Removes those that were deleted an hour ago, when no dispatcher can know them as active any more. Returns how many. */
export const removeDeletedWebhooks = (sql: SqlClient.SqlClient): Effect.Effect<number, SqlError.SqlError> =>
  Effect.flatMap(remove(sql, sql`w.deleted_at < now() - interval '1 hour'`), (count) =>
    count < PART ? Effect.succeed(count) : Effect.map(removeDeletedWebhooks(sql), (more) => count + more)
  )
