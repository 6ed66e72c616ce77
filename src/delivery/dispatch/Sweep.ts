/**
 * The sweep: writes commands again for whatever is overdue, because an operator terminated its workflow or Temporal lost its
 * state: deliveries whose next attempt is overdue, queues whose drain did not act, recoveries and notices. Also for queues that
 * wait for nothing, because their webhook was resumed while a delivery joined them. Each once a minute at most; the oldest
 * dispatcher does it. It reads overdue rows by index, so what is not overdue costs nothing.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { oldestId, RETENTION_DAYS } from "../../events/log/logWindow.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { insertCommands, insertDeliveryCommands } from "../../runtime/temporal/commands.ts"

/** How overdue something must be, and for how long a recovery must have been inactive; its longest wait is a minute. */
const OVERDUE = "30 seconds",
  INACTIVE = "3 minutes",
  UNSENT = "10 seconds"
/** Longer than any command but a claim's waits. */
const LONGEST = "2 minutes"
/** Deliveries per statement. */
const PAGE = 500

const decode = decodeRows(Schema.Struct({ id: Schema.String, dueAt: Schema.String }))

export class Sweep extends Effect.Service<Sweep>()("custody/Sweep", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** A page of overdue deliveries, the most overdue first, with commands for those that no claim is about to attempt. */
    const page = (after: { readonly id: string; readonly dueAt: string }) =>
      decode(sql`
        WITH overdue AS MATERIALIZED (
          SELECT d.id, d.next_attempt_at, d.organization_id FROM deliveries d
          WHERE d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at < now() - ${OVERDUE}::interval AND d.id >= ${oldestId("del")}
            AND (d.next_attempt_at, d.id) > (${after.dueAt}::timestamptz, ${after.id})
          ORDER BY d.next_attempt_at, d.id LIMIT ${PAGE}
        ), claimed AS MATERIALIZED (
          SELECT unnest(members) AS id FROM commands WHERE key >= 'claim/' AND key < 'claim0'
        ), woken AS (
          ${insertDeliveryCommands(sql, sql`SELECT o.id, o.organization_id FROM overdue o WHERE o.id NOT IN (SELECT c.id FROM claimed c)`)}
        )
        SELECT id, next_attempt_at AS "dueAt" FROM overdue ORDER BY next_attempt_at, id`)

    const deliveries = Effect.gen(function* () {
      for (let after = { id: "", dueAt: "-infinity" }, found = PAGE; found === PAGE; ) {
        const rows = yield* page(after)
        found = rows.length
        after = rows.at(-1) ?? after
      }
    })

    const others = insertCommands(
      sql,
      sql`
        SELECT 'drain/' || webhook_id FROM webhook_queues WHERE due < now() - ${OVERDUE}::interval
        UNION ALL
        SELECT 'drain/' || q.webhook_id FROM webhook_queues q JOIN webhooks w ON w.id = q.webhook_id
        WHERE q.due IS NULL AND w.status = 'ACTIVE'
          AND (q.live OR EXISTS (SELECT 1 FROM recoveries r WHERE r.webhook_id = q.webhook_id AND r.status = 'RUNNING'))
        UNION ALL
        SELECT id FROM recoveries WHERE (status = 'RUNNING' OR canceling) AND seen_at < now() - ${INACTIVE}::interval
        UNION ALL
        SELECT id FROM notices WHERE sent_at IS NULL AND created_at BETWEEN now() - make_interval(days => ${RETENTION_DAYS}) AND now() - ${UNSENT}::interval`
    )

    /** Makes commands due that are further away than any is written: Postgres' clock was set back. */
    const stranded = sql`
      UPDATE commands SET due = clock_timestamp() WHERE members IS NULL AND due > clock_timestamp() + ${LONGEST}::interval`

    return {
      /** Writes the commands. */
      run: Effect.all([stranded, deliveries, others], { discard: true })
    }
  })
}) {
  static readonly layer = this.Default
}
