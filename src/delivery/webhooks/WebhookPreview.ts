/**
 * Previews what a webhook would have received, before it is created. It first searches a bounded number of the
 * organization's newest events. If that does not settle the count, it uses the indexes of each vault and kind, some at a
 * time. So a statement reads a bounded number of rows, however long the log is and however rare the kinds are. Of events without a
 * vault it counts the organization's newest 20,000 at most. C-7.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Record, Schema } from "effect"
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
/** Events of the organization that are searched, and of those without a vault. */
const LOOK = 20_000
/** Index ranges per statement: one for each vault and kind. */
const RANGES = 1_000

/** A preview with its entities, also if the body left them out. */
type Previewed = PreviewWebhook & { readonly entityIds: ReadonlyArray<string> }

/** What a statement found: how many events of each kind, and the ids of the newest. Postgres counts: rows would cost this process more. */
const Found = Schema.Struct({
  byKind: Schema.Record({ key: Schema.String, value: Schema.Number }),
  newest: Schema.Array(Schema.String)
})
type Found = typeof Found.Type
const decodeFound = decodeRows(Found),
  decodeSearched = decodeRows(Schema.Struct({ ...Found.fields, looked: Schema.Number })),
  decodePlaces = decodeRows(Schema.Struct({ occurredAt: Schema.String, id: Schema.String })),
  decodeTexts = decodeRows(Schema.Struct({ texts: Schema.Array(Schema.String) }))

/** Columns of {@link Found} over a table expression `found`. */
const foundColumns = `
  (SELECT coalesce(json_object_agg(kind, count), '{}') FROM (SELECT kind, count(*) AS count FROM found GROUP BY kind) k) AS "byKind",
  ARRAY(SELECT id FROM found ORDER BY occurred_at DESC, id DESC LIMIT ${SHOWN}) AS newest`

const NOTHING: Found = { byKind: {}, newest: [] }

const countOf = ({ byKind }: Found): number => Object.values(byKind).reduce((sum, count) => sum + count, 0)

/** Both together. Their newest events are more than are shown. */
const add = (one: Found, other: Found): Found => ({
  byKind: Record.union(one.byKind, other.byKind, (some, more) => some + more),
  newest: [...one.newest, ...other.newest]
})

