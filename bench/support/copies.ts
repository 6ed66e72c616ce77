/** Copies of one real event and its delivery by SQL, for more deliveries than a benchmark has time to create. */
import type pg from "pg"
import * as Id from "../../src/values/Id.ts"

/**
 * Copies of the webhook's first delivery and its event, number `first` to `first + count - 1`; `values` are columns of the
 * deliveries, as SQL over the number `n`. Columns that number rows get the number; a name that is not a column is left out.
 */
export const copies = async (
  client: pg.Client,
  webhookId: string,
  first: number,
  count: number,
  values: { readonly [column: string]: string }
) => {
  const numbered = (prefix: "evt" | "del") => `'${Id.make(prefix).slice(0, -8)}' || lpad(n::text, 8, '0')`
  const own = Object.entries(values).flatMap(([column, value]) => [`'${column}'`, value])
  await client.query(
    `WITH one AS MATERIALIZED (SELECT d FROM deliveries d WHERE d.webhook_id = $3 ORDER BY d.sequence LIMIT 1),
     made AS MATERIALIZED (SELECT n, ${numbered("evt")} AS event_id, ${numbered("del")} AS id FROM generate_series($1::int, $2::int) AS n),
     logged AS (
       INSERT INTO events SELECT copy.* FROM (SELECT e FROM events e, one WHERE e.id = (one.d).event_id) AS base (base), made,
         jsonb_populate_record(base, jsonb_build_object('id', event_id, 'position', n)) AS copy)
     INSERT INTO deliveries SELECT copy.* FROM one AS base (base), made, jsonb_populate_record(base,
       jsonb_build_object('id', made.id, 'event_id', event_id, 'sequence', n, ${own.join(", ")})) AS copy`,
    [first, first + count - 1, webhookId]
  )
  await client.query("VACUUM (ANALYZE, PARALLEL 0) events, deliveries")
}
