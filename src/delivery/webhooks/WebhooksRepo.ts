/** Reads of webhooks. Each includes the caller's visibility; none returns deleted webhooks. Decisions D-2, D-8. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Record, Schema, Struct } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { requireManage } from "../../access/visibility/scopeMiddleware.ts"
import { seesWebhook } from "../../access/visibility/visibility.ts"
import { jsonOfRow, type Key, type Searched, upToLast } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import { castRows, decodeRows } from "../../runtime/database/decodeRows.ts"
import { DirectRows } from "../../runtime/database/pgWorkarounds.ts"
import { and } from "../../runtime/database/sql.ts"
import { upToBytes } from "../../runtime/database/upToBytes.ts"
import { ShownOAuth } from "../gateway/oauth.ts"
import { STREAK_ATTEMPTS, STREAK_HOURS } from "./failureStreak.ts"
import { type Health, Webhook, WebhookStatus } from "./Webhook.ts"

/** Columns of `webhooks w` that have no list of ids. */
const short = `w.id, w.url, w.description, w.status, w.disabled_reason AS "disabledReason", w.disabled_at AS "disabledAt",
  w.notification_email AS "notificationEmail",
  (SELECT coalesce(json_agg(json_build_object('name', h.name, 'value', NULL) ORDER BY h.place), '[]')
    FROM unnest(w.header_names) WITH ORDINALITY AS h (name, place)) AS headers,
  w.oauth || '{"clientSecret": null}' AS oauth,
  (SELECT max(s.expires_at) FROM webhook_secrets s WHERE s.webhook_id = w.id AND s.expires_at > clock_timestamp()) AS "previousSecretExpiresAt",
  w.created_at AS "createdAt", w.updated_at AS "updatedAt"`

const entityIds = "ARRAY(SELECT we.entity_id FROM webhook_entities we WHERE we.webhook_id = w.id ORDER BY we.entity_id)::text[]"

/** The columns of `webhooks w` as the API's record. */
export const columns = `${short}, ${entityIds} AS "entityIds", w.event_kinds AS "eventKinds", w.vault_ids AS "vaultIds"`

/** The same with lists of ids as JSON text. */
const texts = `${short}, to_json(${entityIds})::text AS "entityIds", to_json(w.event_kinds)::text AS "eventKinds",
  to_json(w.vault_ids)::text AS "vaultIds"`

/** About the bytes of a webhook's JSON text. The size of stored `vault_ids` is known without reading them. */
const size = `pg_column_size(ROW(w.url, w.description, w.header_names, w.oauth, w.event_kinds, ${entityIds})) + coalesce(pg_column_size(w.vault_ids), 0)`

/** Filters of the list. */
export interface WebhookFilter {
  readonly entityId?: string | undefined
  readonly status?: string | undefined
}

const HealthRow = Schema.Struct({
  id: Schema.String,
  consecutiveFailures: Schema.Number,
  failingSince: Schema.NullOr(Schema.String),
  lastSuccessAt: Schema.NullOr(Schema.String),
  lastFailureAt: Schema.NullOr(Schema.String),
  lastFailureResult: Schema.NullOr(Schema.String),
  pendingDeliveries: Schema.Number,
  /** Whether any deliveries may be HELD. */
  mayHold: Schema.Boolean,
  holding: Schema.Boolean,
  nextProbeAt: Schema.NullOr(Schema.String),
  delivered24h: Schema.Number,
  failed24h: Schema.Number,
  failingLong: Schema.Boolean
})
type HealthRow = typeof HealthRow.Type

const Counts = Schema.Struct({ id: Schema.String, pendingDeliveries: Schema.Number, heldDeliveries: Schema.Number })
type Counts = typeof Counts.Type

/** A webhook of a page. A list of ids is JSON text: there may be 100,000 ids on a page. */
const Listed = Schema.Struct({
  ...Webhook.fields,
  entityIds: Schema.String,
  eventKinds: Schema.String,
  vaultIds: Schema.NullOr(Schema.String),
  behind: Schema.Number
})
type Listed = typeof Listed.Type

const names = Record.keys(Webhook.fields),
  oauthNames = Record.keys(ShownOAuth.fields)

/** A webhook of the API as JSON text. */
export const webhookJson = (row: Listed): string => {
  const { entityIds, eventKinds, oauth, vaultIds } = row
  return jsonOfRow(names, row, { entityIds, eventKinds, vaultIds, oauth: JSON.stringify(oauth, oauthNames) })
}

