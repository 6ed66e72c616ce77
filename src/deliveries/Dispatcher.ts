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
import { CHANNEL } from "../events/EventLog.ts"
import { Settings } from "../settings/Settings.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import * as Id from "../values/Id.ts"
import { Starter, type ToStart } from "./Starter.ts"
import { Sweeper } from "./Sweeper.ts"
import { firstWait } from "./schedule.ts"
import { Teller } from "./Teller.ts"

/** Events of one claim. */
const BATCH = 100
/** Workflows that are being started at once. */
const STARTS = 24
/** Deliveries that are remembered to be started once Temporal answers; the sweeper finds the rest. */
const LEFT = 1_000
/** Time between two looks when nothing wakes it. */
const POLL = "100 millis"
/** Time between two sweeps, and between two looks for what workflows are to be told. */
const SWEEP = "30 seconds",
  FIRST_AGAIN = "4 seconds",
  TELL = "500 millis"

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
    const sweeper = yield* Sweeper
    const teller = yield* Teller
    const { webhookRetrySchedule } = yield* Settings
    /** Deliveries whose start failed because Temporal went away in between: started as soon as it answers. */
    const left = new Map<string, ToStart>()

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
            SELECT id, event_id, webhook_id, kind, 'PENDING', now() + make_interval(secs => ${firstWait(webhookRetrySchedule)})
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
        // failpoint: dispatch-written
        return { events: eventIds.length, deliveries }
      })
    )

    const keep = (delivery: ToStart) =>
      Effect.sync(() => {
        if (left.size < LEFT) left.set(delivery.id, delivery)
      })

    /** Starts the workflows; whether all of them could be. The first that cannot says that Temporal is away. */
    const startAll = (deliveries: ReadonlyArray<ToStart>) =>
      Effect.gen(function* () {
        let away = false
        const startOne = (delivery: ToStart) =>
          Effect.suspend(() => (away ? keep(delivery) : Effect.asVoid(starter.start(delivery)))).pipe(
            Effect.tap(() => {
              // failpoint: started
              if (!away) left.delete(delivery.id)
            }),
            Effect.catchAll((error) => {
              const { message } = error
              if (error._tag === "NotStarted" && error.refused) {
                left.delete(delivery.id)
                return Effect.logError(`the workflow of ${delivery.id} is refused, the sweeper tries it again: ${message}`)
              }
              away = true
              return Effect.zipRight(keep(delivery), Effect.logWarning(`workflows cannot be started now: ${message}`))
            })
          )
        yield* Effect.forEach(deliveries, startOne, { concurrency: STARTS, discard: true })
        return !away
      })

    /** One batch of events, to the end: a dispatcher that is asked to stop starts what it has claimed. */
    const next = Effect.uninterruptible(
      Effect.gen(function* () {
        const { deliveries, events } = yield* claim
        // failpoint: dispatched
        return (yield* startAll(deliveries)) && events === BATCH
      })
    )

    /** Dispatches until nothing is left, or Temporal is away: events then wait, undispatched and visible as such. */
    const drain: Effect.Effect<void, unknown> = Effect.gen(function* () {
      if (left.size === 0) {
        // A parameter, so that it is prepared: planning it anew ten times a second, over every day, takes longer than asking.
        const waiting = yield* sql`SELECT 1 FROM events WHERE dispatched_at IS NULL LIMIT ${1}`
        if (waiting.length === 0) return
      }
      if (!(yield* temporal.answers)) return
      if (left.size > 0 && !(yield* startAll([...left.values()]))) return
      yield* Effect.repeat(next, { while: (more) => more })
    })

    const loggingFailure = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) =>
      Effect.catchAllCause(effect, (cause) => Effect.logWarning(`${what} failed and is tried again`, cause))

    const sweeps = Effect.zipRight(
      loggingFailure("sweeping deliveries", sweeper.sweep),
      loggingFailure("sweeping notices", sweeper.notices)
    )

    return {
      /** Runs until interrupted. */
      run: Effect.gen(function* () {
        const wake = yield* Queue.sliding<void>(1)
        const listen = Stream.runForEach(pg.listen(CHANNEL), () => Queue.offer(wake, undefined))
        // A listener goes deaf when Postgres restarts, so it is made anew every minute; the poll covers the rest.
        yield* Effect.forkScoped(listen.pipe(Effect.timeout("1 minute"), Effect.ignore, Effect.repeat(Schedule.spaced("100 millis"))))
        const look = Effect.zipRight(loggingFailure("dispatching", drain), Effect.raceFirst(Queue.take(wake), Effect.sleep(POLL)))
        yield* Effect.forkScoped(Effect.forever(look))
        yield* Effect.forkScoped(Effect.schedule(loggingFailure("telling workflows", teller.tell), Schedule.spaced(TELL)))
        // What a dispatcher left that was killed is not waited for: the first sweeps look at all that is due, and again
        // at what was just being started.
        const first = loggingFailure("the first sweep", sweeper.first)
        yield* Effect.zipRight(first, Effect.delay(first, FIRST_AGAIN))
        return yield* Effect.schedule(sweeps, Schedule.spaced(SWEEP))
      }).pipe(Effect.scoped)
    }
  })
}) {
  static readonly layer = this.Default
}
