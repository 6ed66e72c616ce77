/**
 * Background work on the hash chains of entities, beside the writers of events (EventLog.ts): checkpoints for midnights
 * that no event has followed yet, and, after an upgrade from a version without them, positions and chains of older
 * events. Every process does both, and none repeats what another has done. The upgrade's work resumes where it stopped.
 * C-1, C-3.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schedule, Schema } from "effect"
import { EVENT_CHAINS } from "../database/advisoryLocks.ts"
import { decodeRows } from "../database/decodeRows.ts"
import { loggingFailure } from "../telemetry/loggingFailure.ts"
import { extend, midnight } from "./chain.ts"
import { chainsOf, lock, writeChains } from "./EventLog.ts"

/** Organizations that one statement reads for sealing, and events that one transaction numbers or chains. */
const ORGANIZATIONS = 100,
  EVENTS = 1_000
/** How often a process checks whether a new day has begun. */
const LOOK = "30 seconds"

const Old = Schema.Struct({ id: Schema.String, organizationId: Schema.String, entityId: Schema.String, payload: Schema.String })
type Old = typeof Old.Type
const decodeOld = decodeRows(Old)
const decodeNumbered = decodeRows(Schema.Struct({ ...Old.fields, position: Schema.Number }))
const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))
const decodeLast = decodeRows(Schema.Struct({ last: Schema.String }))
const decodeMine = decodeRows(Schema.Struct({ mine: Schema.Boolean }))
const decodeUnfilled = decodeRows(Schema.Struct({ id: Schema.String, behind: Schema.Number }))

