/**
 * Deletes everything of an organization: it is stopped, its workflows are terminated, and its rows are deleted, a few hundred at
 * a time in transactions of their own, with pauses, so that other organizations are not slowed down. It can be killed at any
 * point: another run finishes it. The audit log stays. Decision D-56.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Schedule, Schema } from "effect"
import { drainIdOf } from "../../../workflows/contract.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { deletePart } from "../../runtime/database/deletePart.ts"
import { FOREIGN_KEY_VIOLATION, hasSqlState } from "../../runtime/database/hasSqlState.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import { OPERATOR, record } from "../audit/AuditTrail.ts"
import { remove } from "./custodyTables.ts"
import { auditLog, deletedTables, outbox, plainTables } from "./organizationTables.ts"
import { stop, whileDeleting } from "./stop.ts"
import { terminate, terminateListed } from "./terminateWorkflows.ts"

/** Rows per transaction. */
const PART = 300
/** The pause after a part: as a multiple of the time that it took, and at least. */
const PAUSE = 2,
  LEAST = Duration.millis(5)
/** The schedule of further passes, if another process wrote a row during one. */
const AGAIN = Schedule.spaced("1 second").pipe(Schedule.intersect(Schedule.recurs(10)))

/** What was deleted. */
export interface Deleted {
  readonly organizationId: string
  /** Rows by table. */
  readonly deleted: Readonly<Record<string, number>>
  readonly workflowsTerminated: number
  /** Rows that stay. */
  readonly kept: { readonly audit_log: number }
}

/** Whether Postgres rejected the deletion because a row still refers to it: another process wrote one meanwhile. */
const isReferred = (error: unknown): boolean => hasSqlState(error, FOREIGN_KEY_VIOLATION)

const decodeIds = decodeRows(Schema.Struct({ id: Schema.String })),
  decodeDeliveries = decodeRows(Schema.Struct({ id: Schema.String, waits: Schema.Boolean })),
  decodeCounts = decodeRows(Schema.Struct({ count: Schema.Number }))

/**
 * Deletes the organization. `onProgress` is called with a table and how many of its rows have been deleted. Fails with
 * `UnknownOrganization`, or with `DeletedMeanwhile` if another run of the command was faster.
 */
