/**
 * The dispatcher: from a committed event to a running workflow for each webhook that matches. It claims undispatched
 * events, writes their deliveries, `matchedCount` and `dispatchedAt` in one transaction, and starts the workflows
 * afterwards. What a crash leaves in between, the sweeper finds. Several dispatchers may run: a claimed event is locked,
 * and a delivery's id follows from its event and webhook, so no pair is ever written twice.
 *
 * Notifications only wake it; it polls all the same, because a notification can be lost. While Temporal is away it
 * leaves events undispatched. Spec: Emission and log. Architecture, What must hold 1, 6.
 */
import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { Effect, Queue, Schedule, Stream } from "effect"
import { signals, workflows } from "../../workflows/contract.ts"
import { CHANNEL } from "../events/EventLog.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import * as Id from "../values/Id.ts"
import { Attempts } from "./Attempts.ts"
import { Notices } from "./Notices.ts"
import { Starter, type ToStart } from "./Starter.ts"

/** Events of one claim. */
const BATCH = 100
/** Workflows that are being started at once. */
const STARTS = 24
/** Time between two looks when nothing wakes it. */
const POLL = "100 millis"
/** Time between two sweeps, and how overdue a delivery is before its workflow is started again, in seconds. */
const SWEEP = "30 seconds",
  OVERDUE_SECONDS = 60
const SWEEP_LIMIT = 1_000

interface Match {
  readonly eventId: string
  readonly entityId: string
  readonly kind: string
  readonly webhookId: string | null
  readonly url: string | null
}

