/**
 * Delivers new events to waiting readers of the feed. All waiting readers of a process share one poll of the database and
 * one read of new events, and their access is checked together. A Postgres notification triggers the poll immediately; if
 * one is lost, the poll comes a little later. Nothing is queried while no reader waits. Access is evaluated with every event
 * and every {@link RECHECK}. C-1.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Runtime, Schedule, Schema } from "effect"
import { AccessChecks } from "../../access/credentials/AccessChecks.ts"
import { callerOf, type PrincipalState } from "../../access/credentials/Principal.ts"
import { castRows, decodeRows } from "../../runtime/database/decodeRows.ts"
import { Notifications } from "../../runtime/database/Notifications.ts"
import * as Id from "../../values/Id.ts"
import { CHANNEL } from "../log/EventLog.ts"
import type { Place } from "./cursor.ts"
import { type FeedFilter, idsFrom, placeOf } from "./FeedRepo.ts"
import { FeedRow, feedColumns } from "./FeedRow.ts"
import { seenBy } from "./seenBy.ts"
import { LONGEST_WRITE } from "./streamEnd.ts"

/** Longest and shortest poll interval while a reader waits, in ms. */
const POLL = 1_000,
  PAUSE = 5
/** How often the access of waiting readers is checked, in ms. */
const RECHECK = 4_000
/** Events per read. */
const BATCH = 500
/** Events that a reader may be behind before it reads on its own. */
const BEHIND = 2_000

/** A waiting reader. */
export interface Waiting {
  /** The reader's access at the last evaluation. */
  principal: PrincipalState
  readonly filter: FeedFilter
  /** The position up to which everything was delivered. */
  place: Place
  /** The next events that the reader can see and that match its filter, oldest first. */
  readonly onEvents: (rows: ReadonlyArray<FeedRow>) => void
  /** There is more than is delivered, or another event at the position: the reader must read from it, and no longer waits. */
  readonly onBehind: () => void
  /** The key or session is no longer valid, or lost its scope; the reader no longer waits. */
  readonly onRefused: () => void
}

interface Followed {
  position: number
  /** The id of the event at the position; null if it is not known. */
  id: string | null
  readonly waiting: Set<Waiting>
}

/** The recorded events of an organization. */
interface Recorded {
  readonly end: number
  /** A time in ms: no event up to the end was recorded later. */
  readonly latest: number
  /** A time in ms: every event after the end was recorded at it or later. */
  readonly at: number
}

/** `follows`: whether the log still has the event at the position after which it was read. */
const Row = Schema.Struct({ ...FeedRow.fields, audience: Schema.NullOr(Schema.Array(Schema.String)), follows: Schema.Boolean })
type Row = typeof Row.Type
// Up to hundreds of events at a time, while readers wait for them.
const castEvents = castRows(Row)
const decodeAccess = decodeRows(Schema.Struct({ userId: Schema.String, id: Schema.String })),
  decodeEnds = decodeRows(
    Schema.Struct({
      id: Schema.String,
      end: Schema.Number,
      eventId: Schema.NullOr(Schema.String),
      clock: Schema.Number,
      now: Schema.Number
    })
  )

/** Whether a filter matches an event. */
export const matches = ({ entityId, kind, vaultId }: FeedFilter, row: FeedRow): boolean =>
  (kind?.includes(row.kind) ?? true) &&
  (entityId?.includes(row.entityId) ?? true) &&
  (vaultId === undefined || (row.vaultId !== null && vaultId.includes(row.vaultId)))

