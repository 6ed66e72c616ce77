/**
 * Reads of deliveries. Filters by status and kind use one index range per status, so a rare one is found as fast among a
 * million as among ten. A webhook's list contains the deliveries whose events the caller can see. If the newest are not all
 * visible, a bounded number of them is searched, and then the index of each vault that the caller can see, so the cost does
 * not depend on how few are visible. With thousands of deliveries of events without a vault, a page may end early. Spec: Delivery.
 * Decisions D-8, D-9.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { callerOf, type PrincipalState } from "../../access/credentials/Principal.ts"
import { allows, seesEvent, seesVault, seesWebhook } from "../../access/visibility/visibility.ts"
import { names as kinds } from "../../events/log/Kind.ts"
import { DELIVERY_SLACK_MS, oldestDelivery, oldestId, WITHOUT_VAULT } from "../../events/log/logWindow.ts"
import { recentPages } from "../../events/log/recentPages.ts"
import { type Key, type Searched, upToLast } from "../../http/Page.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { DirectRows } from "../../runtime/database/pgWorkarounds.ts"
import { and } from "../../runtime/database/sql.ts"
import { upToBytes } from "../../runtime/database/upToBytes.ts"
import * as Id from "../../values/Id.ts"
import { type Delivery, type DeliveryFilter, statuses } from "./Delivery.ts"
import { castDeliveries, columns, deliveryOf, type Examined } from "./deliveryRows.ts"

/**
 * An attempt without an outcome for this long has lost its worker: it is shown as interrupted, even before the next
 * attempt closes it.
 */
const UNFINISHED = "1 minute"

/** Deliveries of a webhook that are searched for visible ones before each of the caller's vaults is. */
const EXAMINED = 3_000

/** Deliveries of three days are searched first: an id may be as old as its creation less the slack. */
const recent = { searchMs: DELIVERY_SLACK_MS + 86_400_000, slackMs: DELIVERY_SLACK_MS }

const decodeExamined = decodeRows(Schema.Struct({ examined: Schema.Number, ids: Schema.Array(Schema.String) })),
  decodeIds = decodeRows(Schema.Struct({ id: Schema.String })),
  decodePlaces = decodeRows(Schema.Struct({ id: Schema.String, createdAt: Schema.String }))

/** A timestamp in JSON, as in all responses. */
const ISO = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'

/**
 * True for a row of `deliveries d` whose event the principal can see; visibility of the webhook is a separate condition.
 * The event's entity is one of the webhook's, so the vault decides. A delivery without a vault belongs to an event
 * without one, or is older than the column: then the event itself decides. It is looked up by a scalar subquery: for EXISTS, Postgres
 * may hash every event that the principal can see. Decision D-8.
 */
const seesDelivery = (sql: SqlClient.SqlClient, principal: PrincipalState) => sql`
  d.event_id >= ${oldestId("evt")}
  AND CASE WHEN d.vault_id IS NULL THEN coalesce((SELECT ${seesEvent(sql, principal)} FROM events e WHERE e.id = d.event_id), false)
      ELSE ${seesVault(sql, principal, sql.literal("d.vault_id"))} END`

const keyOf = ({ createdAt, id }: Examined): Key => [createdAt, id]

