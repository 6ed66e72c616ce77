/**
 * Webhooks that are paused, endpoints that are down, and recoveries of missed events. A row of `webhook_holds` means that
 * deliveries to the webhook are `HELD`. A delivery that an older version, without holds, keeps processing is held by this
 * version at its next step.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
ALTER TABLE webhooks DROP CONSTRAINT webhooks_status_check,
  ADD CONSTRAINT webhooks_status_check CHECK (status IN ('ACTIVE', 'PAUSED', 'DISABLED'));

-- started: whether the delivery may have a workflow; one that was held from its beginning has none.
ALTER TABLE deliveries ADD COLUMN started boolean NOT NULL DEFAULT true, ADD COLUMN recovery_id text COLLATE "C";
-- They allow more than the ones before: no row has to be looked at.
ALTER TABLE deliveries DROP CONSTRAINT deliveries_status_check, DROP CONSTRAINT deliveries_failure_reason_check;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_status_check
  CHECK (status IN ('PENDING', 'RETRYING', 'HELD', 'DELIVERED', 'FAILED', 'CANCELED')) NOT VALID;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_failure_reason_check
  CHECK (failure_reason IN ('EXHAUSTED', 'WEBHOOK_DISABLED', 'WEBHOOK_DELETED', 'MANUAL', 'EXPIRED')) NOT VALID;
CREATE INDEX deliveries_held ON deliveries (webhook_id, sequence) WHERE status = 'HELD';
CREATE INDEX deliveries_of_recovery ON deliveries (recovery_id, status, vault_id) WHERE recovery_id IS NOT NULL;

ALTER TABLE delivery_signals DROP CONSTRAINT delivery_signals_signal_check;
ALTER TABLE delivery_signals ADD CONSTRAINT delivery_signals_signal_check CHECK (signal IN ('cancel', 'retryNow', 'wake'));

-- Failures in a row that say that the endpoint is down: since when, of which delivery first, and whether of several.
ALTER TABLE webhook_health ADD COLUMN down_failures integer NOT NULL DEFAULT 0, ADD COLUMN down_since timestamptz(3),
  ADD COLUMN down_delivery text COLLATE "C", ADD COLUMN down_several boolean NOT NULL DEFAULT false;

CREATE TABLE webhook_holds (
  webhook_id text COLLATE "C" PRIMARY KEY REFERENCES webhooks (id),
  -- whether the endpoint is down, and probed; otherwise the webhook is paused, or what waited is being sent
  down boolean NOT NULL,
  since timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  -- when the next probe is due, and how many failed
  probe_at timestamptz(3),
  probes integer NOT NULL DEFAULT 0,
  -- whether what waited when it began is HELD
  collected boolean NOT NULL DEFAULT false,
  -- deliveries that were held and are delivered
  delivered integer NOT NULL DEFAULT 0,
  -- whether a notice told of it
  noticed boolean NOT NULL DEFAULT false,
  -- counts what the hold's workflow is to be told, and what it was told; when it last looked
  wake bigint NOT NULL DEFAULT 1,
  told bigint NOT NULL DEFAULT 0,
  seen_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  CHECK (down = (probe_at IS NOT NULL))
);
CREATE FUNCTION announce_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('custody_holds', TG_TABLE_NAME);
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_holds_announced AFTER INSERT OR UPDATE OF wake, collected ON webhook_holds FOR EACH ROW
  WHEN (NEW.wake > NEW.told OR NOT NEW.collected) EXECUTE FUNCTION announce_hold();

CREATE TABLE recoveries (
  id text COLLATE "C" PRIMARY KEY,
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  organization_id text COLLATE "C" NOT NULL,
  status text NOT NULL CHECK (status IN ('RUNNING', 'PAUSED', 'COMPLETED', 'CANCELED')),
  since timestamptz(3) NOT NULL,
  until timestamptz(3) NOT NULL,
  -- null: those of the webhook
  event_kinds text[] CHECK (cardinality(event_kinds) > 0),
  vault_ids text[] CHECK (cardinality(vault_ids) > 0),
  include text[] NOT NULL CHECK (cardinality(include) > 0),
  rate_per_second integer CHECK (rate_per_second > 0),
  -- how far the organization's events were looked at, and up to where they are to be
  position bigint NOT NULL,
  last_position bigint NOT NULL,
  scanned bigint NOT NULL DEFAULT 0,
  created bigint NOT NULL DEFAULT 0,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  completed_at timestamptz(3),
  -- whether deliveries that wait are still to be canceled
  canceling boolean NOT NULL DEFAULT false,
  wake bigint NOT NULL DEFAULT 1,
  told bigint NOT NULL DEFAULT 0,
  seen_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  CHECK ((status IN ('COMPLETED', 'CANCELED')) = (completed_at IS NOT NULL)),
  CHECK (since <= until)
);
CREATE INDEX recoveries_newest ON recoveries (webhook_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX recoveries_running ON recoveries (webhook_id) WHERE status IN ('RUNNING', 'PAUSED');
CREATE TRIGGER recoveries_announced AFTER INSERT OR UPDATE OF wake ON recoveries FOR EACH ROW
  WHEN (NEW.wake > NEW.told) EXECUTE FUNCTION announce_hold();
CREATE INDEX recoveries_under_way ON recoveries (id) WHERE status = 'RUNNING' OR canceling;
`)
)
