/**
 * Writes the event log. Events are recorded in the transaction of the change that causes them, so both are committed or
 * neither is. A writer first locks the organization's event stream and holds the lock until the commit. Positions are
 * therefore dense and in commit order, and an organization's ids ascend with them, by the clock of Postgres only. An event that a webhook matches also goes into the outbox; others count as dispatched. Notifications are only
 * hints. Spec: Emission and log. Decisions D-17, D-18.
 */

import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { Bytes, decodeRows } from "../../runtime/database/decodeRows.ts"
import * as Id from "../../values/Id.ts"
import { extend, type Newest } from "./chain.ts"
import { type Occurrence, write } from "./Envelope.ts"
import type { Kind } from "./Kind.ts"
import { kinds } from "./Kind.ts"
import { receivers } from "./matching.ts"

/** The channel that announces recorded events, and the one that announces events that wait in the outbox. */
export const CHANNEL = "custody_events",
  OUTBOX_CHANNEL = "custody_outbox"

/** How far Postgres' clock may be set back without dates being earlier than those before, in ms. */
const SET_BACK_MS = 5 * 60_000

/** An organization's locked stream. Mutable: it advances with the events that are recorded while it is locked. */
export interface Stream {
  readonly organizationId: string
  /** The position of the newest event. */
  position: number
  /** The time in ms of the newest event's id; new events get later times. */
  clock: number
  /** The id of the newest event; null if there is none. */
  eventId: string | null
}

/** Streams by organization, with the time of the lock. */
export interface Streams {
  readonly of: ReadonlyMap<string, Stream>
  /** A time in ms later than the ids of these organizations' events: now, unless the clock was set back. */
  readonly idsFrom: number
  /** The time of recording in ms: the same, or now if the clock was set back by more than {@link SET_BACK_MS}. */
  readonly now: number
  /** The version of the catalog, read under the lock. */
  readonly catalogVersion: number
}

/** A locked stream and the values read with it. Without any stream there is one row, whose columns of a stream are null. */
const decodeStreams = decodeRows(
  Schema.Struct({
    id: Schema.NullOr(Schema.String),
    position: Schema.NullOr(Schema.Number),
    eventId: Schema.NullOr(Schema.String),
    clock: Schema.NullOr(Schema.Number),
    now: Schema.Number,
    version: Schema.Number
  })
)
const decodeDates = decodeRows(Schema.Struct({ organizationId: Schema.String, object: Schema.String, date: Schema.Number }))
const decodeChains = decodeRows(Schema.Struct({ entityId: Schema.String, count: Schema.Number, hash: Bytes, sealedUntil: Schema.Number }))

/**
 * Locks the streams of organizations until the transaction ends, in the order of their ids, so that writers never
 * deadlock. An organization that does not exist has no stream.
 */
export const lock = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, organizationIds: Iterable<string>) {
  const wanted = [...new Set(organizationIds)].sort()
  const rows = yield* decodeStreams(sql`
    SELECT s.id, s.position, s.event_id AS "eventId", s.clock, extract(epoch FROM clock_timestamp())::float8 * 1000 AS now, v.version
    FROM catalog_version v LEFT JOIN (
      SELECT organization_id AS id, position, event_id, CASE WHEN isfinite(clock) THEN extract(epoch FROM clock)::float8 * 1000 END AS clock
      FROM event_streams WHERE organization_id = ANY(${wanted}::text[]) ORDER BY organization_id FOR UPDATE) s ON true`)
  const streams = rows.flatMap(
    ({ clock, eventId, id, position }): ReadonlyArray<Stream> =>
      id === null || position === null ? [] : [{ organizationId: id, position, eventId, clock: Math.round(clock ?? 0) }]
  )
  const clock = Math.max(...rows.map((row) => Math.floor(row.now)))
  const idsFrom = Math.max(clock, ...streams.map((stream) => stream.clock + 1))
  const now = idsFrom > clock + SET_BACK_MS ? clock : idsFrom
  const of = new Map(streams.map((stream) => [stream.organizationId, stream]))
  return { of, idsFrom, now, catalogVersion: rows[0]?.version ?? 0 } satisfies Streams
})

