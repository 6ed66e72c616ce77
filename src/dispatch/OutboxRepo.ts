/**
 * Claims events from the outbox. A claim takes a share from each waiting organization, deletes these rows, and writes
 * their deliveries and `matchedCount` in the same transaction. Claimed events are locked, so several dispatchers never
 * take the same one; a delivery's id is derived from its event and webhook, so no pair is written twice.
 *
 * The commit of a claim does not wait for the disk. No request is sent before the claim is on disk: an attempt is
 * recorded first, with a commit that waits, and the WAL is written in order. A claim that is lost in a crash of Postgres
 * had no effect, and its events are in the outbox again. Spec: Emission and log. Architecture, What must hold 1.
 */
import { SqlClient } from "@effect/sql"
import { Effect, Ref } from "effect"
import { writing } from "../deliveries/newDeliveries.ts"
import { firstWait } from "../deliveries/retrySchedule.ts"
import type { ToStart } from "../deliveries/WorkflowStarter.ts"
import { oldestWaiting, waitingOrganizations } from "../events/outbox.ts"
import { Settings } from "../settings/Settings.ts"
import * as Id from "../values/Id.ts"

/** Events per claim. */
const BATCH = 50
/** Organizations per claim. */
const ORGANIZATIONS = 50

interface Match {
  readonly eventId: string
  readonly organizationId: string
  readonly entityId: string
  readonly kind: string
  readonly vaultId: string | null
  readonly webhookId: string | null
  readonly url: string | null
}

/** The result of a claim. */
export interface Claim {
  /** Whether there may be more events. */
  readonly more: boolean
  /** The written deliveries to start, alternating between organizations. */
  readonly deliveries: ReadonlyArray<ToStart>
}

export class OutboxRepo extends Effect.Service<OutboxRepo>()("custody/OutboxRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { webhookRetrySchedule } = yield* Settings
    /** The organization after which the next claim begins, so that all get their turn if many wait. */
    const rotation = yield* Ref.make("")

    /**
     * Takes events and finds the webhooks that match them: the first event of each organization, then the second of each,
     * and so on.
     */
    const take = (after: string) => sql<Match>`
      WITH RECURSIVE durability AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
      ${waitingOrganizations(sql, after, ORGANIZATIONS)},
      claimed AS MATERIALIZED (
        SELECT mine.*, row_number() OVER (PARTITION BY mine.organization_id ORDER BY mine.position) AS turn
        FROM waiting w CROSS JOIN LATERAL (
          SELECT o.* FROM event_outbox o WHERE o.organization_id = w.organization_id ORDER BY o.position
          LIMIT (SELECT greatest(1, ${BATCH} / count(organization_id)) FROM waiting) FOR UPDATE SKIP LOCKED) mine
      ), taken AS (
        DELETE FROM event_outbox o USING claimed c WHERE o.organization_id = c.organization_id AND o.position = c.position
      )
      SELECT c.event_id AS "eventId", c.organization_id AS "organizationId", c.entity_id AS "entityId", c.kind, c.vault_id AS "vaultId", w.id AS "webhookId", w.url
      FROM durability CROSS JOIN claimed c LEFT JOIN (webhook_entities we JOIN webhooks w ON w.id = we.webhook_id AND w.status IN ('ACTIVE', 'PAUSED'))
        ON we.entity_id = c.entity_id AND c.kind = ANY(w.event_kinds)
        AND (c.vault_id IS NULL OR w.vault_ids IS NULL OR c.vault_id = ANY(w.vault_ids))
      ORDER BY c.turn, c.organization_id, w.id`

    /** Writes deliveries, numbered within their webhooks, and the outcome of the events. Returns the ids of held ones. */
    const write = (eventIds: ReadonlyArray<string>, deliveries: ReadonlyArray<ToStart & Pick<Match, "organizationId" | "vaultId">>) => {
      const counts = new Map<string, number>()
      for (const { eventId } of deliveries) counts.set(eventId, (counts.get(eventId) ?? 0) + 1)
      return sql<{ id: string }>`
        WITH ${writing(sql, deliveries, firstWait(webhookRetrySchedule))}, dispatched AS (
          INSERT INTO event_dispatches (event_id, matched_count)
          SELECT * FROM unnest(${eventIds}::text[], ${eventIds.map((id) => counts.get(id) ?? 0)}::int[])
        )
        SELECT id FROM written WHERE status = 'HELD'`
    }

    const claimAfter = (after: string) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const matches = yield* take(after)
          if (matches.length === 0) return { matches, deliveries: [] }
          const deliveries = matches.flatMap(({ entityId, eventId, kind, organizationId, url, vaultId, webhookId }) =>
            webhookId === null || url === null
              ? []
              : [
                  {
                    id: Id.derived("del", Id.time(eventId) ?? Date.now(), eventId, webhookId),
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
          const held = new Set((yield* write([...new Set(matches.map(({ eventId }) => eventId))], deliveries)).map(({ id }) => id))
          // failpoint: dispatch-written
          return { matches, deliveries: deliveries.filter(({ id }) => !held.has(id)) }
        })
      )

    return {
      /**
       * Claims events. If fewer organizations wait after the last claim than one may take, the next claim begins with the
       * first.
       */
      claim: Effect.gen(function* () {
        const after = yield* Ref.get(rotation)
        const { deliveries, matches } = yield* claimAfter(after)
        const organizations = new Set(matches.map(({ organizationId }) => organizationId))
        const last = organizations.size < ORGANIZATIONS ? "" : ([...organizations].sort().at(-1) ?? "")
        yield* Ref.set(rotation, last)
        return { more: matches.length > 0 || after !== "", deliveries } satisfies Claim
      }),

      /** Whether anything waits. */
      waits: Effect.map(oldestWaiting(sql), (age) => age !== null)
    }
  })
}) {
  static readonly layer = this.Default
}
