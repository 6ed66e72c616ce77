/**
 * Rows of the log and of deliveries as the ledger, the dispatcher and the worker write them, for what the API alone
 * cannot bring about: other days, thousands of them, every status.
 */
import * as Partitions from "../../../src/runtime/database/Partitions.ts"
import * as Id from "../../../src/values/Id.ts"
import type { App } from "../../support/app.ts"

export interface EventRow {
  readonly id: string
  readonly organizationId: string
  readonly entityId: string
  readonly vaultId: string | null
  readonly kind: string
  readonly occurredAt: string
  readonly audience: ReadonlyArray<string> | null
}

let counter = 0

/** An event that was recorded at `at` (ms), by default now, in the order of calls. */
export const event = (more: Partial<EventRow> & { readonly at?: number } = {}): EventRow => {
  const { at = Date.now(), ...fields } = more
  return {
    id: Id.derived("evt", at, "test", String(++counter)),
    organizationId: "org_a",
    entityId: "entity_a",
    vaultId: "vault_a",
    kind: "transaction.confirmed",
    occurredAt: new Date(at).toISOString(),
    audience: null,
    ...fields
  }
}

/** The envelope of a row, its text as it would be sent. */
export const payloadOf = ({ entityId, id, kind, occurredAt, vaultId }: EventRow): string =>
  JSON.stringify({
    id,
    kind,
    schemaVersion: 1,
    date: occurredAt,
    entityId,
    vaultIds: vaultId === null ? null : [vaultId],
    data: { vaultId }
  })

/** Makes the days' partitions that the ids need. */
const partitions = async (app: App, ids: ReadonlyArray<string>) => {
  for (const day of new Set(ids.map((id) => Partitions.dayOf(Id.time(id) ?? 0)))) {
    for (const [table, prefix] of Partitions.tables) {
      const name = Partitions.nameOf(table, day)
      const [found] = await app.sql("SELECT 1 FROM pg_class WHERE relname = $1", [name])
      if (found !== undefined) continue
      await app.sql(
        `CREATE TABLE ${name} PARTITION OF ${table} FOR VALUES FROM ('${Id.floor(prefix, day * 86_400_000)}') TO ('${Id.floor(prefix, (day + 1) * 86_400_000)}')`
      )
    }
  }
}

export const insertEvents = async (app: App, rows: ReadonlyArray<EventRow>): Promise<void> => {
  await partitions(
    app,
    rows.map(({ id }) => id)
  )
  const column = <A>(value: (row: EventRow) => A) => rows.map(value)
  await app.sql(
    "INSERT INTO vault_entities SELECT DISTINCT v, e FROM unnest($1::text[], $2::text[]) AS p (v, e) WHERE v IS NOT NULL ON CONFLICT DO NOTHING",
    [column((_) => _.vaultId), column((_) => _.entityId)]
  )
  await app.sql(
    `WITH e AS (
       SELECT *, row_number() OVER (PARTITION BY organization_id ORDER BY n) AS nth
       FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::text[])
         WITH ORDINALITY AS e (id, organization_id, entity_id, vault_id, kind, payload, occurred_at, audience, n)
     ), numbered AS (
       UPDATE event_streams s SET position = s.position + c.count
       FROM (SELECT organization_id, count(*) AS count FROM e GROUP BY 1) c WHERE s.organization_id = c.organization_id
       RETURNING s.organization_id, s.position - c.count AS before
     )
     INSERT INTO events (id, organization_id, position, entity_id, vault_id, kind, schema_version, payload, occurred_at, audience, dispatched_at)
     SELECT id, organization_id, before + nth, entity_id, vault_id, kind, 1, payload, occurred_at, string_to_array(audience, ' '), now()
     FROM e JOIN numbered USING (organization_id)`,
    [
      column((_) => _.id),
      column((_) => _.organizationId),
      column((_) => _.entityId),
      column((_) => _.vaultId),
      column((_) => _.kind),
      column(payloadOf),
      column((_) => _.occurredAt),
      column((_) => _.audience?.join(" ") ?? null)
    ]
  )
}

export interface DeliveryRow {
  readonly id: string
  readonly eventId: string
  readonly webhookId: string
  readonly kind: string
  readonly status: string
  readonly createdAt: string
  /** The vault of the event; null for events without a vault. */
  readonly vaultId: string | null
}

/** A delivery that was made at `at` (ms), by default now. */
export const delivery = (
  fields: Pick<DeliveryRow, "eventId" | "webhookId"> & Partial<DeliveryRow> & { readonly at?: number }
): DeliveryRow => {
  const { at = Date.now(), ...more } = fields
  return {
    id: Id.derived("del", at, "test", String(++counter)),
    kind: "transaction.confirmed",
    status: "DELIVERED",
    createdAt: new Date(at).toISOString(),
    vaultId: null,
    ...more
  }
}

export const insertDeliveries = async (app: App, rows: ReadonlyArray<DeliveryRow>): Promise<void> => {
  await partitions(
    app,
    rows.map(({ id }) => id)
  )
  const column = <A>(value: (row: DeliveryRow) => A) => rows.map(value)
  await app.sql(
    `WITH d AS (
       SELECT *, row_number() OVER (PARTITION BY webhook_id ORDER BY n) AS nth
       FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::text[])
         WITH ORDINALITY AS d (id, event_id, webhook_id, kind, status, created_at, vault_id, n)
     ), numbered AS (
       INSERT INTO webhook_sequences AS s (webhook_id, last) SELECT webhook_id, max(nth) FROM d GROUP BY webhook_id
       ON CONFLICT (webhook_id) DO UPDATE SET last = s.last + excluded.last RETURNING webhook_id, last
     )
     INSERT INTO deliveries
       (id, event_id, webhook_id, organization_id, sequence, kind, status, created_at, vault_id, delivered_at, failure_reason, next_attempt_at)
     SELECT d.id, event_id, webhook_id, w.organization_id, s.last - max(nth) OVER (PARTITION BY webhook_id) + nth, kind, d.status, d.created_at, vault_id,
       CASE WHEN d.status = 'DELIVERED' THEN d.created_at END,
       CASE d.status WHEN 'FAILED' THEN 'EXHAUSTED' WHEN 'CANCELED' THEN 'WEBHOOK_DISABLED' END,
       CASE WHEN d.status IN ('PENDING', 'RETRYING') THEN d.created_at + interval '1 hour' END
     FROM d JOIN numbered s USING (webhook_id) JOIN webhooks w ON w.id = webhook_id`,
    [
      column((_) => _.id),
      column((_) => _.eventId),
      column((_) => _.webhookId),
      column((_) => _.kind),
      column((_) => _.status),
      column((_) => _.createdAt),
      column((_) => _.vaultId)
    ]
  )
}
