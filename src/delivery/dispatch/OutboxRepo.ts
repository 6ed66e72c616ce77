/**
 * Claims events from the outbox. A claim takes a share from each waiting organization in turn, deletes these rows, and writes
 * their deliveries, `matchedCount`, and the commands to make the first attempts, all in one transaction. Claimed events are
 * locked, so several dispatchers never take the same one; a delivery's id is derived from its event and webhook, so no pair
 * is written twice.
 *
 * The commit of a claim does not wait for the disk. No request is sent before the claim is on disk: an attempt is
 * recorded first, with a commit that waits, and the WAL is written in order. A claim that is lost in a crash of Postgres
 * had no effect, and its events are in the outbox again. Spec: Emission and log. Architecture, What must hold 1.
 */

import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { GROUP } from "../../../workflows/contract.ts"
import { receivers } from "../../events/log/matching.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { AGAIN_S } from "../../runtime/temporal/commands.ts"
import * as Id from "../../values/Id.ts"
import { insertDeliveries } from "../deliveries/insertDeliveries.ts"
import { firstWait } from "../deliveries/retrySchedule.ts"
import type { ToStart } from "../deliveries/WorkflowStarter.ts"
import { type WaitingOrganization, WaitingOrganizations } from "./WaitingOrganizations.ts"

/** Events per claim, which are of as many organizations at most. */
const EVENTS = 50

const Match = Schema.Struct({
  organizationId: Schema.String,
  /** The position of the organization's first waiting event that was not claimed; null without any. */
  left: Schema.NullOr(Schema.Number),
  /** Null, like everything below, if none of the organization's events could be claimed. */
  eventId: Schema.NullOr(Schema.String),
  entityId: Schema.NullOr(Schema.String),
  kind: Schema.NullOr(Schema.String),
  vaultId: Schema.NullOr(Schema.String),
  /** Null, like the URL, if no webhook matches the event. */
  webhookId: Schema.NullOr(Schema.String),
  url: Schema.NullOr(Schema.String)
})
const decodeMatches = decodeRows(Match)
const decodeClaims = decodeRows(Schema.Struct({ key: Schema.String, members: Schema.Array(Schema.String) }))

/** A part of a claim: the key of its command, and its deliveries, whose first attempts one workflow makes. */
export interface Claim {
  readonly key: string
  readonly deliveries: ReadonlyArray<ToStart>
}

/** The result of a claim. */
export interface Claimed {
  /** Whether it took any events. Waiting events that it did not take are locked by another dispatcher. */
  readonly any: boolean
  /** Whether it took as many as a claim can. */
  readonly full: boolean
  readonly claims: ReadonlyArray<Claim>
}