/** The chains of entities, extended with the recorded events. C-3. */
const extended = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  occurrences: ReadonlyArray<Occurrence<Kind>>,
  made: { readonly ids: ReadonlyArray<string>; readonly befores: ReadonlyArray<Newest>; readonly payloads: ReadonlyArray<string> }
) {
  const links = made.befores.map((before, index) => ({
    entityId: occurrences[index]?.entityId ?? "",
    payload: made.payloads[index] ?? "",
    at: Id.time(made.ids[index] ?? "") ?? 0,
    before
  }))
  const entityIds = [...new Set(links.map(({ entityId }) => entityId))]
  const chains = yield* decodeChains(sql`
    SELECT entity_id AS "entityId", count, hash, (extract(epoch FROM sealed_until) * 1000)::float8 AS "sealedUntil"
    FROM entity_chains WHERE entity_id = ANY(${entityIds}::text[])`)
  return extend(chains, links)
})

/** Gives events their ids, in the given order: rows may refer to them before they are recorded. */
export const identify = (streams: Streams, occurrences: ReadonlyArray<Occurrence<Kind>>): ReadonlyArray<string> => {
  const ids = Id.ascending("evt", streams.idsFrom, occurrences.length)
  for (const [index, { recordedIn }] of occurrences.entries()) recordedIn?.push(ids[index] ?? "")
  return ids
}

/** Records events in the given order with these ids, in the transaction that locked their streams. */
export const append = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  streams: Streams,
  occurrences: ReadonlyArray<Occurrence<Kind>>,
  ids: ReadonlyArray<string>
) {
  if (occurrences.length === 0) return
  const end = Id.time(ids.at(-1) ?? "") ?? 0
  const befores = occurrences.map(({ organizationId }, index): Newest => {
    const stream = streams.of.get(organizationId)
    if (stream === undefined) throw new Error(`the event stream of ${organizationId} is not locked`)
    const { eventId, position } = stream
    Object.assign(stream, { clock: end, eventId: ids[index] ?? "", position: position + 1 })
    return { position, eventId }
  })
  const payloads = occurrences.map((one, index) => write(ids[index] ?? "", one))
  const { chains, sealed } = yield* extended(sql, occurrences, { ids, befores, payloads })
  const touched = [...streams.of.values()].filter(({ clock }) => clock === end)
  const organizationOf = (entityId: string) => occurrences.find((one) => one.entityId === entityId)?.organizationId ?? ""
  const column = <A>(value: (one: Occurrence<Kind>, index: number) => A) => occurrences.map(value)
  yield* sql`
    WITH recorded AS MATERIALIZED (
      SELECT *, clock_timestamp() AS at FROM unnest(${ids}::text[], ${column((one) => one.organizationId)}::text[], ${befores.map(({ position }) => position + 1)}::bigint[],
        ${column((one) => one.entityId)}::text[], ${column((one) => one.vaultId)}::text[], ${column((one) => one.kind)}::text[],
        ${column((one) => kinds[one.kind].schemaVersion)}::int[], ${payloads}::text[],
        ${column((one) => one.date)}::timestamptz[], ${column((one) => one.audience?.join(" ") ?? null)}::text[])
        AS event (id, organization_id, position, entity_id, vault_id, kind, schema_version, payload, occurred_at, audience)
    ), wanted AS MATERIALIZED (
      SELECT r.id FROM recorded r WHERE EXISTS (${receivers(sql, "r")})
    ), logged AS (
      INSERT INTO events (id, organization_id, position, entity_id, vault_id, kind, schema_version, payload, occurred_at, audience, created_at, dispatched_at)
      SELECT r.id, r.organization_id, r.position, r.entity_id, r.vault_id, r.kind, r.schema_version, r.payload, r.occurred_at,
        string_to_array(r.audience, ' '), r.at, CASE WHEN r.id NOT IN (SELECT id FROM wanted) THEN r.at END
      FROM recorded r
    ), waiting AS (
      INSERT INTO event_outbox (organization_id, position, event_id, entity_id, vault_id, kind)
      SELECT r.organization_id, r.position, r.id, r.entity_id, r.vault_id, r.kind FROM recorded r JOIN wanted USING (id)
    ), linked AS (
      INSERT INTO entity_chains (entity_id, organization_id, count, hash, sealed_until)
      SELECT n.entity_id, n.organization_id, n.count, n.hash, to_timestamp(n.sealed_until / 1000)
      FROM unnest(${chains.map((_) => _.entityId)}::text[], ${chains.map((_) => organizationOf(_.entityId))}::text[],
        ${chains.map((_) => _.count)}::bigint[], ${chains.map((_) => _.hash)}::bytea[], ${chains.map((_) => _.sealedUntil)}::float8[])
        AS n (entity_id, organization_id, count, hash, sealed_until)
      ON CONFLICT (entity_id) DO UPDATE SET count = excluded.count, hash = excluded.hash, sealed_until = excluded.sealed_until
    ), sealed AS (
      INSERT INTO event_checkpoints (entity_id, at, count, hash, position, event_id)
      SELECT n.entity_id, to_timestamp(n.at / 1000), n.count, n.hash, n.position, n.event_id FROM unnest(${sealed.map((_) => _.entityId)}::text[],
        ${sealed.map((_) => _.at)}::float8[], ${sealed.map((_) => _.count)}::bigint[], ${sealed.map((_) => _.hash)}::bytea[],
        ${sealed.map((_) => _.newest.position)}::bigint[], ${sealed.map((_) => _.newest.eventId)}::text[])
        AS n (entity_id, at, count, hash, position, event_id)
      ON CONFLICT (entity_id, at) DO NOTHING
    ), moved AS (
      UPDATE event_streams s SET position = m.position, event_id = m.event_id, clock = to_timestamp(m.clock / 1000)
      FROM unnest(${touched.map((_) => _.organizationId)}::text[], ${touched.map((_) => _.position)}::bigint[],
        ${touched.map((_) => _.eventId)}::text[], ${touched.map((_) => _.clock)}::float8[])
        AS m (organization_id, position, event_id, clock)
      WHERE s.organization_id = m.organization_id
    )
    SELECT pg_notify(${CHANNEL}, 'recorded'), CASE WHEN EXISTS (SELECT 1 FROM wanted) THEN pg_notify(${OUTBOX_CHANNEL}, 'waiting') END`
})