const pickWebhook = Struct.pick(...Record.keys(Webhook.fields))
const decodeWebhooks = decodeRows(Webhook),
  castListed = castRows(Listed),
  decodeHealth = decodeRows(HealthRow),
  decodeWithHealth = decodeRows(Schema.Struct({ ...Webhook.fields, ...HealthRow.fields })),
  decodeCounts = decodeRows(Counts)

/** Most rows per slot of the counters: one per shard (sending/AttemptsRepo.ts). */
const SHARDS = 8

/** Waiting deliveries are counted up to this, so that an endpoint that has been down for days does not cost more. */
const COUNTED = 100_000

const PENDING = "d.status IN ('PENDING', 'RETRYING')",
  HELD = "d.status = 'HELD'"

/** Health and counters of webhooks `w`. */
const healthJoins = `
  LEFT JOIN webhook_health h ON h.webhook_id = w.id LEFT JOIN webhook_queues q ON q.webhook_id = w.id
  LEFT JOIN LATERAL (SELECT sum(k.delivered) AS delivered, sum(k.failed) AS failed FROM webhook_counters k
    WHERE k.webhook_id = w.id AND k.slot > clock_timestamp() - interval '24 hours') c ON true`

/** The number of deliveries of a webhook `w` with these statuses, up to {@link COUNTED}. */
const counted = (sql: SqlClient.SqlClient, which: string) => sql`
  (SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.webhook_id = w.id AND ${sql.literal(which)} LIMIT ${COUNTED}) counted)`

export class WebhooksRepo extends Effect.Service<WebhooksRepo>()("custody/WebhooksRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const direct = yield* DirectRows
    const healthColumns = sql`coalesce(h.consecutive_failures, 0) AS "consecutiveFailures", h.failing_since AS "failingSince",
      h.last_failure_at AS "lastFailureAt", h.last_failure_result AS "lastFailureResult",
      coalesce(h.consecutive_failures >= ${STREAK_ATTEMPTS}
        AND h.failing_since <= clock_timestamp() - make_interval(hours => ${STREAK_HOURS}), false) AS "failingLong",
      (SELECT max(n.last_success_at) FROM (SELECT c.last_success_at FROM webhook_counters c
        WHERE c.webhook_id = w.id AND c.last_success_at IS NOT NULL ORDER BY c.slot DESC LIMIT ${SHARDS}) n) AS "lastSuccessAt",
      ${counted(sql, PENDING)} AS "pendingDeliveries",
      q.webhook_id IS NOT NULL AS "mayHold", coalesce(q.down, false) AS holding,
      (SELECT q.due FROM webhooks a WHERE a.id = w.id AND a.status = 'ACTIVE' AND q.down) AS "nextProbeAt",
      coalesce(c.delivered, 0) AS "delivered24h", coalesce(c.failed, 0) AS "failed24h"`

    /** Waiting and held deliveries of those that may hold some, by id. A statement of its own: even an empty count opens an index of every day. */
    const held = (rows: ReadonlyArray<HealthRow>) => {
      const holding = rows.filter(({ mayHold }) => mayHold).map(({ id }) => id)
      if (holding.length === 0) return Effect.succeed(new Map<string, Counts>())
      return Effect.map(
        decodeCounts(sql`
          SELECT w.id, ${counted(sql, PENDING)} AS "pendingDeliveries", ${counted(sql, HELD)} AS "heldDeliveries"
          FROM unnest(${holding}::text[]) w (id)`),
        (found) => new Map(found.map((counts) => [counts.id, counts]))
      )
    }

    return {
      list: (principal: PrincipalState, filter: WebhookFilter, after: Key | null, take: number): Effect.Effect<Searched<Listed>> => {
        const { entityId, status } = filter
        // The position of nulls, of which there are none, selects the index by status. If all webhooks have been active so far, Postgres
        // would read all of them to find a paused one.
        const order = sql.literal(
          entityId === undefined && status !== undefined ? "created_at DESC NULLS LAST, id DESC" : "created_at DESC, id DESC"
        )
        const behind = (row: string) => and(sql, after !== null && sql`${sql.literal(row)} < (${after[0]}::timestamptz, ${after[1]})`)
        // For an entity: an index range per status. LIMIT 1: Postgres must look up a webhook by its id, and not read all of them to join.
        const run = (one: string) => sql`
        (SELECT f.created_at, f.webhook_id AS id FROM webhook_entities f
         CROSS JOIN LATERAL (SELECT * FROM webhooks w WHERE w.id = f.webhook_id LIMIT 1) w
         WHERE f.entity_id = ${entityId} AND f.status = ${one} AND ${seesWebhook(sql, principal)} ${behind("(f.created_at, f.webhook_id)")}
         ORDER BY f.created_at DESC, f.webhook_id DESC LIMIT ${take})`
        const found =
          entityId === undefined
            ? sql`SELECT w.created_at, w.id FROM webhooks w WHERE w.deleted_at IS NULL AND ${seesWebhook(sql, principal)}
              ${and(sql, status !== undefined && sql`w.status = ${status}`)} ${behind("(w.created_at, w.id)")} ORDER BY ${order} LIMIT ${take}`
            : sql.join(" UNION ALL ", false)((status === undefined ? WebhookStatus.literals : [status]).map(run))
        const sized = sql`
        SELECT w.*, ${sql.literal(size)} AS size FROM (SELECT created_at, id FROM (${found}) found ORDER BY ${order} LIMIT ${take}) found
        JOIN webhooks w ON w.id = found.id`
        const page = castListed(sql`SELECT ${sql.literal(texts)}, w.behind FROM (${upToBytes(sql, sized, "created_at DESC, id DESC")}) w`)
        return Effect.orDie(Effect.map(page, (rows) => upToLast(rows, ({ createdAt, id }) => [createdAt, id])))
      },

      find: (principal: PrincipalState, webhookId: string): Effect.Effect<Option.Option<Webhook>> =>
        Effect.orDie(
          Effect.map(
            decodeWebhooks(sql`
            SELECT ${sql.literal(columns)} FROM webhooks w
            WHERE w.id = ${webhookId} AND w.deleted_at IS NULL AND ${seesWebhook(sql, principal)}`),
            (rows) => Option.fromNullable(rows[0])
          )
        ),

      /** A webhook and its health. */
      findWithHealth: (principal: PrincipalState, webhookId: string): Effect.Effect<Option.Option<Webhook & { readonly health: Health }>> =>
        Effect.gen(function* () {
          const [row] = yield* decodeWithHealth(
            direct.query(sql`
            SELECT ${sql.literal(columns)}, ${healthColumns} FROM webhooks w ${sql.literal(healthJoins)}
            WHERE w.id = ${webhookId} AND w.deleted_at IS NULL AND ${seesWebhook(sql, principal)}`)
          )
          if (row === undefined) return Option.none()
          const health = healthOf(row, (yield* held([row])).get(row.id))
          return Option.some({ ...pickWebhook(row), health })
        }).pipe(Effect.orDie),

      /** The health counters of webhooks, by id. Counts waiting deliveries and the slots of a day, never history. */
      health: (webhookIds: ReadonlyArray<string>): Effect.Effect<Readonly<Record<string, Health>>> =>
        Effect.gen(function* () {
          const rows = yield* decodeHealth(sql`
          SELECT w.id, ${healthColumns} FROM unnest(${webhookIds}::text[]) w (id) ${sql.literal(healthJoins)}`)
          const counts = yield* held(rows)
          return Object.fromEntries(rows.map((row) => [row.id, healthOf(row, counts.get(row.id))]))
        }).pipe(Effect.orDie)
    }
  })
}) {
  static readonly layer = this.Default
}

