/**
 * Reads of the event log. Payloads are returned as the recorded text, never parsed and serialized again. A list first
 * searches the newest events of the page's last day, then a bounded number of the organization's newest. If neither fills
 * the page, it searches each vault that the caller can see, by each entity that the vault has belonged to. So the cost
 * depends neither on the length of the log nor on the filters nor on how little of it the caller can see. With thousands of
 * events without a vault, a page may end early. Spec: List webhook events. Decisions D-2, D-9, D-28, D-31.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Schema } from "effect"
import { callerOf, type PrincipalState } from "../../access/credentials/Principal.ts"
import { allows, reachesEntity, seesEvent, seesWebhook } from "../../access/visibility/visibility.ts"
import type { Key, Searched } from "../../http/Page.ts"
import { inPeriod, type Period } from "../../http/Period.ts"
import { castRows, decodeRows } from "../../runtime/database/decodeRows.ts"
import { DirectRows } from "../../runtime/database/pgWorkarounds.ts"
import { and } from "../../runtime/database/sql.ts"
import * as Id from "../../values/Id.ts"
import { oldestDelivery, oldestId, WITHOUT_VAULT } from "./logWindow.ts"
import { recentPages } from "./recentPages.ts"

/** Filters of the list. */
export interface EventFilter extends Period {
  readonly kind?: string | undefined
  readonly vaultId?: string | undefined
  readonly entityId?: string | undefined
}

const EventRow = Schema.Struct({
  id: Schema.String,
  entityId: Schema.String,
  vaultId: Schema.NullOr(Schema.String),
  kind: Schema.String,
  schemaVersion: Schema.Number,
  payload: Schema.String,
  occurredAt: Schema.String,
  dispatchedAt: Schema.NullOr(Schema.String),
  createdAt: Schema.String,
  matchedCount: Schema.Number
})
export type EventRow = typeof EventRow.Type

/** Decodes rows of {@link eventColumns}. */
export const decodeEvents = decodeRows(EventRow)

// Pages are not decoded: the list is one of the most frequent reads.
const castEvents = castRows(EventRow),
  decodeCounted = decodeRows(Schema.Struct({ ...EventRow.fields, counts: Schema.Record({ key: Schema.String, value: Schema.Number }) })),
  decodeCounts = decodeRows(Schema.Struct({ count: Schema.Number })),
  decodePlaces = decodeRows(Schema.Struct({ occurredAt: Schema.String, id: Schema.String }))

/** A caller who sees more vaults than this probably sees much of the organization's log. */
const FEW_VAULTS = 32
/** Events of the organization that are searched for such a caller before each vault is. */
const LOOK = 3_000
/** The same for callers who see few vaults, per requested event: the search rarely succeeds for them. */
const LOOK_FEW = 4

/**
 * Events of the last day are searched first. An event's time may be later than its id by the milliseconds of a batch, or by
 * up to an hour if Postgres's clock was set back.
 */
const recent = { searchMs: 86_400_000, slackMs: 3_600_000 }

/** The columns of an {@link EventRow}, of `events e`. */
export const eventColumns = `e.id, e.entity_id AS "entityId", e.vault_id AS "vaultId", e.kind, e.schema_version AS "schemaVersion", e.payload,
  e.occurred_at AS "occurredAt", coalesce(e.dispatched_at, x.dispatched_at) AS "dispatchedAt", e.created_at AS "createdAt",
  coalesce(x.matched_count, 0) AS "matchedCount"`

/**
 * The join that {@link eventColumns} needs besides `events e`: when and how an event was dispatched. A statement about one
 * event adds its id; otherwise, Postgres would open every day's table.
 */
export const withDispatch = "LEFT JOIN event_dispatches x ON x.event_id = e.id"

/** An event as JSON text; `more` are additional members. */
export const eventJson = (row: EventRow, more = ""): string =>
  `{"id":${JSON.stringify(row.id)},"entityId":${JSON.stringify(row.entityId)},"vaultIds":${row.vaultId === null ? "null" : JSON.stringify([row.vaultId])},` +
  `"kind":${JSON.stringify(row.kind)},"schemaVersion":${row.schemaVersion},"payload":${row.payload},"occurredAt":"${row.occurredAt}",` +
  `"dispatchedAt":${row.dispatchedAt === null ? "null" : `"${row.dispatchedAt}"`},"createdAt":"${row.createdAt}"${more}}`

