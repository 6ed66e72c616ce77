/**
 * A step of a recovery, called by its workflow: examines a part of the organization's events in the order of recording, and
 * creates deliveries for the missed ones. They join the webhook's queue behind everything else, and its drain sends them.
 *
 * A part is one transaction that advances the recovery's position, and a delivery's id is derived from recovery and event, so
 * no delivery is created twice, even if a process is killed. Events that are not dispatched yet are examined after their
 * dispatch. A recovery keeps at most 1,000 deliveries in the queue. C-4.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Schema } from "effect"
import type { RecoverOutcome, RecoverStep } from "../../../workflows/contract.ts"
import { oldestId } from "../../events/log/logWindow.ts"
import { matches } from "../../events/log/matching.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { transaction } from "../../runtime/database/sql.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import * as Id from "../../values/Id.ts"
import { hasMostDeliveries, insertRecovered, MOST_OF_WEBHOOK } from "../deliveries/insertDeliveries.ts"
import { cancelWaiting, isToBeSent } from "../webhooks/cancelWaiting.ts"

/** How long a step runs, in ms; another recovery may wait for its slot. */
const STEP_MS = 2_000
/** Deliveries per part, and most events per query: it reads more events only while few of them were missed. */
const PART = 100,
  LOOK = 500
/** Most deliveries of a recovery in the queue. */
const QUEUED = 1_000
/** Shortest and longest wait before the next query, in ms. */
const SHORT_MS = 500,
  LONG_MS = 60_000

const Row = Schema.Struct({
  webhookId: Schema.String,
  organizationId: Schema.String,
  status: Schema.String,
  canceling: Schema.Boolean,
  ratePerSecond: Schema.NullOr(Schema.Number),
  position: Schema.Number,
  lastPosition: Schema.Number,
  scanned: Schema.Number,
  created: Schema.Number
})
type Row = typeof Row.Type

const Candidate = Schema.Struct({
  id: Schema.String,
  position: Schema.Number,
  kind: Schema.String,
  vaultId: Schema.NullOr(Schema.String),
  /** Whether the webhook would receive it; if so, the outcome of its last delivery. */
  matches: Schema.Boolean,
  reason: Schema.NullOr(Schema.Literal("FAILED", "CANCELED", "MISSED")),
  replayedFrom: Schema.NullOr(Schema.String)
})
type Candidate = typeof Candidate.Type

const decode = decodeRows(Row)
const decodeCandidates = decodeRows(Candidate)
const decodeRunning = decodeRows(Schema.Struct({ ...Row.fields, include: Schema.Array(Schema.String), createdAt: Schema.String }))
const decodeCount = decodeRows(Schema.Struct({ count: Schema.Number }))

/** The result of a part. */
interface Part {
  readonly created: number
  /** Whether any event was examined. */
  readonly moved: boolean
}

