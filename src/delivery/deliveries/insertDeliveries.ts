/** Inserts deliveries, numbered within their webhooks; those to a webhook with a queue join it. C-2, C-5. */
import type { SqlClient, Statement } from "@effect/sql"
import { openQueues, queuedOf, RANK } from "../webhooks/queue.ts"

/** A new delivery. */
export interface NewDelivery {
  readonly id: string
  readonly eventId: string
  readonly webhookId: string
  readonly organizationId: string
  readonly kind: string
  readonly vaultId: string | null
  /** The delivery that it redelivers, and the recovery that creates it. */
  readonly replayedFrom?: string | null
  readonly recoveryId?: string
}

/**
 * Most deliveries of an event that is redelivered: those of an event are listed without pages. A recovery sends it all the same to a
 * webhook with fewer than `MOST_OF_WEBHOOK` of them, so one webhook's redeliveries cannot keep an event from another.
 */
export const MOST_OF_EVENT = 200,
  MOST_OF_WEBHOOK = 20

/** Whether an event has as many deliveries. */
export const hasMostDeliveries = (sql: SqlClient.SqlClient, eventId: Statement.Fragment): Statement.Fragment => sql`
  EXISTS (SELECT 1 FROM deliveries o WHERE o.event_id = ${eventId} OFFSET ${MOST_OF_EVENT - 1} LIMIT 1)`

/** The deliveries as rows `made`, and their numbers. */
const numbered = (sql: SqlClient.SqlClient, deliveries: ReadonlyArray<NewDelivery>): Statement.Fragment => sql`
  made AS MATERIALIZED (
    SELECT d.*, row_number() OVER (PARTITION BY d.webhook_id ORDER BY d.ord) AS nth
    FROM unnest(${deliveries.map((_) => _.id)}::text[], ${deliveries.map((_) => _.eventId)}::text[], ${deliveries.map((_) => _.webhookId)}::text[],
      ${deliveries.map((_) => _.organizationId)}::text[], ${deliveries.map((_) => _.kind)}::text[], ${deliveries.map((_) => _.vaultId)}::text[],
      ${deliveries.map((_) => _.replayedFrom ?? null)}::text[], ${deliveries.map((_) => _.recoveryId ?? null)}::text[])
      WITH ORDINALITY AS d (id, event_id, webhook_id, organization_id, kind, vault_id, replayed_from, recovery_id, ord)
  ), numbered AS (
    INSERT INTO webhook_sequences AS s (webhook_id, last) SELECT webhook_id, max(nth) FROM made GROUP BY webhook_id ORDER BY webhook_id
    ON CONFLICT (webhook_id) DO UPDATE SET last = s.last + excluded.last RETURNING webhook_id, last
  )`

const sequence = "n.last - (max(m.nth) OVER (PARTITION BY m.webhook_id)) + m.nth"

/**
 * Common table expressions that insert deliveries in the given order and skip existing ones; the last one is `written`,
 * their rows, and `made` has their order as `ord`. Each is due after `firstWait` seconds, or HELD.
 */
export const insertDeliveries = (
  sql: SqlClient.SqlClient,
  deliveries: ReadonlyArray<NewDelivery>,
  firstWait: number
): Statement.Fragment => sql`
  ${queuedOf(sql, [...new Set(deliveries.map((_) => _.webhookId))])}, ${numbered(sql, deliveries)}, written AS (
    INSERT INTO deliveries (id, event_id, webhook_id, organization_id, kind, vault_id, sequence, status, next_attempt_at, started,
      replayed_from, recovery_id, rank)
    SELECT m.id, m.event_id, m.webhook_id, m.organization_id, m.kind, m.vault_id,
      ${sql.literal(sequence)}, CASE WHEN q.webhook_id IS NULL THEN 'PENDING' ELSE 'HELD' END,
      CASE WHEN q.webhook_id IS NULL THEN now() + make_interval(secs => ${firstWait}) END, q.webhook_id IS NULL, m.replayed_from, m.recovery_id,
      ${RANK.live}
    FROM made m JOIN numbered n USING (webhook_id) LEFT JOIN queued q USING (webhook_id) ON CONFLICT (id) DO NOTHING RETURNING *
  )`

/** Like {@link insertDeliveries}, for a recovery: they join the webhook's queue, behind everything else. Not for a disabled webhook. */
export const insertRecovered = (sql: SqlClient.SqlClient, deliveries: ReadonlyArray<NewDelivery>): Statement.Fragment => sql`
  ${openQueues(sql, [...new Set(deliveries.map((_) => _.webhookId))], false)}, ${numbered(sql, deliveries)}, written AS (
    INSERT INTO deliveries (id, event_id, webhook_id, organization_id, kind, vault_id, sequence, status, started, replayed_from, recovery_id, rank)
    SELECT m.id, m.event_id, m.webhook_id, m.organization_id, m.kind, m.vault_id, ${sql.literal(sequence)}, 'HELD', false, m.replayed_from,
      m.recovery_id, ${RANK.recovery}
    FROM made m JOIN numbered n USING (webhook_id) JOIN opened o USING (webhook_id) ON CONFLICT (id) DO NOTHING RETURNING *
  )`
