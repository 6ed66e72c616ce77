/**
 * The sweeper: restarts deliveries that wait in Postgres without a workflow, because a process died in between, an
 * operator terminated it, or Temporal lost its state. An overdue delivery with a workflow is waiting for admission at its
 * endpoint; it is left alone, and woken when the endpoint accepts deliveries again.
 *
 * It compares waiting rows with running workflows in pages: one query to Temporal returns which of 500 deliveries have a
 * running workflow. A sweep checks a bounded number of deliveries and the next one continues from there, so the cost does
 * not depend on the size of a backlog; deliveries that became overdue since the last sweep are always checked first.
 * Temporal's list may lag behind, so deliveries that are not in it are looked up by id before they are started, and so
 * are a few that are. Architecture, What must hold 1.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { searchKeys, workflows } from "../../workflows/contract.ts"
import { decodeRows } from "../database/decodeRows.ts"
import { toStartColumns, toStartJoins } from "../deliveries/deliveriesToStart.ts"
import { ToStart, WorkflowStarter } from "../deliveries/WorkflowStarter.ts"
import { oldestId } from "../events/logWindow.ts"
import { Notices, PAGE as PAGE_OF_NOTICES, type Unsent } from "../notifications/Notices.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import { hasPendingCancellation } from "../webhooks/cancelWaiting.ts"
import { WakeLimit } from "./WakeLimit.ts"

/** How overdue a delivery must be before its workflow is looked up, in seconds: usually, and when a dispatcher starts or has failed. */
const OVERDUE = 60,
  OVERDUE_AT_START = 2
/** Deliveries per page, pages per sweep, and concurrent starts. */
const PAGE = 500,
  PAGES = 20,
  STARTS = 24
/** Seconds by which the next sweep overlaps: rows are committed later than they are due. */
const OVERLAP = 90
/** How many of the listed workflows are looked up by id: if one of them does not run, the list is not reliable. */
const SAMPLE = 20
/** How many workflows a sweep looks up by id if Temporal does not list them. */
const ASKED = 500
/** How long a notice is skipped after its workflow was started, in ms. */
const RECENT_NOTICE = 600_000

const Overdue = Schema.Struct({
  ...ToStart.fields,
  dueAt: Schema.String,
  /** Whether its endpoint accepted the last delivery, and whether it is about to be canceled with its webhook. */
  healthy: Schema.Boolean,
  canceled: Schema.Boolean
})
type Overdue = typeof Overdue.Type
const decode = decodeRows(Overdue)

/** A range of overdue rows: due after `after`, or after a time, with a limit of pages. */
interface Stretch {
  readonly seconds: number
  readonly after: Pick<Overdue, "dueAt" | "id"> | undefined
  readonly pages: number
}

