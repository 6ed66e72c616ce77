/**
 * Previews what a webhook would have received, before it is created. It first searches a bounded number of the
 * organization's newest events of the kinds; if that does not settle the count, it uses each vault's own index. C-7.
 */
import { SqlClient, type Statement } from "@effect/sql"
import { Effect } from "effect"
import { seesEvent } from "../access/visibility.ts"
import type { PrincipalState } from "../credentials/Principal.ts"
import { and } from "../database/sql.ts"
import { type EventRow, eventColumns, eventJson, oldestId, withDispatch } from "../events/EventsRepo.ts"
import { PREVIEW_LIMIT, type PreviewWebhook } from "./Webhook.ts"
import { requireReadableKinds, requireWebhookScope } from "./webhookScope.ts"

/** Events in the response. */
const SHOWN = 5
/** Events of the organization that are searched. */
const LOOK = 20_000

interface Found {
  readonly id: string
  readonly kind: string
}

export class WebhookPreview extends Effect.Service<WebhookPreview>()("custody/WebhookPreview", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => {
    /** True for an event that such a webhook matches and that the caller can see. */
    const covered = (principal: PrincipalState, { entityIds, eventKinds, vaultIds }: PreviewWebhook): Statement.Fragment => sql`
      e.entity_id = ANY(${entityIds}::text[]) AND e.kind = ANY(${eventKinds}::text[]) AND ${seesEvent(sql, principal)}
      ${and(sql, vaultIds !== null && sql`(e.vault_id IS NULL OR e.vault_id = ANY(${vaultIds}::text[]))`)}`

    /** The newest matches among the organization's newest events; undefined if there may be more than were searched. */
    const alongOrganization = Effect.fnUntraced(function* (principal: PrincipalState, body: PreviewWebhook) {
      const rows = yield* sql<Found & { readonly looked: number; readonly matches: boolean }>`
        WITH newest AS MATERIALIZED (
          SELECT e.id, e.kind, e.organization_id, e.entity_id, e.vault_id, e.audience, e.occurred_at FROM events e
          WHERE e.organization_id = ${principal.organizationId} AND e.id >= ${oldestId("evt")}
          ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${LOOK}
        )
        SELECT e.id, e.kind, true AS matches, 0 AS looked FROM (
          SELECT e.id, e.kind FROM newest e WHERE ${covered(principal, body)} ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${PREVIEW_LIMIT}) e
        UNION ALL SELECT '', '', false, count(*) FROM newest`
      const found = rows.filter(({ matches }) => matches)
      const looked = rows.find(({ matches }) => !matches)?.looked ?? 0
      return looked < LOOK || found.length === PREVIEW_LIMIT ? found : undefined
    })

    /** The newest matches by the index of each vault and kind. */
    const alongVaults = (principal: PrincipalState, body: PreviewWebhook) => {
      const lane = sql`ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${PREVIEW_LIMIT}`
      return sql<Found>`
        SELECT id, kind FROM (
          SELECT seen.* FROM (
            SELECT v.id FROM vaults v WHERE ${body.vaultIds === null ? sql`v.entity_id = ANY(${body.entityIds}::text[])` : sql`v.id = ANY(${body.vaultIds}::text[])`}
          ) v CROSS JOIN unnest(${body.eventKinds}::text[]) AS k (kind) CROSS JOIN LATERAL (
            SELECT e.id, e.kind, e.occurred_at FROM events e
            WHERE e.vault_id = v.id AND e.kind = k.kind AND e.id >= ${oldestId("evt")} AND ${covered(principal, body)} ${lane}
          ) seen
          UNION ALL
          (SELECT e.id, e.kind, e.occurred_at FROM events e WHERE e.organization_id = ${principal.organizationId} AND e.vault_id IS NULL
            AND e.id >= ${oldestId("evt")} AND ${covered(principal, body)} ${lane})
        ) seen ORDER BY occurred_at DESC, id DESC LIMIT ${PREVIEW_LIMIT}`
    }

    return {
      /** The response as text. Fails like a creation for entities, vaults and kinds that the caller may not use. */
      of: Effect.fn("WebhookPreview.of")(function* (principal: PrincipalState, body: PreviewWebhook) {
        yield* requireWebhookScope(sql, principal, body.entityIds, body.vaultIds)
        yield* requireReadableKinds(principal, body.eventKinds)
        const found = (yield* alongOrganization(principal, body)) ?? (yield* alongVaults(principal, body))
        const byKind: Record<string, number> = Object.fromEntries(body.eventKinds.map((kind) => [kind, 0]))
        for (const { kind } of found) byKind[kind] = (byKind[kind] ?? 0) + 1
        const newest = yield* sql<EventRow>`
          SELECT ${sql.literal(eventColumns)} FROM events e ${sql.literal(withDispatch)} WHERE e.id = ANY(${found.slice(0, SHOWN).map(({ id }) => id)}::text[])
          ORDER BY e.occurred_at DESC, e.id DESC`
        return `{"count":${found.length},"countedUpTo":${PREVIEW_LIMIT},"byKind":${JSON.stringify(byKind)},"newest":[${newest.map((row) => eventJson(row)).join(",")}]}`
      })
    }
  })
}) {
  static readonly layer = this.Default
}