export class OutboxRepo extends Effect.Service<OutboxRepo>()("custody/OutboxRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { webhookRetrySchedule } = yield* Settings
    const waiting = new WaitingOrganizations(sql)

    /**
     * Takes events and finds the webhooks that match them: the first event of each organization, then the second of each,
     * and so on. They are deleted by their row addresses: with a join by key, Postgres would read the whole outbox, dead index
     * entries included, whenever the planner believes it to be empty.
     */
    const take = (asked: ReadonlyArray<WaitingOrganization>, share: number) =>
      decodeMatches(sql`
        WITH durability AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
        asked AS MATERIALIZED (
          SELECT a.* FROM durability CROSS JOIN unnest(${asked.map((_) => _.organizationId)}::text[], ${asked.map((_) => _.floor)}::bigint[])
            AS a (organization_id, floor)
        ), claimed AS MATERIALIZED (
          SELECT mine.*, row_number() OVER (PARTITION BY mine.organization_id ORDER BY mine.position) AS turn
          FROM asked a CROSS JOIN LATERAL (
            SELECT o.*, o.ctid AS tid FROM event_outbox o WHERE o.organization_id = a.organization_id AND o.position > a.floor
            ORDER BY o.position LIMIT ${share} FOR UPDATE SKIP LOCKED) mine
        ), taken AS (
          DELETE FROM event_outbox WHERE ctid = ANY (ARRAY(SELECT tid FROM claimed))
        ), there AS MATERIALIZED (
          SELECT a.organization_id, (
            SELECT min(position) FROM (
              SELECT o.position FROM event_outbox o WHERE o.organization_id = a.organization_id AND o.position > a.floor
              ORDER BY o.position LIMIT ${share + 1}) first
            WHERE position NOT IN (SELECT c.position FROM claimed c WHERE c.organization_id = a.organization_id)) AS rest
          FROM asked a
        )
        SELECT t.organization_id AS "organizationId", t.rest AS "left", c.event_id AS "eventId", c.entity_id AS "entityId", c.kind,
          c.vault_id AS "vaultId", w.id AS "webhookId", w.url
        FROM there t LEFT JOIN claimed c ON c.organization_id = t.organization_id
          LEFT JOIN LATERAL (${receivers(sql, "c")}) w ON true
        ORDER BY c.turn, t.organization_id, w.id`)

    const wait = firstWait(webhookRetrySchedule)

    /** Writes deliveries, numbered within their webhooks, the outcome of the events, and the commands, which it returns. */
    const write = (eventIds: ReadonlyArray<string>, deliveries: ReadonlyArray<ToStart & { readonly vaultId: string | null }>) => {
      const counts = new Map<string, number>()
      for (const { eventId } of deliveries) counts.set(eventId, (counts.get(eventId) ?? 0) + 1)
      return decodeClaims(sql`
        WITH ${insertDeliveries(sql, deliveries, wait)}, dispatched AS (
          INSERT INTO event_dispatches (event_id, matched_count)
          SELECT * FROM unnest(${eventIds}::text[], ${eventIds.map((id) => counts.get(id) ?? 0)}::int[])
        )
        INSERT INTO commands (key, members, due)
        SELECT 'claim/' || (array_agg(id ORDER BY ord))[1], array_agg(id ORDER BY ord), clock_timestamp() + make_interval(secs => ${wait + AGAIN_S})
        FROM (SELECT w.id, m.ord, (row_number() OVER (ORDER BY m.ord) - 1) / ${GROUP}::int AS part
          FROM written w JOIN made m ON m.id = w.id WHERE w.status = 'PENDING') parts
        GROUP BY part ORDER BY part RETURNING key, members`)
    }

    const claimOf = (asked: ReadonlyArray<WaitingOrganization>, share: number) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const matches = yield* take(asked, share)
          const eventIds = [...new Set(matches.flatMap(({ eventId }) => eventId ?? []))]
          if (eventIds.length === 0) return { matches, eventIds, claims: [] }
          const deliveries = matches.flatMap(({ entityId, eventId, kind, organizationId, url, vaultId, webhookId }) =>
            eventId === null || entityId === null || kind === null || webhookId === null || url === null
              ? []
              : [
                  {
                    id: Id.derivedFrom("del", eventId, webhookId),
                    webhookId,
                    eventId,
                    organizationId,
                    entityId,
                    kind,
                    vaultId,
                    url
                  }
                ]
          )
          const written = yield* write(eventIds, deliveries)
          failpoint("dispatch-written")
          const byId = new Map(deliveries.map((delivery) => [delivery.id, delivery]))
          const claims = written.map(({ key, members }) => ({ key, deliveries: members.flatMap((id) => byId.get(id) ?? []) }))
          return { matches, eventIds, claims }
        })
      )

    return {
      /** Claims events of the organizations whose turn it is, of those that the last poll found. */
      claim: Effect.suspend((): Effect.Effect<Claimed, SqlError.SqlError> => {
        const asked = waiting.next(EVENTS)
        if (asked.length === 0) return Effect.succeed({ any: false, full: false, claims: [] })
        const share = Math.max(1, Math.floor(EVENTS / asked.length))
        return Effect.map(claimOf(asked, share), ({ claims, eventIds, matches }) => {
          for (const [organizationId, mine] of Map.groupBy(matches, ({ organizationId }) => organizationId))
            waiting.claimed(organizationId, mine[0]?.left ?? null)
          return {
            any: eventIds.length > 0,
            full: eventIds.length >= EVENTS || claims.some(({ deliveries }) => deliveries.length >= GROUP),
            claims
          }
        })
      }),

      /** Whether any event waits. */
      waits: waiting.poll
    }
  })
}) {
  static readonly layer = this.Default
}
