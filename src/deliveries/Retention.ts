/**
 * Retention: the log shows 31 days, and what is older goes. Whole days are dropped as partitions, which takes no time
 * and leaves nothing to vacuum; a day goes only when every row of it is older. Also removed: secrets after their
 * grace, idempotency keys after 24 hours, counters of past days, pings. Run daily by a Temporal schedule.
 * Spec: Limits. Decision D-31.
 */
import { SqlClient } from "@effect/sql"
import { ScheduleAlreadyRunning, ScheduleOverlapPolicy } from "@temporalio/client"
import { Effect } from "effect"
import { workflows } from "../../workflows/contract.ts"
import * as Partitions from "../database/Partitions.ts"
import { RETENTION_DAYS } from "../events/Event.ts"
import { TemporalConnection } from "../temporal/Connection.ts"

export class Retention extends Effect.Service<Retention>()("custody/Retention", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    return {
      /** Makes the coming days and drops the past ones. Returns what went. */
      retain: Effect.gen(function* () {
        yield* Effect.provideService(Partitions.ensure, SqlClient.SqlClient, sql)
        // Of two clocks the one that is behind: a day that is dropped because one of them is wrong does not come back.
        const [there] = yield* sql<{ now: number }>`SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now`
        const oldest = Partitions.dayOf(Math.min(Date.now(), there?.now ?? 0)) - RETENTION_DAYS - 1
        let partitionsDropped = 0
        for (const [table] of Partitions.tables) {
          // By their names: a day that was detached before a crash belongs to no table any more, and is to be dropped all the same.
          const rows = yield* sql<{ name: string; half: boolean | null }>`
            SELECT c.relname AS name, i.inhdetachpending AS half FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
            WHERE c.relnamespace = (SELECT p.relnamespace FROM pg_class p WHERE p.oid = ${table}::regclass)
              AND c.relkind = 'r' AND c.relname ~ ${`^${table}_[0-9]{8}$`} AND c.relname < ${Partitions.nameOf(table, oldest)}
            ORDER BY c.relname`
          for (const { half, name } of rows) {
            // Detached concurrently, so that readers and writers of the other days are not held up; a detach that was
            // cut short by a crash is finished first.
            if (half !== null) yield* sql.unsafe(`ALTER TABLE ${table} DETACH PARTITION ${name} ${half ? "FINALIZE" : "CONCURRENTLY"}`)
            yield* sql.unsafe(`DROP TABLE ${name}`)
            partitionsDropped++
          }
        }
        const removed = [
          yield* sql`DELETE FROM webhook_secrets WHERE expires_at <= now() RETURNING 1`,
          yield* sql`DELETE FROM idempotency_keys WHERE created_at < now() - interval '24 hours' RETURNING 1`,
          yield* sql`DELETE FROM pings WHERE at < now() - interval '1 day' RETURNING 1`,
          // The newest slot of each webhook stays: it knows the last success.
          yield* sql`
            DELETE FROM webhook_counters c WHERE c.slot < now() - interval '25 hours'
              AND EXISTS (SELECT 1 FROM webhook_counters n WHERE n.webhook_id = c.webhook_id AND n.slot > c.slot AND n.last_success_at IS NOT NULL) RETURNING 1`,
          // One that was never sent was given up long before.
          yield* sql`DELETE FROM notices WHERE coalesce(sent_at, created_at) < now() - interval '31 days' RETURNING 1`
        ]
        return { partitionsDropped, rowsRemoved: removed.reduce((sum, rows) => sum + rows.length, 0) }
      })
    }
  })
}) {
  static readonly layer = this.Default
}

/** Makes the daily schedule where it is missing. */
export const schedule = Effect.gen(function* () {
  const temporal = yield* TemporalConnection
  const { client } = yield* temporal.ready
  yield* Effect.tryPromise(() =>
    client.schedule.create({
      scheduleId: `custody-retention-${temporal.taskQueue}`,
      spec: { calendars: [{ hour: 0, minute: 20, comment: "drops what is older than the log" }] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: "1 day" },
      action: {
        type: "startWorkflow",
        workflowType: workflows.retain,
        taskQueue: temporal.taskQueue,
        args: [],
        workflowId: `retention-${temporal.taskQueue}`
      }
    })
  ).pipe(
    Effect.catchIf(
      ({ error }) => error instanceof ScheduleAlreadyRunning,
      () => Effect.void
    )
  )
})
