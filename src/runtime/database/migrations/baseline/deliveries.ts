/**
 * Tables of deliveries and attempts, which are in daily partitions like events, and of commands to their workflows. As with
 * events, each index of a filtered list is on one concatenated text.
 */
export const deliveries = `
CREATE TABLE deliveries (
  id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  webhook_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL CHECK (status IN ('PENDING', 'RETRYING', 'HELD', 'DELIVERED', 'FAILED', 'CANCELED')),
  failure_reason text CHECK (failure_reason IN ('EXHAUSTED', 'WEBHOOK_DISABLED', 'WEBHOOK_DELETED', 'MANUAL', 'EXPIRED')),
  next_attempt_at timestamptz(3),
  replayed_from text COLLATE "C",
  delivered_at timestamptz(3),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  organization_id text COLLATE "C" NOT NULL,
  -- The number within the webhook, without gaps. C-2.
  sequence bigint NOT NULL CHECK (sequence > 0),
  -- That of the event. A list shows each caller the deliveries of the vaults that the caller sees, and finds them by it.
  vault_id text COLLATE "C",
  -- Whether the delivery may have a workflow of its own.
  started boolean NOT NULL DEFAULT true,
  -- Its place in its webhook's queue, before the number: 0 is sent first, 1 is an event, 2 is of a recovery.
  rank smallint NOT NULL DEFAULT 1 CHECK (rank IN (0, 1, 2)),
  -- When it last probed an endpoint that was down.
  probed_at timestamptz(3),
  recovery_id text COLLATE "C",
  PRIMARY KEY (id),
  CHECK ((status = 'DELIVERED') = (delivered_at IS NOT NULL)),
  CHECK ((status IN ('FAILED', 'CANCELED')) = (failure_reason IS NOT NULL)),
  CHECK ((status IN ('PENDING', 'RETRYING')) = (next_attempt_at IS NOT NULL))
) PARTITION BY RANGE (id);
CREATE INDEX deliveries_of_webhook ON deliveries (webhook_id, created_at DESC, id DESC);
CREATE INDEX deliveries_of_event ON deliveries (event_id, created_at DESC, id DESC);
-- Waiting deliveries: what a disable cancels and what health counts.
CREATE INDEX deliveries_waiting ON deliveries (webhook_id, next_attempt_at) WHERE status IN ('PENDING', 'RETRYING');
-- Serves every choice of statuses and kinds: one range of the index for each pair of them.
CREATE INDEX deliveries_by_status ON deliveries ((webhook_id || '/' || status || '/' || kind), created_at DESC, id DESC);
-- Deliveries of one status, whatever their kind: one range, also for kinds that a newer version has stored.
CREATE INDEX deliveries_of_status ON deliveries ((webhook_id || '/' || status), created_at DESC, id DESC);
-- What the sweep looks for.
CREATE INDEX deliveries_due ON deliveries (next_attempt_at, id) WHERE status IN ('PENDING', 'RETRYING');
CREATE INDEX deliveries_of_vault ON deliveries ((webhook_id || '/' || coalesce(vault_id, '')), created_at DESC, id DESC);
CREATE INDEX deliveries_by_sequence ON deliveries ((webhook_id || '/' || sequence::text));
CREATE INDEX deliveries_of_vault_by_status ON deliveries
  ((webhook_id || '/' || coalesce(vault_id, '') || '/' || status || '/' || kind), created_at DESC, id DESC);
CREATE INDEX deliveries_held ON deliveries (webhook_id, rank, sequence) WHERE status = 'HELD';
CREATE INDEX deliveries_of_recovery ON deliveries (recovery_id, status, vault_id) WHERE recovery_id IS NOT NULL;

-- An attempt is written before its request is sent; result is null until the outcome is known.
CREATE TABLE delivery_attempts (
  delivery_id text COLLATE "C" NOT NULL,
  number integer NOT NULL CHECK (number >= 1),
  at timestamptz(3) NOT NULL,
  result text CHECK (result IN ('2xx', '3xx', '4xx', '5xx', 'timeout', 'dns_error', 'connection_refused', 'connection_reset',
    'tls_error', 'blocked_address', 'network_error', 'interrupted', 'proxy_error', 'auth_error')),
  http_status integer NOT NULL DEFAULT 0,
  latency_ms integer NOT NULL DEFAULT 0,
  body_snippet text,
  -- Why a response could not be read as HTTP.
  detail text,
  -- Whether it used up an attempt of the schedule; one on a kept connection that had been closed does not.
  uses_schedule boolean NOT NULL DEFAULT true,
  organization_id text COLLATE "C" NOT NULL,
  webhook_id text COLLATE "C" NOT NULL,
  -- The process that makes or made it. Without a result it is in flight for as long as that process runs.
  process_id text NOT NULL,
  PRIMARY KEY (delivery_id, number)
) PARTITION BY RANGE (delivery_id);
CREATE INDEX delivery_attempts_open ON delivery_attempts (webhook_id, process_id) WHERE result IS NULL;

-- The outbox of commands to Temporal: which workflow must hear of a change, and when. The key names the workflow; a claim's
-- command has the deliveries whose first attempts are to be made, and is removed when these have begun.
CREATE TABLE commands (
  key text COLLATE "C" PRIMARY KEY,
  -- Changes whenever the command is written again.
  id bigint GENERATED ALWAYS AS IDENTITY,
  members text[] COLLATE "C" CHECK (cardinality(members) > 0),
  -- Of a delivery, and of a redelivery's claim: the organization, since organizations take turns; null for others, which go first.
  organization_id text COLLATE "C",
  due timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((members IS NOT NULL) = starts_with(key, 'claim/'))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX commands_due ON commands (organization_id, due);
CREATE FUNCTION announce_command() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('custody_commands', '');
  RETURN NULL;
END $$;
CREATE TRIGGER commands_announced AFTER INSERT OR UPDATE ON commands FOR EACH ROW
  WHEN (NEW.due <= clock_timestamp()) EXECUTE FUNCTION announce_command();
CREATE FUNCTION announce_begun() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('custody_begun', OLD.key);
  RETURN NULL;
END $$;
CREATE TRIGGER commands_begun AFTER DELETE ON commands FOR EACH ROW
  WHEN (OLD.members IS NOT NULL) EXECUTE FUNCTION announce_begun();
`
