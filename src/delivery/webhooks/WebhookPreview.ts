/**
 * Previews what a webhook would have received, before it is created. It first searches a bounded number of the
 * organization's newest events. If that does not settle the count, it uses the indexes of each vault and kind, some at a
 * time. So a statement reads a bounded number of rows, however long the log is and however rare the kinds are. C-7.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { seesEvent } from "../../access/visibility/visibility.ts"
import { decodeEvents, eventColumns, eventJson, withDispatch } from "../../events/log/EventsRepo.ts"
import { oldestId } from "../../events/log/logWindow.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"
import { PREVIEW_LIMIT, type PreviewWebhook } from "./Webhook.ts"
import { requireReadableKinds, requireWebhookScope } from "./webhookScope.ts"

/** Events in the response. */
const SHOWN = 5
/** Events of the organization that are searched. */
const LOOK = 20_000
/** Index ranges per statement: one for each vault and kind. */
const RANGES = 1_000

/** A preview with its entities, also if the body left them out. */
type Previewed = PreviewWebhook & { readonly entityIds: ReadonlyArray<string> }

const Found = Schema.Struct({ id: Schema.String, kind: Schema.String, occurredAt: Schema.String })
type Found = typeof Found.Type
const decodeFound = decodeRows(Found)
/** A match; or, in one row without any, how many events were searched. */
const decodeSearched = decodeRows(
  Schema.Struct({ ...Found.fields, occurredAt: Schema.NullOr(Schema.String), matches: Schema.Boolean, looked: Schema.Number })
)
const decodeTexts = decodeRows(Schema.Struct({ text: Schema.String }))

/** The newest of some events. */
const newestOf = (found: ReadonlyArray<Found>): ReadonlyArray<Found> =>
  found.toSorted((a, b) => (a.occurredAt === b.occurredAt ? (a.id < b.id ? 1 : -1) : a.occurredAt < b.occurredAt ? 1 : -1)).slice(0, SHOWN)

