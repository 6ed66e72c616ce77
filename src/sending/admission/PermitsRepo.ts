/**
 * The rows of endpoint permits. A webhook has one row with the permits of each worker, so a grant is one statement and never
 * exceeds the limit, however many workers request permits at once. While a worker is registered as the only one, none are granted.
 * Decision D-52.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../database/decodeRows.ts"

const ByProcess = Schema.Record({ key: Schema.String, value: Schema.Number })
const Shared = Schema.Struct({ webhookId: Schema.String, held: ByProcess, wanted: ByProcess })
/** A webhook's permits by process. */
export type Shared = typeof Shared.Type

const decodeShared = decodeRows(Shared)
const decodeTaken = decodeRows(Schema.Struct({ webhookId: Schema.String, permits: Schema.Number }))

export const permitsRepo = (me: string, most: number) =>
  Effect.map(SqlClient.SqlClient, (sql) => {
    return {
      /** Frees the permits of processes, and withdraws their requests. */
      free: (processIds: ReadonlyArray<string>) => sql`
        UPDATE endpoint_permits p SET held = p.held - ${processIds}::text[], wanted = p.wanted - ${processIds}::text[]
        WHERE p.webhook_id IN (
          SELECT webhook_id FROM endpoint_permits WHERE held ?| ${processIds}::text[] OR wanted ?| ${processIds}::text[]
          ORDER BY webhook_id FOR UPDATE)`,

      /** Removes every permit: the only worker needs none. */
      clear: sql`DELETE FROM endpoint_permits`,

      /** Keeps these permits and leaves all others to other workers. */
      share: (held: ReadonlyArray<readonly [webhookId: string, permits: number]>) =>
        sql`
          INSERT INTO endpoint_permits AS p (webhook_id, held, wanted)
          SELECT a.webhook_id, jsonb_build_object(${me}::text, a.permits), '{}'
          FROM unnest(${held.map(([id]) => id)}::text[], ${held.map(([, permits]) => permits)}::int[]) AS a (webhook_id, permits)
          ON CONFLICT (webhook_id) DO UPDATE SET held = p.held || excluded.held`,

      /**
       * Requests more permits, of each webhook once. Returns how many this worker holds of each; none while another one is
       * registered as the only one.
       */
      take: (asked: ReadonlyArray<readonly [webhookId: string, more: number]>) =>
        decodeTaken(sql`
          INSERT INTO endpoint_permits AS p (webhook_id, held, wanted)
          SELECT a.webhook_id, jsonb_build_object(${me}::text, a.more), '{}'
          FROM unnest(${asked.map(([id]) => id)}::text[], ${asked.map(([, more]) => more)}::int[]) AS a (webhook_id, more)
          WHERE EXISTS (SELECT 1 FROM processes WHERE id = ${me}) AND NOT EXISTS (SELECT 1 FROM processes WHERE alone AND id <> ${me})
          ON CONFLICT (webhook_id) DO UPDATE SET (held, wanted) = (
            SELECT p.held || jsonb_build_object(${me}::text, n.mine + g.granted),
              CASE WHEN g.granted < n.more THEN p.wanted || jsonb_build_object(${me}::text, n.more - g.granted) ELSE p.wanted - ${me}::text END
            FROM (SELECT (excluded.held->>${me}::text)::int AS more, coalesce((p.held->>${me}::text)::int, 0) AS mine,
                (SELECT coalesce(sum(value::int), 0) FROM jsonb_each_text(p.held)) AS used) n,
              LATERAL (SELECT least(n.more, greatest(0, ${most}::int - n.used))::int AS granted) g)
          RETURNING webhook_id AS "webhookId", (held->>${me}::text)::int AS permits`),

      /** Keeps this many permits of each webhook, frees the others, and waits for no more. */
      keep: (kept: ReadonlyArray<readonly [webhookId: string, permits: number]>) => {
        const ids = kept.map(([id]) => id)
        return Effect.zipRight(
          sql`
            UPDATE endpoint_permits p SET held = CASE WHEN a.permits = 0 THEN p.held - ${me}::text ELSE p.held || jsonb_build_object(${me}::text, a.permits) END,
              wanted = p.wanted - ${me}::text
            FROM unnest(${ids}::text[], ${kept.map(([, permits]) => permits)}::int[]) AS a (webhook_id, permits)
            WHERE p.webhook_id = a.webhook_id AND p.webhook_id IN (
              SELECT webhook_id FROM endpoint_permits WHERE webhook_id = ANY(${ids}::text[]) ORDER BY webhook_id FOR UPDATE)`,
          sql`DELETE FROM endpoint_permits WHERE webhook_id = ANY(${ids}::text[]) AND held = '{}' AND wanted = '{}'`
        )
      },

      /** Who holds and waits for permits of these webhooks. */
      read: (webhookIds: ReadonlyArray<string>) =>
        decodeShared(sql`
        SELECT webhook_id AS "webhookId", held, wanted FROM endpoint_permits WHERE webhook_id = ANY(${webhookIds}::text[])`)
    }
  })
