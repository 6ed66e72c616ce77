/**
 * Retention: removes data older than the log's 31 days. Whole days are dropped as partitions, which is fast and leaves
 * nothing to vacuum; a day is dropped only when all of its rows are older. Also removed: secrets after their grace
 * period, idempotency keys after 24 hours, counters of past days, pings, deleted webhooks without deliveries. A Temporal schedule
 * runs it daily. Spec: Limits. Decision D-31.
 */

import type { SqlError, Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { workflows } from "../../../workflows/contract.ts"
import { AUDIT_DAYS } from "../../access/audit/AuditTrail.ts"
import { databaseTime } from "../../runtime/database/databaseTime.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { deletePart } from "../../runtime/database/deletePart.ts"
import * as Partitions from "../../runtime/database/Partitions.ts"
import { insertDeliveryCommands } from "../../runtime/temporal/commands.ts"
import { createSchedule } from "../../runtime/temporal/createSchedule.ts"
import * as Id from "../../values/Id.ts"
import { RETENTION_DAYS } from "../log/logWindow.ts"
import { removeDeletedWebhooks } from "./removeDeletedWebhooks.ts"

/** Most rows per statement. */
const PART = 10_000
const DAY = 86_400_000

const decodeCounts = decodeRows(Schema.Struct({ count: Schema.Number }))
/** Partitions by name: whether a detach was interrupted; null if a partition is detached. */
const decodePartitions = decodeRows(Schema.Struct({ name: Schema.String, half: Schema.NullOr(Schema.Boolean) }))

export class Retention extends Effect.Service<Retention>()("custody/Retention", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Creates partitions for the coming days and drops old ones. Returns how many were dropped. */
    const days = Effect.gen(function* () {
      yield* Effect.provideService(Partitions.ensure, SqlClient.SqlClient, sql)
      // Uses the slower of two clocks: a day that is dropped because one of them is wrong cannot be restored.
      const oldest = Partitions.dayOf(Math.min(Date.now(), yield* databaseTime(sql))) - RETENTION_DAYS - 1
      let partitionsDropped = 0
      for (const [table] of Partitions.tables) {
        // By name: a partition that was detached before a crash belongs to no table any more, but must still be dropped.
        const rows = yield* decodePartitions(sql`
            SELECT c.relname AS name, i.inhdetachpending AS half FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
            WHERE c.relnamespace = (SELECT p.relnamespace FROM pg_class p WHERE p.oid = ${table}::regclass)
              AND c.relkind = 'r' AND c.relname ~ ${`^${table}_[0-9]{8}$`} AND c.relname < ${Partitions.nameOf(table, oldest)}
            ORDER BY c.relname`)
        for (const { half, name } of rows) {
          // Detached concurrently, so that readers and writers of other days are not blocked; a detach that a crash
          // interrupted is finished first.
          if (half !== null) yield* sql.unsafe(`ALTER TABLE ${table} DETACH PARTITION ${name} ${half ? "FINALIZE" : "CONCURRENTLY"}`)
          yield* sql.unsafe(`DROP TABLE ${name}`)
          partitionsDropped++
        }
      }
      return partitionsDropped
    })

    /** Deletes in batches. Returns the number of rows. */
    const remove = (table: string, condition: Statement.Fragment) => {
      const part = deletePart(sql, table, condition, PART)
      return Effect.iterate(
        { total: 0, last: PART },
        {
          while: ({ last }) => last === PART,
          body: ({ total }) => Effect.map(part, (last) => ({ total: total + last, last }))
        }
      ).pipe(Effect.map(({ total }) => total))
    }

    /** Removes obsolete rows. Returns the number of rows. */
    const rows = Effect.map(
      Effect.all([
        remove("webhook_secrets", sql`t.expires_at <= now()`),
        // Their deliveries have been removed by then.
        remove("recoveries", sql`t.completed_at < now() - interval '31 days'`),
        remove("idempotency_keys", sql`t.created_at < now() - interval '24 hours'`),
        remove("pings", sql`t.at < now() - interval '1 day'`),
        // Kept as long as the log, for the portal's charts. The newest slot of each webhook stays: it has the last
        // success.
        remove(
          "webhook_counters",
          sql`t.slot < now() - interval '32 days'
            AND EXISTS (SELECT 1 FROM webhook_counters n WHERE n.webhook_id = t.webhook_id AND n.slot > t.slot AND n.last_success_at IS NOT NULL)`
        ),
        // Ids begin with the time, so the primary key finds them.
        remove(
          "audit_log",
          sql`t.id < ${Id.floor("aud", Date.now() - AUDIT_DAYS * DAY)} AND t.at < clock_timestamp() - make_interval(days => ${AUDIT_DAYS})`
        ),
        // A notice that could not be sent by then is given up.
        remove("notices", sql`coalesce(t.sent_at, t.created_at) < now() - make_interval(days => ${RETENTION_DAYS})`)
      ]),
      (counts) => counts.reduce((sum, count) => sum + count, 0)
    )

    /** Cancels deliveries that have been held for too long: their events leave the log. Returns how many. */
    const expire: Effect.Effect<number, SqlError.SqlError> = Effect.flatMap(
      decodeCounts(sql`
        WITH oldest AS MATERIALIZED (
          SELECT d.id FROM deliveries d WHERE d.status = 'HELD' AND d.created_at < now() - make_interval(days => ${RETENTION_DAYS}) LIMIT ${PART} FOR UPDATE SKIP LOCKED
        ), expired AS (
          UPDATE deliveries d SET status = 'CANCELED', failure_reason = 'EXPIRED' FROM oldest o WHERE d.id = o.id RETURNING d.id, d.started, d.organization_id
        ), woken AS (
          ${insertDeliveryCommands(sql, sql`SELECT id, organization_id FROM expired WHERE started`)}
        )
        SELECT count(*) AS count FROM expired`),
      ([{ count } = { count: 0 }]) => (count < PART ? Effect.succeed(count) : Effect.map(expire, (more) => count + more))
    )

    return {
      /**
       * Runs retention. A failure is logged, retried by the workflow, and does not stop the other steps. Returns what was
       * removed.
       */
      retain: Effect.gen(function* () {
        const [expired, dropped, removed] = yield* Effect.all([Effect.exit(expire), Effect.exit(days), Effect.exit(rows)])
        // After the days of their deliveries.
        const webhooks = yield* Effect.exit(removeDeletedWebhooks(sql))
        const done = { partitionsDropped: yield* dropped, rowsRemoved: (yield* removed) + (yield* webhooks) }
        yield* expired
        yield* Effect.logInfo("retention completed").pipe(Effect.annotateLogs(done))
        return done
      }).pipe(Effect.tapErrorCause((cause) => Effect.logError("retention failed and will be retried", cause)))
    }
  })
}) {
  static readonly layer = this.Default
}

/** Creates the daily schedule if it is missing. */
export const schedule = createSchedule({
  name: "retention",
  workflowType: workflows.retain,
  spec: { calendars: [{ hour: 0, minute: 20, comment: "drops data older than the log" }] },
  catchupWindow: "1 day"
})
