/**
 * The rows of endpoint permits. A webhook has one row with what each worker holds, so a grant is one statement and never
 * exceeds the bound, however many workers ask at once. While a worker is registered as alone, nobody is granted anything.
 * Decision D-52.
 */
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** How old the last sign of life of a running worker may be, in seconds. */
export const LOST_S = 4
/** Serializes workers that register with one that becomes the only one. */
const LOCK = 7_249_032

/** Another worker. */
export interface Other {
  readonly id: string
  readonly lost: boolean
}

/** A webhook's permits by process. */
export interface Shared {
  readonly webhookId: string
  readonly held: Readonly<Record<string, number>>
  readonly wanted: Readonly<Record<string, number>>
}

export const permitsRepo = (me: string, most: number) =>
  Effect.map(SqlClient.SqlClient, (sql) => {
    const lock = sql`SELECT pg_advisory_xact_lock(${LOCK}::bigint)`
    const others = sql<Other>`
      SELECT id, seen_at < clock_timestamp() - make_interval(secs => ${LOST_S}) AS lost FROM processes WHERE role = 'worker' AND id <> ${me}`

    return {
      others,

      /** Registers this worker. */
      register: sql.withTransaction(
        Effect.zipRight(
          lock,
          sql`
            INSERT INTO processes (id, role) VALUES (${me}, 'worker')
            ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp(), since = clock_timestamp(), alone = false`
        )
      ),

      /**
       * Renews the sign of life, and finds the other workers. Undefined if they removed this one. `steady`: it was seen without
       * a gap for so long that workers that it has not seen are lost, and not only Postgres was away. A sign that a crash of
       * Postgres loses is soon given again, so its commit does not wait for the disk.
       */
      renew: Effect.map(
        sql<{ steady: boolean; others: ReadonlyArray<Other> }>`
          WITH durability AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
          UPDATE processes p SET seen_at = clock_timestamp(),
            since = CASE WHEN p.seen_at < clock_timestamp() - make_interval(secs => ${LOST_S}) THEN clock_timestamp() ELSE p.since END
          FROM durability WHERE p.id = ${me}
          RETURNING p.since < clock_timestamp() - make_interval(secs => ${LOST_S}) AS steady, (
            SELECT coalesce(jsonb_agg(jsonb_build_object('id', o.id, 'lost', o.seen_at < clock_timestamp() - make_interval(secs => ${LOST_S}))), '[]')
            FROM processes o WHERE o.role = 'worker' AND o.id <> ${me}) AS others`,
        ([row]) => row
      ),

      /** Removes lost workers; their permits are free. */
      remove: sql.withTransaction(
        Effect.flatMap(
          sql<{ id: string }>`
            DELETE FROM processes WHERE id IN (
              SELECT id FROM processes WHERE role = 'worker' AND id <> ${me}
                AND seen_at < clock_timestamp() - make_interval(secs => ${LOST_S}) ORDER BY id FOR UPDATE)
            RETURNING id`,
          (rows) => {
            const gone = rows.map(({ id }) => id)
            return gone.length === 0
              ? Effect.void
              : Effect.asVoid(sql`
                  UPDATE endpoint_permits p SET held = p.held - ${gone}::text[], wanted = p.wanted - ${gone}::text[]
                  WHERE p.webhook_id IN (
                    SELECT webhook_id FROM endpoint_permits WHERE held ?| ${gone}::text[] OR wanted ?| ${gone}::text[]
                    ORDER BY webhook_id FOR UPDATE)`)
          }
        )
      ),

      /** Takes every permit of every webhook, if no other worker is registered. Returns whether it did. */
      becomeAlone: sql.withTransaction(
        Effect.zipRight(
          lock,
          Effect.flatMap(others, (rows) =>
            rows.length > 0
              ? Effect.succeed(false)
              : Effect.as(Effect.zipRight(sql`UPDATE processes SET alone = true WHERE id = ${me}`, sql`DELETE FROM endpoint_permits`), true)
          )
        )
      ),

      /** Keeps these permits and leaves all others to other workers. */
      share: (held: ReadonlyArray<readonly [webhookId: string, permits: number]>) =>
        sql.withTransaction(
          Effect.zipRight(
            sql`
              INSERT INTO endpoint_permits AS p (webhook_id, held, wanted)
              SELECT a.webhook_id, jsonb_build_object(${me}::text, a.permits), '{}'
              FROM unnest(${held.map(([id]) => id)}::text[], ${held.map(([, permits]) => permits)}::int[]) AS a (webhook_id, permits)
              ON CONFLICT (webhook_id) DO UPDATE SET held = p.held || excluded.held`,
            sql`UPDATE processes SET alone = false WHERE id = ${me}`
          )
        ),

      /** Asks for more permits, of each webhook once. Returns what this worker holds of each; nothing while another one is alone. */
      take: (asked: ReadonlyArray<readonly [webhookId: string, more: number]>) =>
        sql<{ webhookId: string; permits: number }>`
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
          RETURNING webhook_id AS "webhookId", (held->>${me}::text)::int AS permits`,

      /** Keeps so many permits of each webhook, frees the others, and waits for no more. */
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
      read: (webhookIds: ReadonlyArray<string>) => sql<Shared>`
        SELECT webhook_id AS "webhookId", held, wanted FROM endpoint_permits WHERE webhook_id = ANY(${webhookIds}::text[])`,

      /** Frees everything and removes this worker. */
      leave: sql.withTransaction(
        Effect.zipRight(
          sql`
            UPDATE endpoint_permits SET held = held - ${me}::text, wanted = wanted - ${me}::text
            WHERE webhook_id IN (
              SELECT webhook_id FROM endpoint_permits WHERE held ? ${me}::text OR wanted ? ${me}::text ORDER BY webhook_id FOR UPDATE)`,
          sql`DELETE FROM processes WHERE id = ${me}`
        )
      )
    }
  })
