/**
 * Claims events from the outbox. A claim takes a share from each waiting organization, or only from those that
 * are not busy, deletes these rows, and writes their deliveries and `matchedCount` in the same transaction. Claimed events
 * are locked, so several dispatchers never take the same one; a delivery's id is derived from its event and webhook, so
 * no pair is written twice.
 *
 * The commit of a claim does not wait for the disk. No request is sent before the claim is on disk: an attempt is
 * recorded first, with a commit that waits, and the WAL is written in order. A claim that is lost in a crash of Postgres
 * had no effect, and its events are in the outbox again. Spec: Emission and log. Architecture, What must hold 1.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Array as Arr, Effect, Schema } from "effect"
import { decodeRows } from "../database/decodeRows.ts"
import { insertDeliveries } from "../deliveries/insertDeliveries.ts"
import { firstWait } from "../deliveries/retrySchedule.ts"
import type { ToStart } from "../deliveries/WorkflowStarter.ts"
import { covers } from "../events/matching.ts"
import { Settings } from "../settings/Settings.ts"
import * as Id from "../values/Id.ts"
import { type ClaimScope, type WaitingOrganization, WaitingOrganizations } from "./WaitingOrganizations.ts"

/** Events per claim, and organizations: of all, and of those that are not busy while all others wait. */
const SIZES = {
  all: { events: 50, organizations: 50 },
  "not busy": { events: 8, organizations: 8 }
} as const satisfies Record<ClaimScope, unknown>

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
const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

/** The result of a claim. */
export interface Claim {
  /** Whether it took any events. Waiting events that it did not take are locked by another dispatcher. */
  readonly claimed: boolean
  /** The written deliveries to start, alternating between organizations: of those that are not busy, and of the others. */
  readonly single: ReadonlyArray<ToStart>
  readonly busy: ReadonlyArray<ToStart>
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
          LEFT JOIN (webhook_entities we JOIN webhooks w ON w.id = we.webhook_id AND w.status IN ('ACTIVE', 'PAUSED'))
            ON we.entity_id = c.entity_id AND ${covers(sql, "c")}
        ORDER BY c.turn, t.organization_id, w.id`)

    /** Writes deliveries, numbered within their webhooks, and the outcome of the events. Returns the ids of held ones. */
    const write = (eventIds: ReadonlyArray<string>, deliveries: ReadonlyArray<ToStart & { readonly vaultId: string | null }>) => {
      const counts = new Map<string, number>()
      for (const { eventId } of deliveries) counts.set(eventId, (counts.get(eventId) ?? 0) + 1)
      return decodeIds(sql`
        WITH ${insertDeliveries(sql, deliveries, firstWait(webhookRetrySchedule))}, dispatched AS (
          INSERT INTO event_dispatches (event_id, matched_count)
          SELECT * FROM unnest(${eventIds}::text[], ${eventIds.map((id) => counts.get(id) ?? 0)}::int[])
        )
        SELECT id FROM written WHERE status = 'HELD'`)
    }

    const claimOf = (asked: ReadonlyArray<WaitingOrganization>, share: number) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const matches = yield* take(asked, share)
          const eventIds = [...new Set(matches.flatMap(({ eventId }) => eventId ?? []))]
          if (eventIds.length === 0) return { matches, eventIds, deliveries: [] }
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
          const held = new Set((yield* write(eventIds, deliveries)).map(({ id }) => id))
          // failpoint: dispatch-written
          return { matches, eventIds, deliveries: deliveries.filter(({ id }) => !held.has(id)) }
        })
      )

    return {
      /** Claims events of organizations that the last look found and whose turn it is. */
      claim: (turn: ClaimScope) =>
        Effect.gen(function* () {
          const { events, organizations } = SIZES[turn]
          const asked = waiting.next(organizations, turn)
          if (asked.length === 0) return { claimed: false, single: [], busy: [] } satisfies Claim
          const share = Math.max(1, Math.floor(events / asked.length))
          const { deliveries, eventIds, matches } = yield* claimOf(asked, share)
          const taken = Map.groupBy(matches, ({ organizationId }) => organizationId)
          for (const [organizationId, mine] of taken) {
            const count = new Set(mine.flatMap(({ eventId }) => eventId ?? [])).size
            const started = mine.filter(({ webhookId }) => webhookId !== null).length
            waiting.claimed(organizationId, started, mine[0]?.left ?? null, count === share)
          }
          const [single, busy] = Arr.partition(deliveries, ({ organizationId }) => waiting.isBusy(organizationId))
          return { claimed: eventIds.length > 0, single, busy } satisfies Claim
        }),

      /** Whether any event waits. */
      waits: waiting.poll
    }
  })
}) {
  static readonly layer = this.Default
}