/** The latest date in ms of an object that changed more than once in a batch, and its organization. */
export interface Dated {
  readonly organizationId: string
  readonly date: number
}

/**
 * The latest dates of objects of these streams' organizations that are ahead of the clock. Call it in a statement of its own when the
 * streams are locked: one that waits for the lock reads what was there before.
 */
export const datesAhead = (sql: SqlClient.SqlClient, { of }: Streams) =>
  Effect.map(
    decodeDates(sql`
      SELECT organization_id AS "organizationId", object, extract(epoch FROM date)::float8 * 1000 AS date FROM event_dates
      WHERE organization_id = ANY(${[...of.keys()]}::text[])`),
    (rows): ReadonlyMap<string, Dated> => new Map(rows.map(({ date, object, organizationId }) => [object, { organizationId, date }]))
  )

/** Keeps the dates that are ahead of `now`, and forgets those `before` that have passed. The streams are locked. */
export const keepDates = (
  sql: SqlClient.SqlClient,
  { now, of }: Streams,
  before: ReadonlyMap<string, Dated>,
  dates: ReadonlyMap<string, Dated>
) => {
  const ahead = [...dates].filter(([object, { date }]) => date > now && before.get(object)?.date !== date)
  if (ahead.length === 0 && before.size === 0) return Effect.void
  return sql`
    WITH passed AS (
      DELETE FROM event_dates WHERE organization_id = ANY(${[...of.keys()]}::text[]) AND date < to_timestamp(${now}::float8 / 1000))
    INSERT INTO event_dates (organization_id, object, date) SELECT organization_id, object, to_timestamp(date / 1000)
    FROM unnest(${ahead.map(([, { organizationId }]) => organizationId)}::text[], ${ahead.map(([object]) => object)}::text[],
      ${ahead.map(([, { date }]) => date)}::float8[]) AS a (organization_id, object, date)
    ON CONFLICT (organization_id, object) DO UPDATE SET date = excluded.date`
}

/** Locks the streams and records events; call it in the transaction of the change. Returns their ids. */
export const record = (sql: SqlClient.SqlClient, occurrences: ReadonlyArray<Occurrence<Kind>>) =>
  occurrences.length === 0
    ? Effect.succeed<ReadonlyArray<string>>([])
    : Effect.flatMap(
        lock(
          sql,
          occurrences.map(({ organizationId }) => organizationId)
        ),
        (streams) => {
          const ids = identify(streams, occurrences)
          return Effect.as(append(sql, streams, occurrences, ids), ids)
        }
      )
