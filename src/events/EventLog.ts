/**
 * Writing the event log. Events are recorded in the transaction of the change that they tell of, so that one
 * exists exactly when the other does; a notification wakes the dispatcher, and is only a hint.
 * Spec: Emission and log. Decisions D-17, D-18.
 */
import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import * as Id from "../values/Id.ts"
import { type Occurrence, write } from "./Envelope.ts"
import type { Kind } from "./Kind.ts"
import { kinds } from "./Kind.ts"

/** The channel that tells dispatchers of new events. */
export const CHANNEL = "custody_events"

/** Records events in the order given; to be run inside the transaction of the change. Returns their ids. */
export const record = (sql: SqlClient.SqlClient, occurrences: ReadonlyArray<Occurrence<Kind>>) =>
  Effect.gen(function* () {
    if (occurrences.length === 0) return []
    const ids = occurrences.map(() => Id.make("evt"))
    const column = <A>(value: (one: Occurrence<Kind>, index: number) => A) => occurrences.map(value)
    yield* sql`
      INSERT INTO events (id, organization_id, entity_id, vault_id, kind, schema_version, payload, occurred_at, audience)
      SELECT id, organization_id, entity_id, vault_id, kind, schema_version, payload, occurred_at, string_to_array(audience, ' ')
      FROM unnest(${ids}::text[], ${column((one) => one.organizationId)}::text[], ${column((one) => one.entityId)}::text[],
        ${column((one) => one.vaultId)}::text[], ${column((one) => one.kind)}::text[],
        ${column((one) => kinds[one.kind].schemaVersion)}::int[], ${column((one, index) => write(ids[index] ?? "", one))}::text[],
        ${column((one) => one.date)}::timestamptz[], ${column((one) => one.audience?.join(" ") ?? null)}::text[])
        AS event (id, organization_id, entity_id, vault_id, kind, schema_version, payload, occurred_at, audience)`
    yield* sql`SELECT pg_notify(${CHANNEL}, 'recorded')`
    return ids
  })
