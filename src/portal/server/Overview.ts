/**
 * Data that the portal's pages show in addition to the API's responses: names of the objects that a user can see, for
 * selection, and counts and health for the rows of a list, in two statements for all of them. Every statement has the same
 * conditions as the API's (access/visibility.ts); no access rule is duplicated here.
 */

import * as SqlClient from "@effect/sql/SqlClient"
import { Array as Arr, Effect, Option, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { reachesEntity, seesEvent, seesVault, seesWebhook } from "../../access/visibility/visibility.ts"
import type { ReceivedEvent } from "../../client/receivedEvent.ts"
import type { Health } from "../../delivery/webhooks/Webhook.ts"
import { WebhooksRepo } from "../../delivery/webhooks/WebhooksRepo.ts"
import { EventsRepo } from "../../events/log/EventsRepo.ts"
import { oldestId } from "../../events/log/logWindow.ts"
import { databaseTime } from "../../runtime/database/databaseTime.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"

/** Most entities and vaults that a page offers; users with more enter ids. */
const CHOICES = 2_000
/** Most ids that a request may name. */
export const IDS_PER_REQUEST = 100

/** A selectable object with its name. */
const Choice = Schema.Struct({ id: Schema.String, name: Schema.String })
/** A selectable vault. */
const VaultChoice = Schema.Struct({ ...Choice.fields, entityId: Schema.String, networks: Schema.Array(Schema.String) })

/** The entities and vaults that a user can see. */
export const VisibleNames = Schema.Struct({
  entities: Schema.Array(Choice),
  /** Vaults where the user has the Developer role. */
  vaults: Schema.Array(VaultChoice)
})

/** How many webhooks an event matched, and its deliveries by status. */
export const EventCounts = Schema.Struct({
  matchedCount: Schema.Number,
  deliveryCounts: Schema.Record({ key: Schema.String, value: Schema.Number })
})
export type EventCounts = typeof EventCounts.Type

/** The name of an asset. */
export const AssetName = Schema.Struct({ symbol: Schema.String, name: Schema.String, decimals: Schema.Number })
export type AssetName = typeof AssetName.Type

/**
 * The name of a person, key or webhook of the audit log. `webhookId` is the webhook that it is or belongs to, null once deleted;
 * `userId` is the user of a key.
 */
export const AuditName = Schema.Struct({
  name: Schema.String,
  webhookId: Schema.NullOr(Schema.String),
  userId: Schema.NullOr(Schema.String)
})
export type AuditName = typeof AuditName.Type

/** Results of attempts, as {@link Traffic} counts them. */
export const results = ["succeeded", "rejected", "errored", "unanswered"] as const

/** Attempts of a webhook per time step. */
export const Traffic = Schema.Struct({
  /** Beginning of the first step, UTC ISO 8601. */
  from: Schema.String,
  stepSeconds: Schema.Number,
  /** Attempts that were answered 2xx, 3xx or 4xx, 5xx, and not at all, by step. */
  succeeded: Schema.Array(Schema.Number),
  rejected: Schema.Array(Schema.Number),
  errored: Schema.Array(Schema.Number),
  unanswered: Schema.Array(Schema.Number)
})
export type Traffic = typeof Traffic.Type

/** The ranges of charts: number of steps, seconds per step, and most webhooks that a request may name: lists show the last day. */
export const spans = {
  "24h": { steps: 48, seconds: 1_800, webhooks: IDS_PER_REQUEST },
  "7d": { steps: 84, seconds: 7_200, webhooks: 1 },
  "31d": { steps: 124, seconds: 21_600, webhooks: 1 }
} as const
export type Span = keyof typeof spans

const decodeNames = decodeRows(Schema.Struct({ entities: Schema.String, vaults: Schema.String })),
  decodeIds = decodeRows(Schema.Struct({ id: Schema.String })),
  decodeMatches = decodeRows(Schema.Struct({ id: Schema.String, matchedCount: Schema.Number })),
  decodeCounts = decodeRows(Schema.Struct({ id: Schema.String, status: Schema.String, count: Schema.Number })),
  decodePayloads = decodeRows(Schema.Struct({ id: Schema.String, payload: Schema.String })),
  decodeAuditNames = decodeRows(Schema.Struct({ id: Schema.String, ...AuditName.fields })),
  decodeAssets = decodeRows(Schema.Struct({ id: Schema.String, ...AssetName.fields })),
  decodeTraffic = decodeRows(Schema.Struct({ traffic: Schema.String }))

export class Overview extends Effect.Service<Overview>()("custody/portal/Overview", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const webhooks = yield* WebhooksRepo
    const events = yield* EventsRepo

    return {
      /**
       * The entities and vaults that the user can see, both as JSON text ({@link VisibleNames}): decoding and encoding thousands of
       * names one by one would stop the event loop for everybody.
       */
      visibleNames: (principal: PrincipalState) =>
        Effect.flatMap(
          decodeNames(sql`
            SELECT to_json(ARRAY(SELECT e FROM (
                SELECT e.id, e.name FROM entities e
                WHERE e.organization_id = ${principal.organizationId} AND ${reachesEntity(sql, principal, sql.literal("e.id"))}
                ORDER BY e.name, e.id LIMIT ${CHOICES}) e))::text AS entities,
              to_json(ARRAY(SELECT v FROM (
                SELECT v.id, v.label AS name, v.entity_id AS "entityId", v.networks FROM vaults v
                WHERE v.organization_id = ${principal.organizationId} AND ${seesVault(sql, principal, sql.literal("v.id"))}
                ORDER BY v.label, v.id LIMIT ${CHOICES}) v))::text AS vaults`),
          Arr.head
        ).pipe(Effect.orDie),

      /** Counts of the events that the user can see, by id. */
      eventCounts: (principal: PrincipalState, ids: ReadonlyArray<string>): Effect.Effect<Readonly<Record<string, EventCounts>>> =>
        Effect.gen(function* () {
          const asked = sql`e.id = ANY(${ids}) AND e.id >= ${oldestId("evt")} AND ${seesEvent(sql, principal)}`
          const seen = yield* decodeMatches(sql`
            SELECT e.id, coalesce(x.matched_count, 0) AS "matchedCount" FROM events e LEFT JOIN event_dispatches x ON x.event_id = e.id WHERE ${asked}`)
          const counts = yield* decodeCounts(sql`
            SELECT d.event_id AS id, d.status, count(*) AS count FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
            WHERE d.event_id = ANY(${seen.map(({ id }) => id)}) AND d.id >= ${oldestId("del")} AND ${seesWebhook(sql, principal)}
            GROUP BY d.event_id, d.status`)
          const byEvent = Map.groupBy(counts, ({ id }) => id)
          return Object.fromEntries(
            seen.map(({ id, matchedCount }) => [
              id,
              { matchedCount, deliveryCounts: Object.fromEntries((byEvent.get(id) ?? []).map(({ count, status }) => [status, count])) }
            ])
          )
        }).pipe(Effect.orDie),

      /** Health of the webhooks that the user can see, by id. */
      webhookHealth: (principal: PrincipalState, ids: ReadonlyArray<string>): Effect.Effect<Readonly<Record<string, Health>>> =>
        Effect.gen(function* () {
          const seen = yield* decodeIds(sql`
            SELECT w.id FROM webhooks w WHERE w.id = ANY(${ids}) AND w.deleted_at IS NULL AND ${seesWebhook(sql, principal)}`)
          return yield* webhooks.health(seen.map(({ id }) => id))
        }).pipe(Effect.orDie),

      /** Data of the events that the user can see, by id: what each is about. */
      eventData: (principal: PrincipalState, ids: ReadonlyArray<string>): Effect.Effect<Readonly<Record<string, ReceivedEvent["data"]>>> =>
        Effect.orDie(
          Effect.map(
            decodePayloads(sql`
              SELECT e.id, e.payload FROM events e WHERE e.id = ANY(${ids}) AND e.id >= ${oldestId("evt")} AND ${seesEvent(sql, principal)}`),
            (rows) => Object.fromEntries(rows.map(({ id, payload }) => [id, JSON.parse(payload).data]))
          )
        ),

      /** Names of what the audit log mentions, by id; for owners, as the log itself. Decision D-50. */
      auditNames: (principal: PrincipalState, ids: ReadonlyArray<string>): Effect.Effect<Readonly<Record<string, AuditName>>> => {
        if (!principal.isOwner) return Effect.succeed({})
        const ofWebhook =
          sql.literal(`CASE WHEN w.description = '' THEN substring(w.url FROM '^https://([^/?#]+)') ELSE w.description END AS name,
          CASE WHEN w.deleted_at IS NULL THEN w.id END AS "webhookId", NULL AS "userId" FROM webhooks w`)
        const its = sql`w.organization_id = ${principal.organizationId}`
        return Effect.orDie(
          Effect.map(
            decodeAuditNames(sql`
              SELECT u.id, u.name, NULL AS "webhookId", NULL AS "userId" FROM users u
              WHERE u.id = ANY(${ids}) AND u.organization_id = ${principal.organizationId}
              UNION ALL SELECT k.id, CASE WHEN k.label = '' THEN k.hint ELSE k.label END, NULL, k.user_id FROM api_keys k JOIN users u ON u.id = k.user_id
              WHERE k.id = ANY(${ids}) AND u.organization_id = ${principal.organizationId}
              UNION ALL SELECT o.id, o.name, NULL, NULL FROM organizations o WHERE o.id = ANY(${ids}) AND o.id = ${principal.organizationId}
              UNION ALL SELECT w.id, ${ofWebhook} WHERE w.id = ANY(${ids}) AND ${its}
              UNION ALL SELECT d.id, ${ofWebhook} JOIN deliveries d ON d.webhook_id = w.id
              WHERE d.id = ANY(${ids}) AND d.id >= ${oldestId("del")} AND ${its}
              UNION ALL SELECT r.id, ${ofWebhook} JOIN recoveries r ON r.webhook_id = w.id WHERE r.id = ANY(${ids}) AND ${its}`),
            (rows) => Object.fromEntries(rows.map(({ id, ...name }) => [id, name]))
          )
        )
      },

      /** Names of assets on the networks of the user's organization, by id. */
      assetNames: (principal: PrincipalState, ids: ReadonlyArray<string>): Effect.Effect<Readonly<Record<string, AssetName>>> =>
        Effect.orDie(
          Effect.map(
            decodeAssets(sql`
              SELECT a.id, a.symbol, a.name, a.decimals FROM assets a
              WHERE a.id = ANY(${ids})
                AND a.network = ANY((SELECT o.networks FROM organizations o WHERE o.id = ${principal.organizationId})::text[])`),
            (rows) => Object.fromEntries(rows.map(({ id, ...name }) => [id, name]))
          )
        ),

      /**
       * Attempts of the webhooks that the user can see, over a time range, by id, as JSON text ({@link Traffic}): of a hundred
       * webhooks there are thousands of numbers. Reads counters, never deliveries.
       */
      traffic: (principal: PrincipalState, ids: ReadonlyArray<string>, span: Span): Effect.Effect<string> =>
        Effect.gen(function* () {
          const { seconds, steps } = spans[span]
          const from = (Math.floor((yield* databaseTime(sql)) / 1_000 / seconds) - steps + 1) * seconds
          const each = (of: (name: (typeof results)[number]) => string) =>
            sql.literal(results.map((name) => `${of(name)} AS ${name}`).join(", "))
          const [found] = yield* decodeTraffic(sql`
            SELECT coalesce(json_object_agg(w.id, t), '{}')::text AS traffic
            FROM webhooks w CROSS JOIN LATERAL (
              SELECT ${new Date(from * 1_000).toISOString()}::text AS "from", ${seconds}::int AS "stepSeconds",
                ${each((name) => `array_agg(coalesce(c.${name}, 0) ORDER BY n)`)}
              FROM generate_series(0, ${steps - 1}::int) n LEFT JOIN (
                SELECT floor((extract(epoch FROM c.slot) - ${from}) / ${seconds}::int)::int AS step, ${each((name) => `sum(c.${name})`)}
                FROM webhook_counters c WHERE c.webhook_id = w.id AND c.slot >= to_timestamp(${from}) GROUP BY step) c ON c.step = n) t
            WHERE w.id = ANY(${ids}) AND w.deleted_at IS NULL AND ${seesWebhook(sql, principal)}`)
          return found?.traffic ?? "{}"
        }).pipe(Effect.orDie),

      /** The text of an event's envelope, exactly as it is sent. */
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