/** The webhook. Fails with 404 if the caller cannot see it, then with 403 if the caller may not manage webhooks. */
export const requireManageable = Effect.fn("WebhooksRepo.requireManageable")(function* (
  repo: WebhooksRepo,
  principal: PrincipalState,
  webhookId: string
) {
  const found = yield* repo.find(principal, webhookId)
  if (Option.isNone(found)) return yield* notFound()
  yield* requireManage(principal)
  return found.value
})

const healthOf = (row: HealthRow, counts: Omit<Counts, "id"> = { ...row, heldDeliveries: 0 }): Health => {
  const { heldDeliveries, pendingDeliveries } = counts
  const { consecutiveFailures, failingLong, lastFailureAt, lastSuccessAt } = row
  const succeededLast = lastSuccessAt !== null && (lastFailureAt === null || lastSuccessAt >= lastFailureAt)
  return {
    state: row.holding ? "HOLDING" : consecutiveFailures === 0 ? "HEALTHY" : failingLong ? "FAILING" : "DEGRADED",
    consecutiveFailures,
    failingSince: row.failingSince,
    lastSuccessAt,
    lastFailureAt,
    lastResult: succeededLast ? "2xx" : row.lastFailureResult,
    pendingDeliveries: Math.min(COUNTED, pendingDeliveries + heldDeliveries),
    heldDeliveries,
    nextProbeAt: row.nextProbeAt,
    delivered24h: row.delivered24h,
    failed24h: row.failed24h
  }
}