export class Dispatcher extends Effect.Service<Dispatcher>()("custody/Dispatcher", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const pg = yield* PgClient.PgClient
    const temporal = yield* TemporalConnection
    const starter = yield* Starter
    const attempts = yield* Attempts
    const notices = yield* Notices

    /** Claims a batch of events and writes what follows from them. Returns the deliveries to start. */
    const claim = sql.withTransaction(
      Effect.gen(function* () {
        const matches = yield* sql<Match>`
          WITH claimed AS MATERIALIZED (
            SELECT e.id, e.entity_id, e.vault_id, e.kind FROM events e WHERE e.dispatched_at IS NULL
            ORDER BY e.id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
          SELECT c.id AS "eventId", c.entity_id AS "entityId", c.kind, w.id AS "webhookId", w.url
          FROM claimed c LEFT JOIN (webhook_entities we JOIN webhooks w ON w.id = we.webhook_id AND w.status = 'ACTIVE')
            ON we.entity_id = c.entity_id AND c.kind = ANY(w.event_kinds)
            AND (c.vault_id IS NULL OR w.vault_ids IS NULL OR c.vault_id = ANY(w.vault_ids))
          ORDER BY c.id, w.id`
        if (matches.length === 0) return { events: 0, deliveries: [] }
        const deliveries = matches.flatMap(
          ({ entityId, eventId, kind, url, webhookId }): ReadonlyArray<ToStart> =>
            webhookId === null || url === null
              ? []
              : [{ id: Id.derived("del", Id.time(eventId) ?? Date.now(), eventId, webhookId), webhookId, eventId, entityId, kind, url }]
        )
        if (deliveries.length > 0) {
          yield* sql`
            INSERT INTO deliveries (id, event_id, webhook_id, kind, status, next_attempt_at)
            SELECT id, event_id, webhook_id, kind, 'PENDING', now()
            FROM unnest(${deliveries.map((_) => _.id)}::text[], ${deliveries.map((_) => _.eventId)}::text[],
              ${deliveries.map((_) => _.webhookId)}::text[], ${deliveries.map((_) => _.kind)}::text[]) AS d (id, event_id, webhook_id, kind)
            ON CONFLICT (id) DO NOTHING`
        }
        const eventIds = [...new Set(matches.map(({ eventId }) => eventId))]
        const counts = new Map<string, number>()
        for (const { eventId } of deliveries) counts.set(eventId, (counts.get(eventId) ?? 0) + 1)
        yield* sql`
          UPDATE events e SET dispatched_at = now(), matched_count = c.matched
          FROM unnest(${eventIds}::text[], ${eventIds.map((id) => counts.get(id) ?? 0)}::int[]) AS c (id, matched) WHERE e.id = c.id`
        return { events: eventIds.length, deliveries }
      })
    )

    const startAll = (deliveries: ReadonlyArray<ToStart>) =>
      Effect.forEach(
        deliveries,
        (delivery) =>
          Effect.catchAll(starter.start(delivery), (error) =>
            Effect.logWarning(`the workflow of ${delivery.id} could not be started; the sweeper will`, error)
          ),
        { concurrency: STARTS, discard: true }
      )

    /** Dispatches until nothing is left. */
    const drain: Effect.Effect<void, unknown> = Effect.gen(function* () {
      const idle = yield* sql`SELECT 1 FROM events WHERE dispatched_at IS NULL LIMIT 1`
      if (idle.length === 0) return
      // Events wait, undispatched and visible as such, while nobody could carry them out.
      if (!(yield* temporal.answers)) return
      for (;;) {
        const { deliveries, events } = yield* claim
        yield* startAll(deliveries)
        if (events < BATCH) return
      }
    })

    /** Tells running workflows what the database decided. A workflow that is gone needs no telling. */
    const tell = Effect.gen(function* () {
      const { client } = yield* temporal.now
      const rows = yield* sql<{ id: number; deliveryId: string; signal: string }>`
        SELECT id, delivery_id AS "deliveryId", signal FROM delivery_signals ORDER BY id LIMIT ${BATCH}`
      if (rows.length === 0) return
      const told = yield* Effect.forEach(
        rows,
        ({ deliveryId, id, signal }) => {
          const handle = client.workflow.getHandle(deliveryId)
          return Effect.tryPromise({
            try: async () => {
              if (signal === "cancel") await handle.cancel()
              else await handle.signal(signals.retryNow)
              return [id]
            },
            catch: (error) => error
          }).pipe(Effect.catchAll((error) => Effect.succeed(isGone(error) ? [id] : [])))
        },
        { concurrency: STARTS }
      )
      yield* sql`DELETE FROM delivery_signals WHERE id = ANY(${told.flat()}::bigint[])`
    })

    /** Starts again what is overdue and seems to have no workflow; one that has is left alone. */
    const checked = new Map<string, number>()
    const sweep = Effect.gen(function* () {
      const now = Date.now()
      for (const [id, at] of checked) if (now - at > 600_000) checked.delete(id)
      const overdue = yield* attempts.overdue(OVERDUE_SECONDS, SWEEP_LIMIT)
      const unchecked = overdue.filter(({ id }) => !checked.has(id))
      if (unchecked.length === 0 || !(yield* temporal.answers)) return
      yield* Effect.logInfo(`sweeping ${unchecked.length} overdue deliveries`)
      yield* startAll(unchecked)
      for (const { id } of unchecked) checked.set(id, now)
    })

    /** Starts the sending of notices that were recorded and whose workflow is not there. */
    const sweepNotices = Effect.gen(function* () {
      const unsent = yield* notices.unsent
      if (unsent.length === 0) return
      const { client } = yield* temporal.now
      yield* Effect.forEach(unsent, ({ id }) =>
        Effect.ignore(
          Effect.tryPromise(() =>
            client.workflow.start(workflows.notify, { workflowId: id, taskQueue: temporal.taskQueue, args: [{ noticeId: id }] })
          )
        )
      )
    })

    const surviving = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) =>
      Effect.catchAllCause(effect, (cause) => Effect.logWarning(`${what} failed and is tried again`, cause))

    return {
      /** Runs until interrupted. */
      run: Effect.gen(function* () {
        const wake = yield* Queue.sliding<void>(1)
        const listen = Stream.runForEach(pg.listen(CHANNEL), () => Queue.offer(wake, undefined))
        // A listener goes deaf when Postgres restarts, so it is made anew every minute; the poll covers the rest.
        yield* Effect.forkScoped(listen.pipe(Effect.timeout("1 minute"), Effect.ignore, Effect.repeat(Schedule.spaced("100 millis"))))
        const look = Effect.zipRight(surviving("dispatching", drain), Effect.raceFirst(Queue.take(wake), Effect.sleep(POLL)))
        yield* Effect.forkScoped(Effect.forever(look))
        yield* Effect.forkScoped(Effect.schedule(surviving("telling workflows", Effect.ignore(tell)), Schedule.spaced("500 millis")))
        const sweeps = Effect.zipRight(surviving("sweeping deliveries", sweep), surviving("sweeping notices", sweepNotices))
        return yield* Effect.zipRight(sweeps, Effect.schedule(sweeps, Schedule.spaced(SWEEP)))
      }).pipe(Effect.scoped),
      drain,
      sweep
    }
  })
}) {
  static readonly layer = this.Default
}

const isGone = (error: unknown): boolean => error instanceof Error && error.name === "WorkflowNotFoundError"