export class EventsRepo extends Effect.Service<EventsRepo>()("custody/EventsRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const direct = yield* DirectRows
    const recentPage = recentPages(recent)

    const page = (statement: Statement.Statement<object>) => castEvents(direct.query(statement))

    /** The part of the log for the requested times, after the previous page. */
    const within = (period: Period, after: Key | null) =>
      sql`${and(
        sql,
        sql`e.id >= ${oldestId("evt")}`,
        after !== null && sql`(e.occurred_at, e.id) < (${after[0]}::timestamptz, ${after[1]})`
      )} ${inPeriod(sql, "e.occurred_at", period)}`

    /** Events by the index over exactly this text: one id or several, and optionally the kind. */
    const indexRange = (column: string, text: Statement.Fragment, kind: string | undefined) =>
      kind === undefined
        ? sql`(${sql.literal(column)}) = ${text}`
        : sql`(${sql.literal(column)} || '/' || e.kind) = ${text} || '/' || ${kind}::text`

    const seesMany = Effect.fnUntraced(function* ({ userId, vaultAllowlist }: PrincipalState) {
      if (vaultAllowlist !== null && vaultAllowlist.length <= FEW_VAULTS) return false
      const rows = yield* sql`SELECT 1 FROM vault_roles WHERE user_id = ${userId} LIMIT ${FEW_VAULTS + 1}`
      return rows.length > FEW_VAULTS
    })

    /** The keys of a page, newest first, because payloads are long. */
    const keys = (where: Statement.Fragment, take: number) => sql`
      SELECT e.id, e.occurred_at FROM events e WHERE ${where} ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${take}`

    /** Up to where a page searches: the event at which it has looked at enough without a vault; null if there are fewer. */
    const searchedTo = (principal: PrincipalState, { entityId, kind }: EventFilter, common: Statement.Fragment) =>
      Effect.map(
        decodePlaces(sql`
          SELECT e.occurred_at AS "occurredAt", e.id FROM events e WHERE e.vault_id IS NULL ${common} AND ${
            entityId === undefined
              ? indexRange("'/' || e.organization_id", sql`'/' || ${principal.organizationId}::text`, kind)
              : indexRange("'/' || e.entity_id", sql`'/' || ${entityId}::text`, kind)
          } ORDER BY e.occurred_at DESC, e.id DESC OFFSET ${WITHOUT_VAULT - 1} LIMIT 1`),
        ([last]): Key | null => (last === undefined ? null : [last.occurredAt, last.id])
      )

    /** The newest events without a vault that the caller can see, of one entity or of every entity that the caller can access. */
    const withoutVault = (principal: PrincipalState, { entityId, kind }: EventFilter, common: Statement.Fragment, take: number) => {
      const rest = sql`e.vault_id IS NULL AND ${seesEvent(sql, principal)} ${common}`
      if (entityId === undefined && principal.isOwner)
        return keys(sql`${indexRange("'/' || e.organization_id", sql`'/' || ${principal.organizationId}::text`, kind)} AND ${rest}`, take)
      const entities =
        entityId === undefined
          ? sql`SELECT DISTINCT r.entity_id FROM vault_roles r WHERE r.user_id = ${principal.userId}`
          : sql`SELECT ${entityId}::text AS entity_id WHERE ${reachesEntity(sql, principal, sql`${entityId}::text`)}`
      return sql`
        SELECT seen.* FROM (${entities}) n CROSS JOIN LATERAL (
          ${keys(sql`${indexRange("'/' || e.entity_id", sql`'/' || n.entity_id`, kind)} AND ${rest}`, take)}) seen`
    }

    /**
     * The newest events of each vault that the caller can see, or of one, by each of its entities, merged. Access to a
     * vault is checked once, not per event.
     */
    const alongVaults = Effect.fnUntraced(function* (
      principal: PrincipalState,
      filter: EventFilter,
      period: Statement.Fragment,
      take: number
    ) {
      const { entityId, kind, vaultId } = filter
      // An event without a vault needs a key without an allowlist. An owner sees them all.
      const others = vaultId === undefined && principal.vaultAllowlist === null
      const end = others && !principal.isOwner ? yield* searchedTo(principal, filter, period) : null
      const common = end === null ? period : sql`${period} AND (e.occurred_at, e.id) >= (${end[0]}::timestamptz, ${end[1]})`
      const ofVault = indexRange("e.vault_id || '/' || e.entity_id", sql`p.vault_id || '/' || p.entity_id`, kind)
      const named = and(
        sql,
        vaultId !== undefined && sql`r.vault_id = ${vaultId}`,
        entityId !== undefined && sql`p.entity_id = ${entityId}`,
        allows(sql, principal.vaultAllowlist, sql.literal("r.vault_id"))
      )
      const rows = yield* page(sql`
        SELECT ${sql.literal(eventColumns)} FROM (
          SELECT id, occurred_at FROM (
            SELECT seen.* FROM vault_roles r JOIN vault_entities p ON p.vault_id = r.vault_id CROSS JOIN LATERAL (
              ${keys(sql`${ofVault} AND (e.organization_id || '') = ${principal.organizationId} ${common}`, take)}) seen
            WHERE r.user_id = ${principal.userId} ${named}
            ${others ? sql`UNION ALL (${withoutVault(principal, filter, common, take)})` : sql.literal("")}
          ) seen ORDER BY occurred_at DESC, id DESC LIMIT ${take}
        ) newest JOIN events e ON e.id = newest.id ${sql.literal(withDispatch)} ORDER BY e.occurred_at DESC, e.id DESC`)
      return { rows, place: end }
    })

    /**
     * The newest events of the organization or of an entity that the caller can see; undefined if there are more events
     * than were searched.
     */
    const alongNewest = Effect.fnUntraced(function* (
      principal: PrincipalState,
      filter: EventFilter,
      after: Key | null,
      common: Statement.Fragment,
      take: number
    ) {
      const { entityId, kind } = filter
      // There is no index for an entity's kinds: its events of every kind are searched.
      const newest = (recent: Statement.Fragment, most: number) => sql`
        SELECT * FROM events e WHERE ${entityId === undefined ? indexRange("e.organization_id", sql`${principal.organizationId}::text`, kind) : sql`e.entity_id = ${entityId}`} ${common} ${recent}
        ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${most}`
      const visible = (recent: Statement.Fragment, most: number, dispatched: Statement.Fragment) =>
        page(sql`
        SELECT ${sql.literal(eventColumns)} FROM (${newest(recent, most)}) e ${sql.literal(withDispatch)} ${dispatched}
        WHERE ${seesEvent(sql, principal)} ${and(sql, kind !== undefined && sql`e.kind = ${kind}`)}
        ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${take}`)
      const few = LOOK_FEW * take
      const inRecent = yield* recentPage({
        caller: JSON.stringify([callerOf(principal), entityId, kind]),
        before: [after?.[0], filter.occurredBefore, filter.occurredUntil],
        take,
        search: (since) => {
          const from = Id.floor("evt", since)
          return visible(sql`AND e.id >= ${from}`, few, sql`AND x.event_id >= ${from}`)
        },
        timeOf: ({ occurredAt }) => occurredAt
      })
      if (inRecent !== undefined) return inRecent
      const none = sql.literal("")
      const look = (yield* seesMany(principal)) ? LOOK : few
      const found = yield* visible(none, look, none)
      if (found.length === take) return found
      const [looked] = yield* decodeCounts(sql`SELECT count(*) AS count FROM (${newest(none, look)}) e`)
      return looked !== undefined && looked.count < look ? found : undefined
    })

    return {
      /** A page of the events that the caller can see, newest first. */
      list: (
        principal: PrincipalState,
        filter: EventFilter,
        after: Key | null,
        take: number
      ): Effect.Effect<ReadonlyArray<EventRow> | Searched<EventRow>> =>
        Effect.gen(function* () {
          const { vaultId } = filter,
            common = within(filter, after)
          const newest = vaultId === undefined ? yield* alongNewest(principal, filter, after, common, take) : undefined
          return newest ?? (yield* alongVaults(principal, filter, common, take))
        }).pipe(Effect.orDie),

      /** One event that the caller can see. */
      find: (principal: PrincipalState, eventId: string): Effect.Effect<Option.Option<EventRow>> =>
        Effect.orDie(
          Effect.map(
            decodeEvents(sql`
              SELECT ${sql.literal(eventColumns)} FROM events e ${sql.literal(withDispatch)} AND x.event_id = ${eventId}
              WHERE e.id = ${eventId} AND e.id >= ${oldestId("evt")} AND ${seesEvent(sql, principal)}`),
            (rows) => Option.fromNullable(rows[0])
          )
        ),

      /** One event that the caller can see, and the number of its deliveries by status, for webhooks that the caller can see. */
      findCounted: (principal: PrincipalState, eventId: string) =>
        Effect.orDie(
          Effect.map(
            decodeCounted(
              direct.query(sql`
              SELECT ${sql.literal(eventColumns)}, (
                SELECT coalesce(json_object_agg(c.status, c.count), '{}') FROM (
                  SELECT d.status, count(*) AS count FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
                  WHERE d.event_id = ${eventId} AND d.id >= ${oldestDelivery(eventId)} AND ${seesWebhook(sql, principal)} GROUP BY d.status) c) AS counts
              FROM events e ${sql.literal(withDispatch)} AND x.event_id = ${eventId}
              WHERE e.id = ${eventId} AND e.id >= ${oldestId("evt")} AND ${seesEvent(sql, principal)}`)
            ),
            ([row]) =>
              Option.map(Option.fromNullable(row), ({ counts, ...event }) => ({
                event,
                counts: { PENDING: 0, RETRYING: 0, HELD: 0, DELIVERED: 0, FAILED: 0, CANCELED: 0, ...counts }
              }))
          )
        )
    }
  })
}) {
  static readonly layer = this.Default
}
