/**
 * Checkpoints of the hash chains of entities for midnights that no event has followed yet; others are written with the next event
 * (EventLog.ts). Every process does this, and none repeats what another has done. A day is over when the clocks of Postgres and of
 * the process say so. C-3.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schedule, Schema } from "effect"
import { databaseTime } from "../../runtime/database/databaseTime.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { dayOf, nameOf } from "../../runtime/database/Partitions.ts"
import { loggingFailure } from "../../runtime/telemetry/loggingFailure.ts"
import { midnight } from "./chain.ts"
import { lock } from "./EventLog.ts"

/** Organizations that one statement reads. */
const ORGANIZATIONS = 100
/** How often a process checks whether a new day has begun. */
const LOOK = "30 seconds"

const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

export class EventChains extends Effect.Service<EventChains>()("custody/EventChains", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Writes checkpoints for past midnights, for every entity of an organization. */
    const sealOrganization = (organizationId: string, until: number) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const stream = (yield* lock(sql, [organizationId])).of.get(organizationId)
          if (stream === undefined) return
          const today = until / 1_000
          yield* sql`
            INSERT INTO entity_chains (entity_id, organization_id, count, hash, sealed_until)
            SELECT n.id, n.organization_id, 0, decode(repeat('00', 32), 'hex'), to_timestamp(${today}::float8) - interval '1 day'
            FROM entities n WHERE n.organization_id = ${organizationId} ON CONFLICT (entity_id) DO NOTHING`
          yield* sql`
            INSERT INTO event_checkpoints (entity_id, at, count, hash, position, event_id)
            SELECT c.entity_id, day, c.count, c.hash, ${stream.position}, ${stream.eventId}
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

    /**
     * Writes missing checkpoints up to the last midnight. No event gets a time before it afterwards, so a day without a partition
     * is not sealed: the clocks are wrong, and no event could be recorded when they are right again.
     */
    const seal = Effect.gen(function* () {
      for (;;) {
        const today = midnight(Math.min(Date.now(), yield* databaseTime(sql)))
        const due = yield* decodeIds(sql`
          SELECT organization_id AS id FROM event_streams
          WHERE sealed_until < to_timestamp(${today / 1_000}::float8) AND to_regclass(${nameOf("events", dayOf(today))}) IS NOT NULL
          ORDER BY organization_id LIMIT ${ORGANIZATIONS}`)
        for (const { id } of due) yield* sealOrganization(id, today)
        if (due.length < ORGANIZATIONS) return
      }
    })

    return {
      seal: Effect.orDie(seal),
      /** Does so until the scope closes. */
      keep: Effect.forkScoped(loggingFailure("sealing checkpoints", seal).pipe(Effect.schedule(Schedule.spaced(LOOK))))
    }
  })
}) {
  static readonly layer = this.Default
}
