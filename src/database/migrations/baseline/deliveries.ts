/**
 * Tables of deliveries and attempts, which are in daily partitions like events, and of what their workflows must be told. As with
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
  -- Whether the delivery may have a workflow; one that was held from its beginning has none.
  started boolean NOT NULL DEFAULT true,
  recovery_id text COLLATE "C",
  PRIMARY KEY (id),
  CHECK ((status = 'DELIVERED') = (delivered_at IS NOT NULL)),
  CHECK ((status IN ('FAILED', 'CANCELED')) = (failure_reason IS NOT NULL)),
  CHECK ((status IN ('PENDING', 'RETRYING')) = (next_attempt_at IS NOT NULL))
) PARTITION BY RANGE (id);
CREATE INDEX deliveries_of_webhook ON deliveries (webhook_id, created_at DESC, id DESC);
CREATE INDEX deliveries_of_event ON deliveries (event_id, created_at DESC, id DESC);
-- Waiting deliveries: what a disable cancels and what health counts; and what the sweeper looks for.
CREATE INDEX deliveries_waiting ON deliveries (webhook_id, next_attempt_at) WHERE status IN ('PENDING', 'RETRYING');
-- Serves every choice of statuses and kinds: one range of the index for each pair of them.
CREATE INDEX deliveries_by_status ON deliveries ((webhook_id || '/' || status || '/' || kind), created_at DESC, id DESC);
-- Deliveries of one status, whatever their kind: one range, also for kinds that a newer version has stored.
CREATE INDEX deliveries_of_status ON deliveries ((webhook_id || '/' || status), created_at DESC, id DESC);
CREATE INDEX deliveries_due ON deliveries (next_attempt_at, id) WHERE status IN ('PENDING', 'RETRYING');
CREATE INDEX deliveries_of_vault ON deliveries ((webhook_id || '/' || coalesce(vault_id, '')), created_at DESC, id DESC);
CREATE INDEX deliveries_by_sequence ON deliveries ((webhook_id || '/' || sequence::text));
CREATE INDEX deliveries_of_vault_by_status ON deliveries
  ((webhook_id || '/' || coalesce(vault_id, '') || '/' || status || '/' || kind), created_at DESC, id DESC);
CREATE INDEX deliveries_held ON deliveries (webhook_id, sequence) WHERE status = 'HELD';
CREATE INDEX deliveries_of_recovery ON deliveries (recovery_id, status, vault_id) WHERE recovery_id IS NOT NULL;

-- An attempt is written before its request is sent; result is null until the outcome is known.
CREATE TABLE delivery_attempts (
  delivery_id text COLLATE "C" NOT NULL,
  number integer NOT NULL CHECK (number >= 1),
  at timestamptz(3) NOT NULL,
  result text CHECK (result IN ('2xx', '3xx', '4xx', '5xx', 'timeout', 'dns_error', 'connection_refused', 'connection_reset',
    'tls_error', 'blocked_address', 'network_error', 'interrupted', 'proxy_error')),
  http_status integer NOT NULL DEFAULT 0,
  latency_ms integer NOT NULL DEFAULT 0,
  body_snippet text,
  -- Whether it used up an attempt of the schedule; one on a kept connection that had been closed does not.
  uses_schedule boolean NOT NULL DEFAULT true,
  organization_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (delivery_id, number)
) PARTITION BY RANGE (delivery_id);

-- Signals to running workflows. Written with the change that causes them, sent by a dispatcher, once per delivery. Those of large
-- cancellations (bulk) are sent slowly, after all others.
CREATE TABLE delivery_signals (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  delivery_id text COLLATE "C" NOT NULL,
  signal text NOT NULL CHECK (signal IN ('cancel', 'retryNow', 'wake')),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  bulk boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX delivery_signals_once ON delivery_signals (delivery_id, signal);
CREATE INDEX delivery_signals_by_bulk ON delivery_signals (bulk, id);

-- Deliveries of a webhook that wait and were created until then must be canceled, in batches. Written with the change of the
-- webhook.
CREATE TABLE pending_cancellations (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  reason text NOT NULL CHECK (reason IN ('WEBHOOK_DISABLED', 'WEBHOOK_DELETED', 'MANUAL')),
  until timestamptz NOT NULL
);
CREATE INDEX pending_cancellations_of_webhook ON pending_cancellations (webhook_id);

-- Limits attempts in flight at one endpoint over all workers: which worker holds how many permits of a webhook.
CREATE TABLE endpoint_permits (
  webhook_id text PRIMARY KEY,
  -- Permits by process, and how many more a process waits for.
  held jsonb NOT NULL,
  wanted jsonb NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
`