export class WebhookPreview extends Effect.Service<WebhookPreview>()("custody/WebhookPreview", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => {
    /** True for an event that such a webhook matches and that the caller can see. */
    const covered = (principal: PrincipalState, { entityIds, eventKinds, vaultIds }: Previewed): Statement.Fragment => sql`
      e.entity_id = ANY(${entityIds}::text[]) AND e.kind = ANY(${eventKinds}::text[]) AND ${seesEvent(sql, principal)}
      ${and(sql, vaultIds !== null && sql`(e.vault_id IS NULL OR e.vault_id = ANY(${vaultIds}::text[]))`)}`

    /** The newest matches among the organization's newest events, and whether these are all that count. */
    const alongOrganization = Effect.fnUntraced(function* (principal: PrincipalState, body: Previewed) {
      const [row] = yield* decodeSearched(sql`
        WITH newest AS MATERIALIZED (
          SELECT e.id, e.kind, e.organization_id, e.entity_id, e.vault_id, e.audience, e.occurred_at FROM events e
          WHERE e.organization_id = ${principal.organizationId} AND e.id >= ${oldestId("evt")}
          ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${LOOK}
        ), found AS MATERIALIZED (
          SELECT e.id, e.kind, e.occurred_at FROM newest e WHERE ${covered(principal, body)}
          ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${PREVIEW_LIMIT}
        )
        SELECT ${sql.literal(foundColumns)}, (SELECT count(*) FROM newest) AS looked`)
      const { looked, ...found } = row ?? { ...NOTHING, looked: 0 }
      return { found, isAll: looked < LOOK || countOf(found) === PREVIEW_LIMIT }
    })

    /**
     * The texts by which the indexes find the events of each vault and kind, and those without a vault, with the remaining
     * conditions of each. The caller can see these vaults; the conditions are written so that no other index matches.
     */
    const rangesOf = Effect.fnUntraced(function* (principal: PrincipalState, { entityIds, eventKinds, vaultIds }: Previewed) {
      const [pairs] = yield* decodeTexts(sql`
        SELECT coalesce(json_agg(p.vault_id || '/' || p.entity_id), '[]') AS texts FROM vault_roles r JOIN vault_entities p ON p.vault_id = r.vault_id
        WHERE r.user_id = ${principal.userId} AND p.entity_id = ANY(${entityIds}::text[])
        ${and(sql, vaultIds !== null && sql`p.vault_id = ANY(${vaultIds}::text[])`)}`)
      const [last] = yield* decodePlaces(sql`
        SELECT e.occurred_at AS "occurredAt", e.id FROM events e
        WHERE ('/' || e.organization_id) = ${`/${principal.organizationId}`} AND e.vault_id IS NULL AND e.id >= ${oldestId("evt")}
        ORDER BY e.occurred_at DESC, e.id DESC OFFSET ${LOOK - 1} LIMIT 1`)
      const parts = (texts: ReadonlyArray<string>, rest: Statement.Fragment) => {
        const ranges = texts.flatMap((text) => eventKinds.map((kind) => `${text}/${kind}`))
        return Array.from({ length: Math.ceil(ranges.length / RANGES) }, (_, part) => ({
          ranges: ranges.slice(part * RANGES, (part + 1) * RANGES),
          rest
        }))
      }
      return [
        ...parts(
          pairs?.texts ?? [],
          sql`(e.vault_id || '/' || e.entity_id || '/' || e.kind) = l.text AND e.vault_id IS NOT NULL AND (e.organization_id || '') = ${principal.organizationId}`
        ),
        ...parts(
          entityIds.map((id) => `/${id}`),
          sql`('/' || e.entity_id || '/' || e.kind) = l.text AND e.vault_id IS NULL AND ${seesEvent(sql, principal)}
            ${and(sql, last !== undefined && sql`(e.occurred_at, e.id) >= (${last.occurredAt}::timestamptz, ${last.id})`)}`
        )
      ]
    })

    /** Matches of each vault and kind: all until `most` are found in total, or the newest `most` of each. */
    const alongRanges = Effect.fnUntraced(function* (principal: PrincipalState, body: Previewed, most: number, newestOfEach: boolean) {
      let found = NOTHING
      for (const { ranges, rest } of yield* rangesOf(principal, body)) {
        const wanted = newestOfEach ? ranges.length * most : most - countOf(found)
        if (wanted === 0) break
        const [part] = yield* decodeFound(sql`
          WITH found AS MATERIALIZED (
            SELECT seen.* FROM unnest(${ranges}::text[]) AS l (text) CROSS JOIN LATERAL (
              SELECT e.id, e.kind, e.occurred_at FROM events e WHERE ${rest} AND e.id >= ${oldestId("evt")}
              ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${most}
            ) seen LIMIT ${wanted}
          )
          SELECT ${sql.literal(foundColumns)}`)
        found = add(found, part ?? NOTHING)
      }
      return found
    })

    /** The matches that are counted, and ids among which the newest of all are. */
    const search = Effect.fnUntraced(function* (principal: PrincipalState, body: Previewed) {
      const { found, isAll } = yield* alongOrganization(principal, body)
      if (isAll) return found
      const counted = yield* alongRanges(principal, body, PREVIEW_LIMIT, false)
      if (found.newest.length === SHOWN) return { ...counted, newest: found.newest }
      if (countOf(counted) < PREVIEW_LIMIT) return counted
      return { ...counted, newest: (yield* alongRanges(principal, body, SHOWN, true)).newest }
    })

    return {
      /** The response as text. Fails like a creation for entities, vaults and kinds that the caller may not use. */
      of: Effect.fn("WebhookPreview.of")(function* (principal: PrincipalState, body: PreviewWebhook) {
        const entityIds = yield* requireWebhookScope(sql, principal, body.entityIds, body.vaultIds)
        yield* requireReadableKinds(principal, body.eventKinds)
        const found = yield* search(principal, { ...body, entityIds })
        const byKind = { ...Object.fromEntries(body.eventKinds.map((kind) => [kind, 0])), ...found.byKind }
        const newest = yield* decodeEvents(sql`
          SELECT ${sql.literal(eventColumns)} FROM events e ${sql.literal(withDispatch)} WHERE e.id = ANY(${found.newest}::text[])
          ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${SHOWN}`)
        return `{"count":${countOf(found)},"countedUpTo":${PREVIEW_LIMIT},"byKind":${JSON.stringify(byKind)},"newest":[${newest.map((row) => eventJson(row)).join(",")}]}`
      })
    }
  })
}) {
  static readonly layer = this.Default
}