export class WebhookPreview extends Effect.Service<WebhookPreview>()("custody/WebhookPreview", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => {
    /** True for an event that such a webhook matches and that the caller can see. */
    const covered = (principal: PrincipalState, { entityIds, eventKinds, vaultIds }: Previewed): Statement.Fragment => sql`
      e.entity_id = ANY(${entityIds}::text[]) AND e.kind = ANY(${eventKinds}::text[]) AND ${seesEvent(sql, principal)}
      ${and(sql, vaultIds !== null && sql`(e.vault_id IS NULL OR e.vault_id = ANY(${vaultIds}::text[]))`)}`

    /** The newest matches among the organization's newest events, and whether these are all that count. */
    const alongOrganization = Effect.fnUntraced(function* (principal: PrincipalState, body: Previewed) {
      const rows = yield* decodeSearched(sql`
        WITH newest AS MATERIALIZED (
          SELECT e.id, e.kind, e.organization_id, e.entity_id, e.vault_id, e.audience, e.occurred_at FROM events e
          WHERE e.organization_id = ${principal.organizationId} AND e.id >= ${oldestId("evt")}
          ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${LOOK}
        )
        SELECT e.id, e.kind, e.occurred_at AS "occurredAt", true AS matches, 0 AS looked FROM (
          SELECT e.id, e.kind, e.occurred_at FROM newest e WHERE ${covered(principal, body)}
          ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${PREVIEW_LIMIT}) e
        UNION ALL SELECT '', '', NULL, false, count(*) FROM newest`)
      const found = rows.flatMap(({ id, kind, occurredAt }) => (occurredAt === null ? [] : [{ id, kind, occurredAt }]))
      const looked = rows.find(({ matches }) => !matches)?.looked ?? 0
      return { found, isAll: looked < LOOK || found.length === PREVIEW_LIMIT }
    })

    /**
     * The texts by which the indexes find the events of each vault and kind, and those without a vault, with the remaining
     * conditions of each. The caller can see these vaults; the conditions are written so that no other index matches.
     */
    const rangesOf = Effect.fnUntraced(function* (principal: PrincipalState, { entityIds, eventKinds, vaultIds }: Previewed) {
      const pairs = yield* decodeTexts(sql`
        SELECT DISTINCT p.vault_id || '/' || p.entity_id AS text FROM vault_roles r JOIN vault_entities p ON p.vault_id = r.vault_id
        WHERE r.user_id = ${principal.userId} AND p.entity_id = ANY(${entityIds}::text[])
        ${and(sql, vaultIds !== null && sql`p.vault_id = ANY(${vaultIds}::text[])`)}`)
      const parts = (texts: ReadonlyArray<string>, rest: Statement.Fragment) => {
        const ranges = texts.flatMap((text) => eventKinds.map((kind) => `${text}/${kind}`))
        return Array.from({ length: Math.ceil(ranges.length / RANGES) }, (_, part) => ({
          ranges: ranges.slice(part * RANGES, (part + 1) * RANGES),
          rest
        }))
      }
      return [
        ...parts(
          pairs.map(({ text }) => text),
          sql`(e.vault_id || '/' || e.entity_id || '/' || e.kind) = l.text AND e.vault_id IS NOT NULL AND (e.organization_id || '') = ${principal.organizationId}`
        ),
        ...parts(
          entityIds.map((id) => `/${id}`),
          sql`('/' || e.entity_id || '/' || e.kind) = l.text AND e.vault_id IS NULL AND ${seesEvent(sql, principal)}`
        )
      ]
    })

    /** Matches of each vault and kind: all until `most` are found in total, or the newest `most` of each. */
    const alongRanges = Effect.fnUntraced(function* (principal: PrincipalState, body: Previewed, most: number, newestOfEach: boolean) {
      const found: Array<Found> = []
      for (const { ranges, rest } of yield* rangesOf(principal, body)) {
        const wanted = newestOfEach ? ranges.length * most : most - found.length
        if (wanted === 0) break
        const rows = yield* decodeFound(sql`
          SELECT seen.* FROM unnest(${ranges}::text[]) AS l (text) CROSS JOIN LATERAL (
            SELECT e.id, e.kind, e.occurred_at AS "occurredAt" FROM events e WHERE ${rest} AND e.id >= ${oldestId("evt")}
            ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${most}
          ) seen LIMIT ${wanted}`)
        found.push(...rows)
      }
      return found
    })

    /** The matches that are counted, and the newest of all. */
    const search = Effect.fnUntraced(function* (principal: PrincipalState, body: Previewed) {
      const { found, isAll } = yield* alongOrganization(principal, body)
      if (isAll) return { counted: found, newest: found.slice(0, SHOWN) }
      const counted = yield* alongRanges(principal, body, PREVIEW_LIMIT, false)
      if (found.length >= SHOWN) return { counted, newest: found.slice(0, SHOWN) }
      if (counted.length < PREVIEW_LIMIT) return { counted, newest: newestOf(counted) }
      return { counted, newest: newestOf(yield* alongRanges(principal, body, SHOWN, true)) }
    })

    return {
      /** The response as text. Fails like a creation for entities, vaults and kinds that the caller may not use. */
      of: Effect.fn("WebhookPreview.of")(function* (principal: PrincipalState, body: PreviewWebhook) {
        const entityIds = yield* requireWebhookScope(sql, principal, body.entityIds, body.vaultIds)
        yield* requireReadableKinds(principal, body.eventKinds)
        const { counted, newest: shown } = yield* search(principal, { ...body, entityIds })
        const byKind: Record<string, number> = Object.fromEntries(body.eventKinds.map((kind) => [kind, 0]))
        for (const { kind } of counted) byKind[kind] = (byKind[kind] ?? 0) + 1
        const newest = yield* decodeEvents(sql`
          SELECT ${sql.literal(eventColumns)} FROM events e ${sql.literal(withDispatch)} WHERE e.id = ANY(${shown.map(({ id }) => id)}::text[])
          ORDER BY e.occurred_at DESC, e.id DESC`)
        return `{"count":${counted.length},"countedUpTo":${PREVIEW_LIMIT},"byKind":${JSON.stringify(byKind)},"newest":[${newest.map((row) => eventJson(row)).join(",")}]}`
      })
    }
  })
}) {
  static readonly layer = this.Default
}
