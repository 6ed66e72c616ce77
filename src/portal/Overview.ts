/**
 * What the portal's pages show beside the API's own answers: the names of what a user reaches, to choose from, and
 * counts and health for the rows of a list, in two statements for all of them. Every statement carries the same
 * conditions as the API's (visibility.ts of credentials and of events); there is no second rule here.
 */
import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import type { PrincipalState } from "../credentials/Principal.ts"
import { seesVault } from "../credentials/visibility.ts"
import { EventsRepo, oldestId } from "../events/EventsRepo.ts"
import { reachesEntity, seesEvent, seesWebhook } from "../events/visibility.ts"
import type { Health } from "../webhooks/Webhook.ts"
import { WebhooksRepo } from "../webhooks/WebhooksRepo.ts"

/** Entities and vaults that a page can choose from; who reaches more names them by id. */
const CHOICES = 2_000
/** Rows of a list that are asked about at once. */
export const AT_ONCE = 100

/** Something to choose, by its name. */
export interface Choice {
  readonly id: string
  readonly name: string
}

/** What a user reaches. */
export interface Reach {
  readonly entities: ReadonlyArray<Choice>
  /** Vaults where the user has the Developer role. */
  readonly vaults: ReadonlyArray<Choice & { readonly entityId: string; readonly networks: ReadonlyArray<string> }>
  /** Whether there are more than {@link CHOICES} of either. */
  readonly truncated: boolean
}

/** How many webhooks an event matched, and how many of its deliveries are where. */
export interface EventCounts {
  readonly matchedCount: number
  readonly deliveryCounts: Readonly<Record<string, number>>
}

export class Overview extends Effect.Service<Overview>()("custody/portal/Overview", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const webhooks = yield* WebhooksRepo
    const events = yield* EventsRepo

    return {
      reach: (principal: PrincipalState): Effect.Effect<Reach> =>
        Effect.gen(function* () {
          const entities = yield* sql<Choice>`
            SELECT e.id, e.name FROM entities e
            WHERE e.organization_id = ${principal.organizationId} AND ${reachesEntity(sql, principal, sql.literal("e.id"))}
            ORDER BY e.name, e.id LIMIT ${CHOICES + 1}`
          const vaults = yield* sql<Reach["vaults"][number]>`
            SELECT v.id, v.label AS name, v.entity_id AS "entityId", v.networks FROM vaults v
            WHERE v.organization_id = ${principal.organizationId} AND ${seesVault(sql, principal, sql.literal("v.id"))}
            ORDER BY v.label, v.id LIMIT ${CHOICES + 1}`
          return {
            entities: entities.slice(0, CHOICES),
            vaults: vaults.slice(0, CHOICES),
            truncated: entities.length > CHOICES || vaults.length > CHOICES
          }
        }).pipe(Effect.orDie),

      /** The counts of those events that the user sees, by id. */
      eventCounts: (principal: PrincipalState, ids: ReadonlyArray<string>): Effect.Effect<Readonly<Record<string, EventCounts>>> =>
        Effect.gen(function* () {
          const asked = sql`e.id = ANY(${ids}) AND e.id >= ${oldestId("evt")} AND ${seesEvent(sql, principal)}`
          const seen = yield* sql<{ id: string; matchedCount: number }>`
            SELECT e.id, e.matched_count AS "matchedCount" FROM events e WHERE ${asked}`
          const counts = yield* sql<{ id: string; status: string; count: number }>`
            SELECT d.event_id AS id, d.status, count(*) AS count FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
            WHERE d.event_id = ANY(${seen.map(({ id }) => id)}) AND d.id >= ${oldestId("del")} AND ${seesWebhook(sql, principal)}
            GROUP BY d.event_id, d.status`
          const byEvent = Map.groupBy(counts, ({ id }) => id)
          return Object.fromEntries(
            seen.map(({ id, matchedCount }) => [
              id,
              { matchedCount, deliveryCounts: Object.fromEntries((byEvent.get(id) ?? []).map(({ count, status }) => [status, count])) }
            ])
          )
        }).pipe(Effect.orDie),

      /** The health of those webhooks that the user sees, by id. */
      webhookHealth: (principal: PrincipalState, ids: ReadonlyArray<string>): Effect.Effect<Readonly<Record<string, Health>>> =>
        Effect.gen(function* () {
          const seen = yield* sql<{ id: string }>`
            SELECT w.id FROM webhooks w WHERE w.id = ANY(${ids}) AND w.deleted_at IS NULL AND ${seesWebhook(sql, principal)}`
          return yield* webhooks.health(seen.map(({ id }) => id))
        }).pipe(Effect.orDie),

      /** The text of an event's envelope, byte for byte as it is sent. */
      payload: (principal: PrincipalState, eventId: string): Effect.Effect<Option.Option<string>> =>
        Effect.map(
          events.find(principal, eventId),
          Option.map(({ payload }) => payload)
        )
    }
  })
}) {
  static readonly layer = this.Default
}
