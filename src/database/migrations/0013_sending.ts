/**
 * What is recorded with an outcome: whether the attempt used up an attempt of the schedule (one on a reused connection that
 * had been closed does not), and failures of the service's own proxy. Waiting deliveries of a disabled webhook are canceled
 * afterwards in batches, and their workflows at a limited rate. Pings in flight are counted for each organization.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE delivery_attempts ADD COLUMN uses_schedule boolean NOT NULL DEFAULT true;
ALTER TABLE delivery_attempts DROP CONSTRAINT delivery_attempts_result_check;
-- It allows more than the one before: no row has to be looked at.
ALTER TABLE delivery_attempts ADD CONSTRAINT delivery_attempts_result_check CHECK (result IN ('2xx', '3xx', '4xx', '5xx', 'timeout',
  'dns_error', 'connection_refused', 'connection_reset', 'tls_error', 'blocked_address', 'network_error', 'interrupted', 'proxy_error')) NOT VALID;

-- What waits for a webhook and was created until then is to be canceled: written with the change of the webhook.
CREATE TABLE pending_cancellations (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  reason text NOT NULL CHECK (reason IN ('WEBHOOK_DISABLED', 'WEBHOOK_DELETED')),
  until timestamptz NOT NULL
);
CREATE INDEX pending_cancellations_of_webhook ON pending_cancellations (webhook_id);

-- Signals of large cancellations, which are sent slowly, behind all others.
ALTER TABLE delivery_signals ADD COLUMN bulk boolean NOT NULL DEFAULT false;
CREATE INDEX delivery_signals_by_bulk ON delivery_signals (bulk, id);

CREATE TABLE pings_in_flight (
  event_id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL,
  -- when a ping has ended whose process was killed
  until timestamptz NOT NULL
);
CREATE INDEX pings_in_flight_of_organization ON pings_in_flight (organization_id, until);
`)
)