export class RecoveryRunner extends Effect.Service<RecoveryRunner>()("custody/RecoveryRunner", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const read = (recoveryId: string) =>
      Effect.map(
        decode(sql`
          UPDATE recoveries SET seen_at = clock_timestamp() WHERE id = ${recoveryId}
          RETURNING webhook_id AS "webhookId", organization_id AS "organizationId", status, canceling, rate_per_second AS "ratePerSecond",
            position, last_position AS "lastPosition", scanned, created`),
        ([row]) => row
      )

    /** Events after the recovery's position and before the first one that is not dispatched, with the outcome of each. */
    const look = (recoveryId: string, { organizationId, webhookId }: Row, events: number) =>
      decodeCandidates(sql`
      WITH recovery AS MATERIALIZED (
        SELECT r.*, least(r.last_position, coalesce(
          (SELECT min(o.position) - 1 FROM event_outbox o WHERE o.organization_id = ${organizationId}), r.last_position)) AS upper
        FROM recoveries r WHERE r.id = ${recoveryId}
      ), seen AS MATERIALIZED (
        SELECT e.id, e.position, e.entity_id, e.kind, e.vault_id, e.created_at, r.since, r.until, r.event_kinds, r.vault_ids
        FROM recovery r CROSS JOIN LATERAL (
          SELECT e.* FROM events e WHERE e.organization_id = ${organizationId} AND e.position > r.position AND e.position <= r.upper
            AND e.id >= ${oldestId("evt")} ORDER BY e.position LIMIT ${events}) e
      )
      SELECT s.id, s.position, s.kind, s.vault_id AS "vaultId", w.id IS NOT NULL AS matches,
        CASE WHEN w.id IS NULL OR b.delivered OR b.waiting THEN NULL WHEN b.own >= ${MOST_OF_WEBHOOK} AND ${hasMostDeliveries(sql, sql.literal("s.id"))} THEN NULL ELSE coalesce(b.last_status, 'MISSED') END AS reason, b.last_id AS "replayedFrom"
      FROM seen s
      LEFT JOIN webhooks w ON w.id = ${webhookId} AND s.created_at BETWEEN s.since AND s.until
        AND ${matches(sql, "s")} AND (s.event_kinds IS NULL OR s.kind = ANY(s.event_kinds))
        AND (s.vault_id IS NULL OR s.vault_ids IS NULL OR s.vault_id = ANY(s.vault_ids))
      LEFT JOIN webhook_queues q ON q.webhook_id = w.id
      LEFT JOIN LATERAL (
        SELECT count(*) AS own, coalesce(bool_or(d.status = 'DELIVERED'), false) AS delivered, coalesce(bool_or(${isToBeSent(sql)}), false) AS waiting,
          (array_agg(CASE d.status WHEN 'FAILED' THEN 'FAILED' ELSE 'CANCELED' END ORDER BY d.created_at DESC, d.id DESC))[1] AS last_status, (array_agg(d.id ORDER BY d.created_at DESC, d.id DESC))[1] AS last_id
        FROM deliveries d WHERE d.event_id = s.id AND d.webhook_id = w.id) b ON true
      ORDER BY s.position`)

    /**
     * Creates the next deliveries, at most `most` out of `events` events, and advances the recovery. Does nothing if it is no
     * longer running.
     */
    const part = (recoveryId: string, most: number, events: number) =>
      transaction(sql)(
        Effect.gen(function* () {
          const nothing: Part = { created: 0, moved: false }
          // Locks the webhook first, in the same order as changes of the webhook.
          const webhooks = yield* sql`
            SELECT 1 FROM webhooks w WHERE w.id = (SELECT webhook_id FROM recoveries WHERE id = ${recoveryId}) AND w.status <> 'DISABLED' FOR SHARE`
          const [recovery] = yield* decodeRunning(sql`
            SELECT webhook_id AS "webhookId", organization_id AS "organizationId", status, canceling, rate_per_second AS "ratePerSecond",
              position, last_position AS "lastPosition", scanned, created, include, created_at AS "createdAt"
            FROM recoveries WHERE id = ${recoveryId} AND status = 'RUNNING' FOR UPDATE`)
          if (webhooks.length === 0 || recovery === undefined) return nothing
          const candidates = yield* look(recoveryId, recovery, events)
          const chosen: Array<Candidate> = []
          let position = recovery.position,
            scanned = 0
          for (const candidate of candidates) {
            if (chosen.length === most) break
            position = candidate.position
            if (!candidate.matches) continue
            scanned++
            if (candidate.reason !== null && recovery.include.includes(candidate.reason)) chosen.push(candidate)
          }
          const { organizationId, webhookId } = recovery
          const at = Date.parse(recovery.createdAt)
          const deliveries = chosen.map(({ id, kind, replayedFrom, vaultId }) => ({
            id: Id.derived("del", at, id, webhookId, recoveryId),
            eventId: id,
            webhookId,
            organizationId,
            kind,
            vaultId,
            replayedFrom,
            recoveryId
          }))
          const written = deliveries.length === 0 ? [] : yield* sql`WITH ${insertRecovered(sql, deliveries)} SELECT id FROM written`
          if (candidates.length > 0)
            yield* sql`
              UPDATE recoveries SET position = ${position}, scanned = scanned + ${scanned}, created = created + ${written.length}, updated_at = now()
              WHERE id = ${recoveryId}`
          failpoint("recovery-part")
          return { created: written.length, moved: candidates.length > 0 }
        })
      )

    /** Whether everything up to the end was examined; events that left the log in the meantime need not be. */
    const isOver = (recoveryId: string, { organizationId }: Row) =>
      Effect.map(
        sql`
          SELECT 1 FROM recoveries r WHERE r.id = ${recoveryId} AND EXISTS (
            SELECT 1 FROM events e WHERE e.organization_id = ${organizationId} AND e.position > r.position AND e.position <= r.last_position
              AND e.id >= ${oldestId("evt")})`,
        (rows) => rows.length === 0
      )

    const waitingOf = (recoveryId: string, statuses: ReadonlyArray<string>, most: number) =>
      Effect.map(
        decodeCount(sql`
          SELECT count(*) FROM (SELECT 1 FROM unnest(${statuses}::text[]) s (status) CROSS JOIN LATERAL (
            SELECT 1 FROM deliveries d WHERE d.recovery_id = ${recoveryId} AND d.status = s.status LIMIT ${most}) d) waiting`),
        ([row]) => row?.count ?? 0
      )

    const details = ({ created, scanned, status }: Row, more = "") =>
      `${status}: scanned ${scanned} events, created ${created} deliveries${more}`
    const wait = (row: Row, waitMs: number | null, idle: boolean, more = ""): RecoverOutcome => ({
      next: "wait",
      waitMs,
      idle,
      details: details(row, more)
    })

    /** Waits longer the longer nothing happens. */
    const later = (waits: number) => Math.min(LONG_MS, SHORT_MS * 2 ** Math.min(waits, 10))

    const cancel = Effect.fnUntraced(function* (recoveryId: string, row: Row) {
      yield* cancelWaiting(sql, row.webhookId, sql`d.recovery_id = ${recoveryId}`)
      if ((yield* waitingOf(recoveryId, ["PENDING", "RETRYING", "HELD"], 1)) > 0) return wait(row, SHORT_MS, false)
      yield* sql`UPDATE recoveries SET canceling = false WHERE id = ${recoveryId}`
      return { next: "ended", details: details(row) } satisfies RecoverOutcome
    })

    const run = Effect.fnUntraced(function* ({ recoveryId, waits }: RecoverStep) {
      const until = performance.now() + STEP_MS
      let events = PART
      for (;;) {
        const row = yield* read(recoveryId)
        if (row === undefined) return { next: "ended", details: "the recovery no longer exists" } satisfies RecoverOutcome
        if (row.canceling) return yield* cancel(recoveryId, row)
        if (row.status === "PAUSED") return wait(row, null, false)
        if (row.status !== "RUNNING") return { next: "ended", details: details(row) } satisfies RecoverOutcome
        if (performance.now() > until) return wait(row, 0, false)
        const queued = yield* waitingOf(recoveryId, ["HELD"], QUEUED)
        if (queued >= QUEUED) return wait(row, later(waits), true, "; its deliveries are queued")
        const { ratePerSecond } = row
        const most = Math.min(PART, ratePerSecond ?? PART, QUEUED - queued)
        const [took, { created, moved }] = yield* Effect.timed(part(recoveryId, most, events))
        events = 2 * created < most ? Math.min(LOOK, 2 * events) : most
        if (!moved) {
          if (!(yield* isOver(recoveryId, row))) return wait(row, SHORT_MS, false, "; waits for events to be dispatched")
          if ((yield* waitingOf(recoveryId, ["PENDING", "RETRYING", "HELD"], 1)) > 0)
            return wait(row, later(waits), true, "; waits for its deliveries to end")
          yield* sql`
            UPDATE recoveries SET status = 'COMPLETED', completed_at = now(), updated_at = now() WHERE id = ${recoveryId} AND status = 'RUNNING'`
          continue
        }
        if (created === 0) continue
        if (ratePerSecond !== null) yield* Effect.sleep(Math.max(0, (created / ratePerSecond) * 1_000 - Duration.toMillis(took)))
      }
    })

    return {
      /** Runs the step. Fails if Postgres is unreachable; the step is then repeated. */
      step: (input: RecoverStep) =>
        Effect.gen(function* () {
          if (input.cancel)
            yield* sql`
              UPDATE recoveries SET status = 'CANCELED', canceling = true, completed_at = now(), updated_at = now()
              WHERE id = ${input.recoveryId} AND status IN ('RUNNING', 'PAUSED')`
          return yield* run(input)
        })
    }
  })
}) {
  static readonly layer = this.Default
}
