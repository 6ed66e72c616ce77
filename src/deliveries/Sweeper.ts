/**
 * The sweeper: starts again what waits in Postgres and has no workflow, because a process died between the two, an
 * operator terminated it, or Temporal lost its state. A delivery that is overdue and has its workflow is waiting for
 * room at its endpoint; it is left alone, and woken when the endpoint takes deliveries again.
 * Architecture, What must hold 1.
 */
import { SqlClient } from "@effect/sql"
import { WorkflowExecutionAlreadyStartedError } from "@temporalio/client"
import { Effect } from "effect"
import { workflows } from "../../workflows/contract.ts"
import { oldestId } from "../events/EventsRepo.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import { Notices, PAGE as PAGE_OF_NOTICES } from "./Notices.ts"
import { Starter, type ToStart } from "./Starter.ts"

/** How overdue a delivery is before its workflow is looked for, in seconds: usually, and when a dispatcher starts. */
const OVERDUE = 60,
  OVERDUE_AT_START = 2
/** Deliveries of one look, and workflows that are started at once. */
const PAGE = 500,
  STARTS = 24
/** How long a workflow that was found running is not looked for again, in ms: one that is to be woken, and any other. */
const RECENT = 120_000,
  RECENT_WAITING = 600_000
/** Deliveries of one webhook that a sweep wakes, the longest overdue: a slow endpoint that takes deliveries may have thousands. */
const WAKES = 500
/** Of the workflows found running lately, how many are looked for all the same: one that is gone says that all may be. */
const SAMPLE = 20

interface Overdue extends ToStart {
  readonly dueAt: string
  /** Whether its endpoint took the last delivery. */
  readonly healthy: boolean
}

/** A delivery whose workflow is looked for, and whether it is woken when it is found. */
interface Look {
  readonly delivery: Overdue
  readonly wake: boolean
}

export class Sweeper extends Effect.Service<Sweeper>()("custody/Sweeper", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const temporal = yield* TemporalConnection
    const starter = yield* Starter
    const notices = yield* Notices
    /** When workflows were found running, by id, on the monotonic clock. */
    const running = new Map<string, number>()

    /**
     * Deliveries whose next attempt is overdue, the longest first, after a row of the page before. By `now()`, which ends
     * the walk along the index; `clock_timestamp()` is asked anew for each row, and all that wait would be walked through.
     */
    const overdue = (seconds: number, after: Overdue | undefined) => sql<Overdue>`
      SELECT d.id, d.kind, d.webhook_id AS "webhookId", d.event_id AS "eventId", e.entity_id AS "entityId", w.url, d.next_attempt_at AS "dueAt",
        coalesce(h.consecutive_failures, 0) = 0 AS healthy
      FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id JOIN events e ON e.id = d.event_id LEFT JOIN webhook_health h ON h.webhook_id = w.id
      WHERE d.status IN ('PENDING', 'RETRYING') AND d.next_attempt_at < now() - make_interval(secs => ${seconds})
        AND d.id >= ${oldestId("del")} AND (d.next_attempt_at, d.id) > (${after?.dueAt ?? "-infinity"}::timestamptz, ${after?.id ?? ""})
      ORDER BY d.next_attempt_at, d.id LIMIT ${PAGE}`

    /** Starts the workflow, or finds it running and, where that is asked, wakes it. Whether it had been lost. */
    const look = ({ delivery, wake }: Look) =>
      Effect.flatMap(starter.start(delivery), (found) => {
        if (found === "started")
          return Effect.as(
            Effect.sync(() => running.delete(delivery.id)),
            true
          )
        running.set(delivery.id, performance.now())
        return Effect.as(wake ? starter.wake(delivery.id) : Effect.void, false)
      }).pipe(
        Effect.catchAll((error) => Effect.as(Effect.logDebug(`a delivery's workflow could not be looked for: ${error.message}`), false))
      )

    const lookAt = (looks: ReadonlyArray<Look>) =>
      Effect.map(Effect.forEach(looks, look, { concurrency: STARTS }), (lost) => lost.filter((one) => one).length)

    /** Everything that is overdue, page by page. Returns how many workflows had been lost, and some of those not looked for. */
    const pages = Effect.fnUntraced(function* (seconds: number) {
      const woken = new Map<string, number>()
      const looks = (delivery: Overdue): Look => {
        const before = woken.get(delivery.webhookId) ?? 0
        if (delivery.healthy) woken.set(delivery.webhookId, before + 1)
        return { delivery, wake: delivery.healthy && before < WAKES }
      }
      const isRecent = ({ delivery: { id }, wake }: Look) =>
        performance.now() - (running.get(id) ?? Number.NEGATIVE_INFINITY) < (wake ? RECENT : RECENT_WAITING)
      /** A random sample of those found running lately. Algorithm R, Vitter 1985. */
      const sample: Array<Look> = []
      let recent = 0,
        started = 0
      for (let last: Overdue | undefined; ; ) {
        const page: ReadonlyArray<Overdue> = yield* overdue(seconds, last)
        if (page.length > 0 && !(yield* temporal.answers)) return { started, sample: [] }
        const due: Array<Look> = []
        for (const one of page.map(looks)) {
          if (!isRecent(one)) {
            due.push(one)
            continue
          }
          const place = recent < SAMPLE ? recent : Math.floor(Math.random() * (recent + 1))
          if (place < SAMPLE) sample[place] = one
          recent++
        }
        started += yield* lookAt(due)
        last = page.at(-1)
        if (page.length < PAGE) return { started, sample }
      }
    })

    const sweepFrom = Effect.fnUntraced(function* (seconds: number) {
      let { sample, started } = yield* pages(seconds)
      const gone = yield* lookAt(sample)
      if (gone > 0) {
        running.clear()
        started += gone + (yield* pages(seconds)).started
      }
      if (started > 0) yield* Effect.logInfo(`started the workflows of ${started} deliveries that had none`)
    })

    const forget = Effect.sync(() => {
      for (const [id, at] of running) if (performance.now() - at > RECENT_WAITING) running.delete(id)
    })

    return {
      /** Looks for the workflows of what is overdue. */
      sweep: Effect.zipRight(Effect.zipRight(forget, starter.attributesMayBeThere), sweepFrom(OVERDUE)),

      /** The first sweep of a dispatcher, which waits for Temporal and for less. */
      first: Effect.zipRight(temporal.ready, sweepFrom(OVERDUE_AT_START)),

      /** Starts the sending of notices that were recorded and whose workflow is not there. */
      notices: Effect.gen(function* () {
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
            Effect.zipRight(Effect.sync(() => running.set(id, performance.now()))),
            Effect.ignore
          )
        for (let after = "", more = true; more; ) {
          const rows: ReadonlyArray<{ readonly id: string }> = yield* notices.unsent(after)
          const due = rows.filter(({ id }) => performance.now() - (running.get(id) ?? Number.NEGATIVE_INFINITY) > RECENT_WAITING)
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