export class Sweeper extends Effect.Service<Sweeper>()("custody/Sweeper", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const temporal = yield* TemporalConnection
    const starter = yield* WorkflowStarter
    const notices = yield* Notices
    const wakeLimit = new WakeLimit()
    /** Where the next sweep continues; undefined for the beginning. */
    let place: Stretch["after"]
    /** Whether Temporal's list is trusted: after a listed workflow that does not run, it is not until the end of the pass. */
    let believed = true
    /** When notices' workflows were started, by id, on the monotonic clock. */
    const started = new Map<string, number>()

    /**
     * A page of deliveries whose next attempt is overdue, the most overdue first. Uses `now()`, which ends the index
     * scan; `clock_timestamp()` is evaluated for each row, so the scan would read all waiting rows.
     */
    const overdue = (seconds: number, after: Stretch["after"]) =>
      decode(sql`
      SELECT ${sql.literal(toStartColumns)}, d.next_attempt_at AS "dueAt", coalesce(h.consecutive_failures, 0) = 0 AS healthy,
        ${hasPendingCancellation(sql)} AS canceled
      FROM deliveries d ${sql.literal(toStartJoins)} LEFT JOIN webhook_health h ON h.webhook_id = w.id
      WHERE d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at < now() - make_interval(secs => ${seconds})
        AND d.id >= ${oldestId("del")} AND (d.next_attempt_at, d.id) > (${after?.dueAt ?? "-infinity"}::timestamptz, ${after?.id ?? ""})
      ORDER BY d.next_attempt_at, d.id LIMIT ${PAGE}`)

    /** Which of the deliveries have a running workflow in Temporal's list; undefined if it cannot be read. */
    const listed = (page: ReadonlyArray<Overdue>) =>
      Effect.flatMap(temporal.now, ({ client }) =>
        Effect.tryPromise(() =>
          client.workflowService.listWorkflowExecutions({
            namespace: temporal.namespace,
            pageSize: PAGE,
            query: `ExecutionStatus = "Running" AND WorkflowId IN (${page.map(({ id }) => `"${id}"`).join(", ")})`
          })
        )
      ).pipe(
        Effect.map(({ executions }) => new Set(executions.map(({ execution }) => execution?.workflowId ?? ""))),
        Effect.catchAll((error) => Effect.as(Effect.logDebug("running workflows cannot be listed", error), undefined))
      )

    /** The deliveries whose first attempts are in running groups. */
    const inGroups = Effect.flatMap(temporal.now, ({ client }) =>
      Effect.tryPromise(async () => {
        const held = new Set<string>()
        const running = client.workflow.list({ query: `WorkflowType = "${workflows.firstAttempts}" AND ExecutionStatus = "Running"` })
        for await (const { typedSearchAttributes } of running)
          for (const id of typedSearchAttributes.get(searchKeys.deliveryIds) ?? []) held.add(id)
        return held
      })
    ).pipe(Effect.catchAll((error) => Effect.as(Effect.logDebug("running groups cannot be listed", error), new Set<string>())))

    /** Starts the workflow unless it is running. Returns whether it was lost. */
    const look = (delivery: Overdue) =>
      Effect.map(starter.start(delivery), (found) => found === "started").pipe(
        Effect.catchAll((error) => Effect.as(Effect.logDebug(`a delivery's workflow could not be queried: ${error.message}`), false))
      )
    const lookAt = (deliveries: ReadonlyArray<Overdue>) =>
      Effect.map(Effect.forEach(deliveries, look, { concurrency: STARTS }), (lost) => lost.filter((one) => one).length)

    /**
     * Checks a range of overdue rows. Returns where it ended (undefined: nothing is left), how many were lost, and a
     * sample of the rest.
     */
    const compare = Effect.fnUntraced(function* ({ after, pages, seconds }: Stretch) {
      /** A random sample. Algorithm R, Vitter 1985. */
      const sample: Array<Overdue> = []
      let seen = 0,
        lost = 0,
        asked = 0,
        last = after
      const held = yield* inGroups
      for (let count = 0; count < pages; count++) {
        const page: ReadonlyArray<Overdue> = yield* overdue(seconds, last)
        if (page.length === 0) return { lost, sample, last: undefined }
        if (!(yield* temporal.isAvailable)) return { lost, sample: [], last }
        const runs = yield* listed(page)
        const single = page.filter(({ canceled, id }) => !canceled && !held.has(id))
        const unknown =
          runs === undefined ? single.slice(0, Math.max(0, ASKED - asked)) : single.filter(({ id }) => !believed || !runs.has(id))
        asked += runs === undefined ? unknown.length : 0
        lost += yield* lookAt(unknown)
        for (const one of page) {
          if (runs?.has(one.id) !== true) continue
          const index = seen < SAMPLE ? seen : Math.floor(Math.random() * (seen + 1))
          if (index < SAMPLE) sample[index] = one
          seen++
        }
        const woken = page.filter(({ canceled, healthy, id, webhookId }) => healthy && !canceled && wakeLimit.wakes(webhookId, id))
        yield* Effect.forEach(woken, ({ id }) => starter.wake(id), { concurrency: STARTS, discard: true })
        if (page.length < PAGE) return { lost, sample, last: undefined }
        last = page.at(-1)
      }
      return { lost, sample, last }
    })

    const sweepFrom = Effect.fnUntraced(function* (seconds: number, pages: number) {
      const walk = yield* compare({ seconds, after: place, pages })
      const whole = place === undefined && walk.last === undefined
      place = walk.last
      if (place === undefined) believed = true
      // Recently overdue rows are last in the order, and must not wait until the pass reaches them.
      const lately = new Date(Date.now() - (seconds + OVERLAP) * 1_000).toISOString()
      const fresh = whole ? { lost: 0 } : yield* compare({ seconds, after: { dueAt: lately, id: "" }, pages })
      wakeLimit.end()
      const gone = yield* lookAt(walk.sample)
      if (gone > 0) {
        believed = false
        place = undefined
      }
      const lost = walk.lost + fresh.lost + gone
      if (lost > 0) yield* Effect.logInfo(`started the workflows of ${lost} deliveries that had none`)
      if (gone > 0 && pages > 0)
        yield* Effect.flatMap(compare({ seconds, after: undefined, pages }), ({ last }) => Effect.sync(() => (place = last)))
    })

    return {
      /** Looks up the workflows of overdue deliveries, of only a part if there are many. */
      sweep: Effect.zipRight(starter.retrySearchAttributes, sweepFrom(OVERDUE, PAGES)),

      /** Like {@link sweep}, but includes deliveries that became overdue only seconds ago. */
      sweepSoon: sweepFrom(OVERDUE_AT_START, PAGES),

      /** The first sweep of a dispatcher: it waits for Temporal, uses a shorter delay, and checks everything. */
      first: Effect.zipRight(temporal.ready, sweepFrom(OVERDUE_AT_START, Number.POSITIVE_INFINITY)),

      /** Starts the workflows of recorded notices that have none. */
      notices: Effect.gen(function* () {
        for (const [id, at] of started) if (performance.now() - at > RECENT_NOTICE) started.delete(id)
        const start = ({ id, organizationId, webhookId }: Unsent) =>
          starter
            .startNotice(id, organizationId, webhookId)
            .pipe(Effect.zipRight(Effect.sync(() => started.set(id, performance.now()))), Effect.ignore)
        for (let after = "", more = true; more; ) {
          const rows: ReadonlyArray<Unsent> = yield* notices.unsent(after)
          const due = rows.filter(({ id }) => performance.now() - (started.get(id) ?? Number.NEGATIVE_INFINITY) > RECENT_NOTICE)
          yield* Effect.forEach(due, start, { concurrency: STARTS })
          after = rows.at(-1)?.id ?? after
          more = rows.length === PAGE_OF_NOTICES
        }
      })
    }
  })
}) {
  static readonly layer = this.Default
}
