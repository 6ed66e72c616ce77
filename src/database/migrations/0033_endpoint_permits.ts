/** The bound of attempts in flight at one endpoint over all workers: which worker holds how many permits of a webhook. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
-- Since when the process has been seen without a gap, and whether it holds every permit because no other worker runs.
ALTER TABLE processes ADD COLUMN since timestamptz NOT NULL DEFAULT clock_timestamp(), ADD COLUMN alone boolean NOT NULL DEFAULT false;

CREATE TABLE endpoint_permits (
  webhook_id text PRIMARY KEY,
  -- Permits by process, and how many more a process waits for.
  held jsonb NOT NULL,
  wanted jsonb NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
`)
)