export class FeedFollower extends Effect.Service<FeedFollower>()("custody/FeedFollower", {
  scoped: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const access = yield* AccessChecks
    const notifications = yield* Notifications
    const streams = new Map<string, Followed>()
    const runtime = yield* Effect.runtime<never>()

    const ends = new Set<() => void>()
    let stopping = false
    /** Open while a reader waits. */
    const hasReaders = Effect.unsafeMakeLatch(false)
    const wake = yield* notifications.on(CHANNEL)

    const leave = (one: Waiting) => {
      const { organizationId } = one.principal
      const followed = streams.get(organizationId)
      followed?.waiting.delete(one)
      if (followed?.waiting.size === 0) streams.delete(organizationId)
      if (streams.size === 0) hasReaders.unsafeClose()
    }

    /** Evaluates the access of some readers again; those without access are rejected. */
    const recheck = Effect.fnUntraced(function* (some: ReadonlyArray<Waiting>) {
      // Another check may replace it meanwhile.
      const asked = some.map((one) => ({ one, before: one.principal }))
      const current = yield* access.current(asked.map(({ before }) => before))
      for (const { before, one } of asked) {
        const principal = current.get(before)
        if (principal?.scopes.has("webhook:read") === true) one.principal = principal
        else {
          leave(one)
          one.onRefused()
        }
      }
    })

    /** Which of the users have the Developer role on which of the vaults, and access to which of the entities. */
    const accessOf = Effect.fnUntraced(function* (userIds: ReadonlyArray<string>, rows: ReadonlyArray<Row>) {
      const vaultIds = [...new Set(rows.flatMap(({ vaultId }) => vaultId ?? []))]
      const entityIds = [...new Set(rows.flatMap((row) => (row.vaultId === null ? [row.entityId, ...(row.audience ?? [])] : [])))]
      const found = yield* decodeAccess(sql`
        SELECT user_id AS "userId", vault_id AS id FROM vault_roles
        WHERE user_id = ANY(${userIds}::text[]) AND vault_id = ANY(${vaultIds}::text[])
        UNION ALL
        SELECT u.id, n.id FROM unnest(${userIds}::text[]) AS u (id) CROSS JOIN unnest(${entityIds}::text[]) AS n (id)
        WHERE EXISTS (SELECT 1 FROM vault_roles r WHERE (r.user_id || '/' || r.entity_id) = u.id || '/' || n.id)`)
      const idsOf = Map.groupBy(found, ({ userId }) => userId)
      return new Map(userIds.map((userId) => [userId, new Set(idsOf.get(userId)?.map(({ id }) => id))]))
    })

    const sendAway = ({ waiting }: Followed) => {
      for (const one of [...waiting]) {
        leave(one)
        one.onBehind()
      }
    }

    /** Delivers the next events of an organization. Returns whether there are more. */
    const deliverNext = Effect.fnUntraced(function* (organizationId: string, followed: Followed, { at, end, latest }: Recorded) {
      if (end - followed.position > BEHIND) {
        sendAway(followed)
        return false
      }
      const until = Math.min(end, followed.position + BATCH)
      // Limited by id, too, so that Postgres opens only the tables of these days.
      const [from, before] = [Id.floor("evt", idsFrom(followed.id)), Id.floor("evt", latest + 1)]
      const rows = yield* castEvents(sql`
        SELECT ${sql.literal(feedColumns)}, e.audience,
          (${followed.id}::text IS NULL OR EXISTS (SELECT 1 FROM events p WHERE p.id = ${followed.id})) AS follows
        FROM events e LEFT JOIN event_dispatches x ON x.event_id = e.id AND x.event_id >= ${from} AND x.event_id < ${before}
        WHERE e.organization_id = ${organizationId} AND e.position > ${followed.position} AND e.position <= ${until}
          AND e.id >= ${from} AND e.id < ${before} ORDER BY e.position`)
      // The database was restored to a time before that event.
      if (rows[0]?.follows === false) {
        sendAway(followed)
        return false
      }
      const all = new Set(followed.waiting)
      yield* recheck([...all])
      // Positions are dense, so the last row has the position up to which this reads.
      const [last] = rows.slice(-1)
      const place = until === end || last === undefined ? { position: until, at, id: last?.id ?? null } : placeOf(last)
      const access = yield* accessOf([...new Set([...all].map(({ principal }) => principal.userId))], rows)
      // Not of those that were refused, whose access is that of before.
      const seenRows = seenBy(
        [...all.intersection(followed.waiting)].map(({ principal }) => principal),
        rows,
        access
      )
      let reached: Place = place
      for (const one of followed.waiting) {
        if (one.place.position >= until) continue
        if (!all.has(one)) {
          // It joined meanwhile, so its access was not read: the next round begins at its position.
          if (one.place.position < reached.position) reached = one.place
          continue
        }
        const mine = seenRows.get(callerOf(one.principal))
        const seen = rows.filter((row) => row.position > one.place.position && mine?.has(row) === true && matches(one.filter, row))
        one.place = place
        if (seen.length > 0) one.onEvents(seen)
      }
      followed.position = reached.position
      followed.id = reached.id
      return reached.position < end
    })

    let failing = false
    const poll = Effect.gen(function* () {
      const ids = [...streams.keys()]
      const ends = yield* decodeEnds(sql`
        SELECT organization_id AS id, position AS end, event_id AS "eventId", CASE WHEN isfinite(clock) THEN ceil(extract(epoch FROM clock) * 1000)::float8 ELSE 0 END AS clock,
          floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now
        FROM event_streams WHERE organization_id = ANY(${ids}::text[])`)
      for (const { clock, end, eventId, id, now } of ends) {
        const followed = streams.get(id)
        if (followed === undefined) continue
        if (end < followed.position || (end === followed.position && followed.id !== null && eventId !== followed.id)) sendAway(followed)
        const recorded = { end, latest: clock, at: Math.min(now, Date.now()) - LONGEST_WRITE }
        while (followed.waiting.size > 0 && followed.position < end) {
          if (!(yield* deliverNext(id, followed, recorded))) break
        }
      }
      failing = false
    }).pipe(
      Effect.catchAllCause((cause) => {
        const first = !failing
        failing = true
        return first ? Effect.logWarning("the event feed cannot be followed now", cause) : Effect.void
      })
    )

    yield* Effect.forkScoped(
      hasReaders.await.pipe(
        Effect.zipRight(poll),
        Effect.zipRight(Effect.sleep(PAUSE)),
        Effect.zipRight(Effect.timeoutOption(wake.next, POLL)),
        Effect.forever
      )
    )
    yield* Effect.forkScoped(
      hasReaders.await.pipe(
        Effect.zipRight(Effect.suspend(() => recheck([...streams.values()].flatMap(({ waiting }) => [...waiting])))),
        Effect.catchAllCause((cause) => Effect.logWarning("the access of open streams cannot be checked now", cause)),
        Effect.schedule(Schedule.spaced(RECHECK))
      )
    )

    return {
      /** Number of waiting readers. */
      get size() {
        return [...streams.values()].reduce((total, { waiting }) => total + waiting.size, 0)
      },
      /**
       * Waits for events after the position of `one`, until {@link leave}. Returns false if later events were already
       * delivered to others: then it must read once more.
       */
      join: (one: Waiting): boolean => {
        const { organizationId } = one.principal
        const known = streams.get(organizationId)
        const followed = known ?? { position: one.place.position, id: one.place.id, waiting: new Set<Waiting>() }
        if (followed.position > one.place.position) return false
        followed.waiting.add(one)
        if (known === undefined) {
          streams.set(organizationId, followed)
          // No reader was notified of events recorded since this one's read.
          wake.now()
        }
        hasReaders.unsafeOpen()
        return true
      },
      leave,
      /** Calls back when the process stops; returns how to unsubscribe. */
      onStop: (done: () => void): (() => void) => {
        ends.add(done)
        return () => ends.delete(done)
      },
      /** Whether the process is stopping: no reader may wait any more. */
      isStopping: () => stopping,
      /** Ends every wait. */
      stop: () => {
        stopping = true
        for (const done of [...ends]) done()
      },
      /** Runs an effect of the feed outside Effect code. */
      run: Runtime.runFork(runtime)
    }
  })
}) {
  static readonly layer = this.Default
}
