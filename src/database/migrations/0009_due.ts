/**
 * An index on the due times of waiting deliveries, and a unique index, so that each signal is queued at most once per
 * delivery.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE INDEX deliveries_due ON deliveries (next_attempt_at, id) WHERE status IN ('PENDING', 'RETRYING');

DELETE FROM delivery_signals a USING delivery_signals b WHERE a.delivery_id = b.delivery_id AND a.signal = b.signal AND a.id < b.id;
CREATE UNIQUE INDEX delivery_signals_once ON delivery_signals (delivery_id, signal);
`)
)