export const deleteOrganization = (organizationId: string, onProgress: (table: string, rows: number) => void) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const deleted: Record<string, number> = {}
    let workflows = 0
    const count = (table: string, rows: number) => {
      deleted[table] = (deleted[table] ?? 0) + rows
      if (rows > 0) onProgress(table, deleted[table] ?? 0)
    }
    const since = yield* stop(organizationId)
    const still = <A, E, R>(part: Effect.Effect<A, E, R>) => whileDeleting(sql, organizationId, since, part)
    const ids = (rows: ReadonlyArray<{ readonly id: string }>) => rows.map(({ id }) => id)

    /** Repeats a part until it finds fewer rows than it may, with pauses. Returns how many it found. */
    const inParts = <E, R>(part: Effect.Effect<number, E, R>) =>
      Effect.gen(function* () {
        for (let all = 0; ; ) {
          const [took, found] = yield* Effect.timed(part)
          failpoint("organization-part")
          all += found
          if (found < PART) return all
          yield* Effect.sleep(Duration.max(LEAST, Duration.times(took, PAUSE)))
        }
      })

    /** A part of the deliveries, with their attempts and commands, after the workflows of those that wait. */
    const deliveries = Effect.gen(function* () {
      const rows = yield* decodeDeliveries(sql`
        SELECT d.id, d.status IN ('PENDING', 'RETRYING', 'HELD') OR EXISTS (SELECT 1 FROM commands c WHERE c.key = d.id) AS waits
        FROM webhooks w JOIN deliveries d ON d.webhook_id = w.id WHERE w.organization_id = ${organizationId} LIMIT ${PART}`)
      workflows += yield* terminate(ids(rows.filter(({ waits }) => waits)))
      yield* still(
        Effect.gen(function* () {
          // Whoever cancels them writes its commands under this lock.
          yield* sql`SELECT 1 FROM deliveries WHERE id = ANY(${ids(rows)}::text[]) ORDER BY id FOR UPDATE`
          const commands = yield* sql`DELETE FROM commands WHERE key = ANY(${ids(rows)}::text[]) RETURNING 1`
          const attempts = yield* sql`DELETE FROM delivery_attempts WHERE delivery_id = ANY(${ids(rows)}::text[]) RETURNING 1`
          yield* sql`DELETE FROM deliveries WHERE id = ANY(${ids(rows)}::text[])`
          count("commands", commands.length)
          count("delivery_attempts", attempts.length)
          count("deliveries", rows.length)
        })
      )
      return rows.length
    })

    /** A part of the events, with their dispatch rows. */
    const events = Effect.gen(function* () {
      const rows = yield* decodeIds(sql`SELECT id FROM events WHERE organization_id = ${organizationId} LIMIT ${PART}`)
      yield* still(
        Effect.gen(function* () {
          const dispatches = yield* sql`DELETE FROM event_dispatches WHERE event_id = ANY(${ids(rows)}::text[]) RETURNING 1`
          yield* sql`DELETE FROM events WHERE id = ANY(${ids(rows)}::text[])`
          count("event_dispatches", dispatches.length)
          count("events", rows.length)
        })
      )
      return rows.length
    })

    /** Terminates the workflows of queues, recoveries and notices. */
    const terminateOthers = Effect.gen(function* () {
      const webhooks = yield* decodeIds(sql`SELECT id FROM webhooks WHERE organization_id = ${organizationId} ORDER BY id`)
      const recoveries = yield* decodeIds(sql`SELECT id FROM recoveries WHERE webhook_id = ANY(${ids(webhooks)}::text[])`)
      const notices = yield* decodeIds(sql`SELECT id FROM notices WHERE organization_id = ${organizationId} AND sent_at IS NULL`)
      workflows += yield* terminate([...ids(webhooks).map(drainIdOf), ...ids(recoveries), ...ids(notices)])
    })

    /** Deletes the rows of every table. */
    const pass = Effect.gen(function* () {
      const plain = (table: (typeof plainTables)[number]) =>
        inParts(
          Effect.tap(still(deletePart(sql, table.table, table.of(sql, organizationId), PART)), (rows) =>
            Effect.sync(() => count(table.table, rows))
          )
        )
      yield* plain(outbox)
      yield* inParts(deliveries)
      yield* inParts(events)
      yield* terminateOthers
      yield* Effect.forEach(plainTables, plain, { discard: true })
      workflows += yield* terminateListed(`OrganizationId = "${organizationId}"`)
    })

    /** Whether a row is left, read under the lock of the organization's stream, without which no event is recorded. */
    const isEmpty = Effect.gen(function* () {
      for (const { of, table } of deletedTables)
        if ((yield* sql`SELECT 1 FROM ${sql(table)} t WHERE ${of(sql, organizationId)} LIMIT 1`).length > 0) return false
      return true
    })

    /** Deletes the organization itself, if nothing else is left. */
    const end = still(
      Effect.gen(function* () {
        yield* sql`SELECT 1 FROM event_streams WHERE organization_id = ${organizationId} FOR UPDATE`
        if (!(yield* isEmpty)) return false
        yield* remove(sql, organizationId)
        yield* record(sql, [
          { organizationId, actor: OPERATOR, action: "organization.deleted", target: { type: "organization", id: organizationId } }
        ])
        return true
      })
    )

    const whole = Effect.retry(Effect.zipRight(pass, end), { while: isReferred, schedule: AGAIN })
    yield* Effect.repeat(whole, { until: (done) => done })
    const [kept] = yield* decodeCounts(sql`SELECT count(*) AS count FROM audit_log t WHERE ${auditLog.of(sql, organizationId)}`)
    return {
      organizationId,
      deleted: Object.fromEntries(Object.entries({ ...deleted, organizations: 1 }).filter(([, rows]) => rows > 0)),
      workflowsTerminated: workflows,
      kept: { audit_log: kept?.count ?? 0 }
    } satisfies Deleted
  })