export class DeliveriesRepo extends Effect.Service<DeliveriesRepo>()("custody/DeliveriesRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const direct = yield* DirectRows
    const recentPage = recentPages(recent)

    /**
     * The deliveries of a query with their attempts, newest first, without attempts that may still be in flight: as many as a
     * page has, or up to `bytes`. One statement, so that a delivery and its attempts are consistent. No id is below `from`.
     */
    const withAttempts = (rows: Statement.Fragment, from = oldestId("del"), bytes?: number) => {
      const sized = sql`
      SELECT d.*, a.attempts, octet_length(a.attempts::text) + 500 AS size FROM (${rows}) d CROSS JOIN LATERAL (
        SELECT coalesce(json_agg(json_build_object('at', to_char(t.at AT TIME ZONE 'UTC', ${ISO}),
          'result', coalesce(t.result, 'interrupted'), 'httpStatus', t.http_status, 'latencyMs', t.latency_ms, 'bodySnippet', t.body_snippet,
          'detail', t.detail) ORDER BY t.number), '[]') AS attempts
        FROM delivery_attempts t WHERE t.delivery_id = d.id AND t.delivery_id >= ${from}
          AND (t.result IS NOT NULL OR t.at < clock_timestamp() - ${UNFINISHED}::interval)) a`
      return castDeliveries(direct.query(upToBytes(sql, sized, '"createdAt" DESC, id DESC', bytes)))
    }

    const newest = (shown: Statement.Fragment, where: Statement.Fragment, take: number) => sql`
      SELECT ${shown} FROM deliveries d WHERE ${where} ORDER BY d.created_at DESC, d.id DESC LIMIT ${take}`

    /** Rows of one text each. Not an array: Postgres does not know an array's length and would plan each execution again. */
    const valuesOf = (texts: ReadonlyArray<string>) => sql`(VALUES ${sql.csv(texts.map((text) => sql`(${text}::text)`))})`

    /** The part of the list in the filter's time range, after the previous page; none if the caller cannot see the webhook. */
    const within = (principal: PrincipalState, webhookId: string, filter: DeliveryFilter, after: Key | null, from: string) =>
      and(
        sql,
        sql`d.id >= ${from}`,
        sql`EXISTS (SELECT 1 FROM webhooks w WHERE w.id = ${webhookId} AND w.deleted_at IS NULL AND ${seesWebhook(sql, principal)})`,
        filter.createdAfter !== undefined && sql`d.created_at >= ${filter.createdAfter}::timestamptz`,
        filter.createdBefore !== undefined && sql`d.created_at <= ${filter.createdBefore}::timestamptz`,
        after !== null && sql`(d.created_at, d.id) < (${after[0]}::timestamptz, ${after[1]})`
      )

    const matching = ({ kind, status }: DeliveryFilter) =>
      and(sql, status !== undefined && sql`d.status = ANY(${status}::text[])`, kind !== undefined && sql`d.kind = ${kind}`)

    /** The newest by the index of the webhook, of the event, or of each status, with the kind if the filter has one. */
    const filtered = (shown: Statement.Fragment, webhookId: string, filter: DeliveryFilter, common: Statement.Fragment, take: number) => {
      const { eventId, kind, sequence, status } = filter
      if (sequence !== undefined) {
        const rest = and(sql, eventId !== undefined && sql`d.event_id = ${eventId}`)
        return newest(
          shown,
          sql`(d.webhook_id || '/' || d.sequence::text) = ${webhookId}::text || '/' || ${sequence}::bigint ${common} ${rest} ${matching(filter)}`,
          take
        )
      }
      if (eventId !== undefined)
        return newest(
          shown,
          sql`d.event_id = ${eventId} AND d.id >= ${oldestDelivery(eventId)} AND d.webhook_id = ${webhookId} ${common} ${matching(filter)}`,
          take
        )
      if (status === undefined && kind === undefined) return newest(shown, sql`d.webhook_id = ${webhookId} ${common}`, take)
      const range =
        kind === undefined
          ? sql`(d.webhook_id || '/' || d.status) = ${webhookId}::text || '/' || s.status`
          : sql`(d.webhook_id || '/' || d.status || '/' || d.kind) = ${webhookId}::text || '/' || s.status || '/' || ${kind}::text`
      return sql`
        SELECT found.* FROM ${valuesOf([...new Set(status ?? statuses)])} s (status)
        CROSS JOIN LATERAL (${newest(shown, sql`${range} ${common}`, take)}) found
        ORDER BY "createdAt" DESC, id DESC LIMIT ${take}`
    }

    /** The visible ones of the newest {@link EXAMINED}, by id; undefined if they do not fill the page and there are more. */
    const examine = (principal: PrincipalState, webhookId: string, filter: DeliveryFilter, common: Statement.Fragment, take: number) => {
      const shown = sql`d.id, d.created_at AS "createdAt", (${seesDelivery(sql, principal)}) AS seen`
      return Effect.map(
        decodeExamined(sql`
          WITH newest AS MATERIALIZED (${filtered(shown, webhookId, filter, common, EXAMINED)})
          SELECT (SELECT count(*) FROM newest)::int AS examined,
            ARRAY(SELECT id FROM newest WHERE seen ORDER BY "createdAt" DESC, id DESC LIMIT ${take})::text[] AS ids`),
        ([row]) => (row === undefined || (row.ids.length < take && row.examined === EXAMINED) ? undefined : { ids: row.ids, place: null })
      )
    }

    /** Up to where a page searches: the delivery at which it has looked at enough without a vault; null if there are fewer. */
    const searchedTo = (webhookId: string, common: Statement.Fragment) =>
      Effect.map(
        decodePlaces(sql`
          SELECT d.id, d.created_at AS "createdAt" FROM deliveries d
          WHERE (d.webhook_id || '/' || coalesce(d.vault_id, '')) = ${webhookId}::text || '/' ${common}
          ORDER BY d.created_at DESC, d.id DESC OFFSET ${WITHOUT_VAULT - 1} LIMIT 1`),
        ([last]): Key | null => (last === undefined ? null : [last.createdAt, last.id])
      )

    /** The newest of each vault that the caller can see, and of events without a vault, by id, and where the search ended. */
    const alongVaults = Effect.fnUntraced(function* (
      principal: PrincipalState,
      webhookId: string,
      filter: DeliveryFilter,
      all: Statement.Fragment,
      take: number
    ) {
      const { kind, status } = filter
      // An owner sees every event without a vault, unless the key has an allowlist.
      const end = principal.isOwner && principal.vaultAllowlist === null ? null : yield* searchedTo(webhookId, all)
      const common = end === null ? all : sql`${all} AND (d.created_at, d.id) >= (${end[0]}::timestamptz, ${end[1]})`
      const keys = (vaultId: Statement.Fragment, seen: Statement.Fragment) => {
        const vault = sql`(d.webhook_id || '/' || coalesce(d.vault_id, ''))`
        const keysOf = (range: Statement.Fragment) => newest(sql`d.id, d.created_at`, sql`${range} ${seen} ${common}`, take)
        if (status === undefined && kind === undefined) return keysOf(sql`${vault} = ${webhookId}::text || '/' || ${vaultId}`)
        return sql`
          SELECT found.* FROM ${valuesOf([...new Set(status ?? statuses)])} s (status) CROSS JOIN ${valuesOf(kind === undefined ? kinds : [kind])} k (kind)
          CROSS JOIN LATERAL (${keysOf(
            sql`(d.webhook_id || '/' || coalesce(d.vault_id, '') || '/' || d.status || '/' || d.kind)
              = ${webhookId}::text || '/' || ${vaultId} || '/' || s.status || '/' || k.kind`
          )}) found`
      }
      const found = yield* decodeIds(sql`
          SELECT id FROM (
            SELECT visible.* FROM vault_roles r CROSS JOIN LATERAL (${keys(sql`r.vault_id`, sql`AND d.event_id >= ${oldestId("evt")}`)}) visible
            WHERE r.user_id = ${principal.userId}
              AND ${allows(sql, principal.vaultAllowlist, sql.literal("r.vault_id"))}
            UNION ALL (${keys(sql`''`, sql`AND ${seesDelivery(sql, principal)}`)})
          ) visible ORDER BY created_at DESC, id DESC LIMIT ${take}`)
      return { ids: found.map(({ id }) => id), place: found.length < take ? end : null }
    })

    /** A page of a webhook's deliveries whose events the caller can see; empty if the caller cannot see the webhook. */
    const ofWebhook = Effect.fnUntraced(function* (
      principal: PrincipalState,
      webhookId: string,
      filter: DeliveryFilter,
      after: Key | null,
      take: number
    ) {
      const { createdBefore, eventId, sequence } = filter
      const common = (from = oldestId("del")) => within(principal, webhookId, filter, after, from)
      // All deliveries of one event are visible, or none is.
      const seen =
        eventId === undefined
          ? seesDelivery(sql, principal)
          : sql`EXISTS (SELECT 1 FROM events e WHERE e.id = ${eventId} AND e.id >= ${oldestId("evt")} AND ${seesEvent(sql, principal)})`
      const shown = sql`${sql.literal(columns)}, (${seen}) AS seen`
      const newestFrom = (from?: string) => withAttempts(filtered(shown, webhookId, filter, common(from), take), from)
      const inRecent =
        eventId === undefined && sequence === undefined
          ? yield* recentPage({
              caller: JSON.stringify([callerOf(principal), webhookId, filter]),
              before: [after?.[0], createdBefore],
              take,
              search: (since) => newestFrom(Id.floor("del", since)),
              timeOf: ({ createdAt }) => createdAt
            })
          : undefined
      const found = inRecent ?? (yield* newestFrom())
      const page = upToLast(found, keyOf)
      const visible = found.filter((row) => row.seen)
      if (visible.length === found.length) return page
      if (eventId !== undefined || (page.place === null && found.length < take)) return { rows: visible, place: null }
      const { ids, place } =
        (yield* examine(principal, webhookId, filter, common(), take)) ?? (yield* alongVaults(principal, webhookId, filter, common(), take))
      const rows = sql`SELECT ${sql.literal(columns)}, true AS seen FROM deliveries d WHERE d.id = ANY(${ids}::text[])`
      const seenRows = upToLast(yield* withAttempts(rows), keyOf)
      return { ...seenRows, place: seenRows.place ?? place }
    })

    return {
      /** A page of a webhook's deliveries whose events the caller can see; empty if the caller cannot see the webhook. */
      ofWebhook: (
        principal: PrincipalState,
        webhookId: string,
        filter: DeliveryFilter,
        after: Key | null,
        take: number
      ): Effect.Effect<Searched<Delivery>> =>
        Effect.orDie(
          Effect.map(ofWebhook(principal, webhookId, filter, after, take), ({ place, rows }) => ({ rows: rows.map(deliveryOf), place }))
        ),

      /** Every delivery of an event to webhooks that the caller can see, including deleted ones, newest first. */
      ofEvent: (principal: PrincipalState, eventId: string): Effect.Effect<ReadonlyArray<Delivery>> =>
        Effect.orDie(
          Effect.map(
            withAttempts(
              sql`
              SELECT ${sql.literal(columns)}, true AS seen FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
              WHERE d.event_id = ${eventId} AND d.id >= ${oldestId("del")} AND d.id >= ${oldestDelivery(eventId)} AND ${seesWebhook(sql, principal)}`,
              undefined,
              Number.MAX_SAFE_INTEGER
            ),
            (rows) => rows.map(deliveryOf)
          )
        )
    }
  })
}) {
  static readonly layer = this.Default
}