export class EventChains extends Effect.Service<EventChains>()("custody/EventChains", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Writes checkpoints for past midnights, for every entity of an organization. */
    const sealOrganization = (organizationId: string) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const { now, of } = yield* lock(sql, [organizationId])
          const stream = of.get(organizationId)
          if (stream?.chained !== true) return
          const today = midnight(now) / 1_000
          yield* sql`
            INSERT INTO entity_chains (entity_id, organization_id, count, hash, sealed_until)
            SELECT n.id, n.organization_id, 0, decode(repeat('00', 32), 'hex'), to_timestamp(${today}::float8) - interval '1 day'
            FROM entities n WHERE n.organization_id = ${organizationId} ON CONFLICT (entity_id) DO NOTHING`
          yield* sql`
            INSERT INTO event_checkpoints (entity_id, at, count, hash, position)
            SELECT c.entity_id, day, c.count, c.hash, ${stream.position}
            FROM entity_chains c, generate_series(c.sealed_until + interval '1 day', to_timestamp(${today}::float8), interval '1 day') AS day
            WHERE c.organization_id = ${organizationId} ON CONFLICT (entity_id, at) DO NOTHING`
          yield* sql`
            UPDATE entity_chains SET sealed_until = to_timestamp(${today}::float8)
            WHERE organization_id = ${organizationId} AND sealed_until < to_timestamp(${today}::float8)`
          // No event may get a time in a sealed day, even if the clock is set back.
          yield* sql`
            UPDATE event_streams SET clock = greatest(clock, to_timestamp(${today}::float8)), sealed_until = to_timestamp(${today}::float8)
            WHERE organization_id = ${organizationId}`
        })
      )

    /** Writes missing checkpoints up to the last midnight. */
    const seal = Effect.gen(function* () {
      for (;;) {
        const due = yield* decodeIds(sql`
          SELECT organization_id AS id FROM event_streams
          WHERE filled AND sealed_until < date_trunc('day', clock_timestamp(), 'UTC') ORDER BY organization_id LIMIT ${ORGANIZATIONS}`)
        for (const { id } of due) yield* sealOrganization(id)
        if (due.length < ORGANIZATIONS) return
      }
    })

    /** Adds events to their chains, starting today: there are no checkpoints for days before an upgrade. */
    const chain = Effect.fnUntraced(function* (events: ReadonlyArray<Old>) {
      const at = Date.now()
      const organizations = new Map(events.map(({ entityId, organizationId }) => [entityId, organizationId]))
      const known = yield* chainsOf(sql, [...organizations.keys()])
      const links = events.map(({ entityId, payload }) => ({ entityId, payload, at: midnight(at), before: 0 }))
      const today = known.map((one) => ({ ...one, sealedUntil: Math.max(one.sealedUntil, midnight(at)) }))
      yield* writeChains(sql, extend(today, links).chains, (entityId) => organizations.get(entityId) ?? "")
    })

    /** Numbers and chains the next events from before the upgrade. Returns whether there were any. */
    const number = Effect.gen(function* () {
      const [{ last } = { last: "" }] = yield* decodeLast(sql`SELECT last_id AS last FROM event_fill`)
      const events = yield* decodeOld(sql`
        SELECT e.id, e.organization_id AS "organizationId", e.entity_id AS "entityId", e.payload FROM events e
        WHERE e.position IS NULL AND e.id > ${last} ORDER BY e.id LIMIT ${EVENTS}`)
      if (events.length === 0) return false
      yield* sql`
        WITH numbered AS (
          SELECT e.id, e.organization_id, s.filled_to + row_number() OVER (PARTITION BY e.organization_id ORDER BY e.id) AS position
          FROM unnest(${events.map(({ id }) => id)}::text[]) AS n (id) JOIN events e ON e.id = n.id
          JOIN event_streams s ON s.organization_id = e.organization_id
        ), moved AS (
          UPDATE event_streams s SET filled_to = m.position FROM (SELECT organization_id, max(position) AS position FROM numbered GROUP BY 1) m
          WHERE s.organization_id = m.organization_id
        )
        UPDATE events e SET position = n.position FROM numbered n WHERE e.id = n.id`
      yield* chain(events)
      yield* sql`UPDATE event_fill SET last_id = ${events.at(-1)?.id ?? last}`
      return true
    })

    /** Chains events recorded since the upgrade, in parts; the last part under the lock of the writers. */
    const catchUp = Effect.fnUntraced(function* (organizationId: string, last: boolean) {
      if (last) yield* lock(sql, [organizationId])
      const events = yield* decodeNumbered(sql`
        SELECT e.id, e.organization_id AS "organizationId", e.entity_id AS "entityId", e.payload, e.position FROM events e
        JOIN event_streams s ON s.organization_id = e.organization_id
        WHERE e.organization_id = ${organizationId} AND e.position > s.chained_to ORDER BY e.position LIMIT ${EVENTS}`)
      yield* chain(events)
      const done = last && events.length < EVENTS
      yield* sql`
        UPDATE event_streams SET chained_to = greatest(chained_to, ${events.at(-1)?.position ?? 0}), filled = ${done}
        WHERE organization_id = ${organizationId}`
      return events.length === EVENTS
    })

    /** One part of the upgrade's work, unless another process is doing one. Returns whether there may be more. */
    const part = sql.withTransaction(
      Effect.gen(function* () {
        const [mine] = yield* decodeMine(sql`SELECT pg_try_advisory_xact_lock(${EVENT_CHAINS}::bigint) AS mine`)
        if (mine?.mine !== true) return false
        const [unfilled] = yield* decodeUnfilled(sql`
          SELECT organization_id AS id, position - chained_to AS behind FROM event_streams WHERE NOT filled ORDER BY organization_id LIMIT 1`)
        if (unfilled === undefined) return false
        if (yield* number) return true
        yield* catchUp(unfilled.id, unfilled.behind < EVENTS)
        return true
      })
    )

    const fill = Effect.repeat(part, { while: (more) => more })

    return {
      seal: Effect.orDie(seal),
      fill: Effect.orDie(fill),
      /** Runs both until the scope closes. */
      keep: Effect.forkScoped(
        Effect.zipRight(loggingFailure("numbering events from before an upgrade", fill), loggingFailure("sealing checkpoints", seal)).pipe(
          Effect.schedule(Schedule.spaced(LOOK))
        )
      )
    }
  })
}) {
  static readonly layer = this.Default
}
