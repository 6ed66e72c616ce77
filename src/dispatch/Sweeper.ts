/**
 * The sweeper: starts again what waits in Postgres and has no workflow, because a process died between the two, an
 * operator terminated it, or Temporal lost its state. A delivery that is overdue and has its workflow is waiting for
 * room at its endpoint; it is left alone, and woken when the endpoint takes deliveries again.
 *
 * What waits is compared with what runs by the page: one question to Temporal says which of 500 deliveries have a running
 * workflow. A sweep looks at a bounded number of deliveries and the next one goes on from there, so that a backlog of any
 * size costs the same; what became overdue since the sweep before is looked at first in any case. Temporal's list may lag behind:
 * what it does not name is asked for by name before it is started, and a few that it names are, too.
 * Architecture, What must hold 1.
 */
import { SqlClient } from "@effect/sql"
import { WorkflowExecutionAlreadyStartedError } from "@temporalio/client"
import { Effect } from "effect"
import { searchKeys, workflows } from "../../workflows/contract.ts"
import { type ToStart, WorkflowStarter } from "../deliveries/WorkflowStarter.ts"
import { oldestId } from "../events/EventsRepo.ts"
import { Notices, PAGE as PAGE_OF_NOTICES } from "../notifications/Notices.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import { WakeLimit } from "./WakeLimit.ts"

/** How overdue a delivery is before its workflow is looked for, in seconds: usually, and when a dispatcher starts. */
const OVERDUE = 60,
  OVERDUE_AT_START = 2
/** Deliveries of one page, pages of one sweep, and workflows that are started at once. */
const PAGE = 500,
  PAGES = 20,
  STARTS = 24
/** What became overdue is looked at again by the next sweep, for so many seconds: rows are committed later than they are due. */
const OVERLAP = 90
/** Of the workflows that Temporal lists, how many are asked for by name: one that is gone says that none of them may be there. */
const SAMPLE = 20
/** Where Temporal does not list workflows, how many a sweep asks for by name. */
const ASKED = 500
/** How long a notice whose workflow was started is not looked for again, in ms. */
const RECENT_NOTICE = 600_000

interface Overdue extends ToStart {
  readonly dueAt: string
  /** Whether its endpoint took the last delivery. */
  readonly healthy: boolean
}

/** A stretch of what is overdue: rows due after `after`, or after a time, and at most so many pages of them. */
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
    /** Where the next sweep goes on; undefined at the beginning of what is overdue. */
    let place: Stretch["after"]
    /** Whether Temporal's list is believed; not until the end of a walk in which a workflow that it listed was gone. */
    let believed = true
    /** When notices' workflows were started, by id, on the monotonic clock. */
    const started = new Map<string, number>()

    /**
     * A page of deliveries whose next attempt is overdue, the longest first. By `now()`, which ends the walk along the
     * index; `clock_timestamp()` is asked anew for each row, and all that wait would be walked through. The event may have
     * left the log where a delivery is a redelivery.
     */
    const overdue = (seconds: number, after: Stretch["after"]) => sql<Overdue>`
      SELECT d.id, d.kind, d.webhook_id AS "webhookId", d.event_id AS "eventId", coalesce(e.entity_id, '') AS "entityId", w.url,
        d.next_attempt_at AS "dueAt", coalesce(h.consecutive_failures, 0) = 0 AS healthy
      FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id LEFT JOIN events e ON e.id = d.event_id
        LEFT JOIN webhook_health h ON h.webhook_id = w.id
      WHERE d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at < now() - make_interval(secs => ${seconds})
        AND d.id >= ${oldestId("del")} AND (d.next_attempt_at, d.id) > (${after?.dueAt ?? "-infinity"}::timestamptz, ${after?.id ?? ""})
      ORDER BY d.next_attempt_at, d.id LIMIT ${PAGE}`

    /** Which of the deliveries have a running workflow, as Temporal lists them; undefined when it does not. */
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

    /** The deliveries whose first attempts are made by groups that run now. */
    const inGroups = Effect.flatMap(temporal.now, ({ client }) =>
      Effect.tryPromise(async () => {
        const held = new Set<string>()
        const running = client.workflow.list({ query: `WorkflowType = "${workflows.firstAttempts}" AND ExecutionStatus = "Running"` })
        for await (const { typedSearchAttributes } of running)
          for (const id of typedSearchAttributes.get(searchKeys.deliveryIds) ?? []) held.add(id)
        return held
      })
    ).pipe(Effect.catchAll((error) => Effect.as(Effect.logDebug("running groups cannot be listed", error), new Set<string>())))

    /** Starts the workflow unless it runs. Whether it had been lost. */
    const look = (delivery: Overdue) =>
      Effect.map(starter.start(delivery), (found) => found === "started").pipe(
        Effect.catchAll((error) => Effect.as(Effect.logDebug(`a delivery's workflow could not be queried: ${error.message}`), false))
      )
    const lookAt = (deliveries: ReadonlyArray<Overdue>) =>
      Effect.map(Effect.forEach(deliveries, look, { concurrency: STARTS }), (lost) => lost.filter((one) => one).length)

    /** Compares a stretch of what is overdue. Returns where it ended (undefined: nothing is left), what was lost, and a sample of the rest. */
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
        if (!(yield* temporal.answers)) return { lost, sample: [], last }
        const runs = yield* listed(page)
        const single = page.filter(({ id }) => !held.has(id))
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
        const woken = page.filter(({ healthy, id, webhookId }) => healthy && wakeLimit.wakes(webhookId, id))
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
      // What became overdue lately comes last, and must not wait until the walk is there.
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
      /** Looks for the workflows of what is overdue, in part where it is much. */
      sweep: Effect.zipRight(starter.attributesMayBeThere, sweepFrom(OVERDUE, PAGES)),

      /** The first sweep of a dispatcher, which waits for Temporal and for less, and looks at everything. */
      first: Effect.zipRight(temporal.ready, sweepFrom(OVERDUE_AT_START, Number.POSITIVE_INFINITY)),

      /** Starts the sending of notices that were recorded and whose workflow is not there. */
      notices: Effect.gen(function* () {
        for (const [id, at] of started) if (performance.now() - at > RECENT_NOTICE) started.delete(id)
        const start = (id: string) =>
          Effect.flatMap(temporal.now, ({ client }) =>
            Effect.tryPromise(() =>
              client.workflow.start(workflows.notify, { workflowId: id, taskQueue: temporal.taskQueue, args: [{ noticeId: id }] })
            )
          ).pipe(
            Effect.catchIf(
              (failure) => failure._tag === "UnknownException" && failure.error instanceof WorkflowExecutionAlreadyStartedError,
              () => Effect.void
            ),
            Effect.zipRight(Effect.sync(() => started.set(id, performance.now()))),
            Effect.ignore
          )
        for (let after = "", more = true; more; ) {
          const rows: ReadonlyArray<{ readonly id: string }> = yield* notices.unsent(after)
          const due = rows.filter(({ id }) => performance.now() - (started.get(id) ?? Number.NEGATIVE_INFINITY) > RECENT_NOTICE)
          yield* Effect.forEach(due, ({ id }) => start(id), { concurrency: STARTS })
          after = rows.at(-1)?.id ?? after
          more = rows.length === PAGE_OF_NOTICES
        }
      })
    }
  })
}) {
  static readonly layer = this.Default
}
