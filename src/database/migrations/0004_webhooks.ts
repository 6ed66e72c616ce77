/**
 * Webhooks, deliveries and attempts. Deliveries and attempts are partitioned by day like events. Secrets are here as
 * ciphertext only. A deleted webhook keeps its row, because its deliveries stay readable through their events.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`
CREATE TABLE webhooks (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  url text NOT NULL,
  description text NOT NULL,
  status text NOT NULL CHECK (status IN ('ACTIVE', 'DISABLED')),
  disabled_reason text CHECK (disabled_reason IN ('MANUAL', 'FAILING', 'GONE')),
  disabled_at timestamptz(3),
  event_kinds text[] NOT NULL CHECK (cardinality(event_kinds) > 0),
  -- null: no filter
  vault_ids text[] CHECK (cardinality(vault_ids) > 0),
  notification_email text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  deleted_at timestamptz(3),
  UNIQUE (id, organization_id),
  CHECK ((status = 'DISABLED') = (disabled_reason IS NOT NULL)),
  CHECK ((disabled_reason IS NULL) = (disabled_at IS NULL)),
  CHECK (deleted_at IS NULL OR status = 'DISABLED')
);
CREATE INDEX webhooks_newest ON webhooks (organization_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;

CREATE TABLE webhook_entities (
  webhook_id text COLLATE "C" NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  organization_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (webhook_id, entity_id),
  FOREIGN KEY (webhook_id, organization_id) REFERENCES webhooks (id, organization_id),
  FOREIGN KEY (entity_id, organization_id) REFERENCES entities (id, organization_id)
);
CREATE INDEX webhook_entities_by_entity ON webhook_entities (entity_id, webhook_id);

CREATE TABLE webhook_secrets (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  ciphertext bytea NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  -- null: the current secret; otherwise until when it signs along
  expires_at timestamptz(3)
);
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (webhook_id) WHERE expires_at IS NULL;
CREATE INDEX webhook_secrets_by_webhook ON webhook_secrets (webhook_id, id DESC);

-- The streak of failures: what decides about notices and the automatic disable. One row a webhook, written on
-- failures and on the success that ends a streak.
CREATE TABLE webhook_health (
  webhook_id text COLLATE "C" PRIMARY KEY REFERENCES webhooks (id),
  consecutive_failures integer NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0),
  failing_since timestamptz(3),
  -- the first delivery that failed in the streak, and whether another one did too
  first_failed_delivery text COLLATE "C",
  several_deliveries boolean NOT NULL DEFAULT false,
  -- the first 410 answer of the streak
  gone_at timestamptz(3),
  last_failure_at timestamptz(3),
  last_failure_result text,
  CHECK ((consecutive_failures = 0) = (failing_since IS NULL))
);

-- What became of deliveries, in slots of ten minutes and shards, so that no two writers wait for one row.
CREATE TABLE webhook_counters (
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  slot timestamptz NOT NULL,
  shard smallint NOT NULL,
  delivered integer NOT NULL DEFAULT 0,
  failed integer NOT NULL DEFAULT 0,
  last_success_at timestamptz(3),
  PRIMARY KEY (webhook_id, slot, shard)
) WITH (fillfactor = 50);

CREATE TABLE deliveries (
  id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  webhook_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL CHECK (status IN ('PENDING', 'RETRYING', 'DELIVERED', 'FAILED', 'CANCELED')),
  failure_reason text CHECK (failure_reason IN ('EXHAUSTED', 'WEBHOOK_DISABLED', 'WEBHOOK_DELETED', 'MANUAL')),
  next_attempt_at timestamptz(3),
  replayed_from text COLLATE "C",
  delivered_at timestamptz(3),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (id),
  CHECK ((status = 'DELIVERED') = (delivered_at IS NOT NULL)),
  CHECK ((status IN ('FAILED', 'CANCELED')) = (failure_reason IS NOT NULL)),
  CHECK ((status IN ('PENDING', 'RETRYING')) = (next_attempt_at IS NOT NULL))
) PARTITION BY RANGE (id);
CREATE INDEX deliveries_of_webhook ON deliveries (webhook_id, created_at DESC, id DESC);
CREATE INDEX deliveries_of_event ON deliveries (event_id, created_at DESC, id DESC);
-- Waiting deliveries: what the sweeper looks at, what a disable cancels, what health counts.
CREATE INDEX deliveries_waiting ON deliveries (webhook_id, next_attempt_at) WHERE status IN ('PENDING', 'RETRYING');
CREATE INDEX deliveries_not_delivered ON deliveries (webhook_id, created_at DESC, id DESC) WHERE status <> 'DELIVERED';

-- An attempt is here before its request is sent; result is null until the outcome is known.
CREATE TABLE delivery_attempts (
  delivery_id text COLLATE "C" NOT NULL,
  number integer NOT NULL CHECK (number >= 1),
  at timestamptz(3) NOT NULL,
  result text CHECK (result IN ('2xx', '3xx', '4xx', '5xx', 'timeout', 'dns_error', 'connection_refused', 'connection_reset',
    'tls_error', 'blocked_address', 'network_error', 'interrupted')),
  http_status integer NOT NULL DEFAULT 0,
  latency_ms integer NOT NULL DEFAULT 0,
  body_snippet text,
  PRIMARY KEY (delivery_id, number)
) PARTITION BY RANGE (delivery_id);

-- What a running workflow is to be told. Written with the change that causes it, taken by a dispatcher.
CREATE TABLE delivery_signals (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  delivery_id text COLLATE "C" NOT NULL,
  signal text NOT NULL CHECK (signal IN ('cancel', 'retryNow')),
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

-- Results of pings, which are not in the log: the worker writes one, the API reads it, retention removes it.
CREATE TABLE pings (
  event_id text COLLATE "C" PRIMARY KEY,
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  at timestamptz(3) NOT NULL,
  result text NOT NULL,
  http_status integer NOT NULL,
  latency_ms integer NOT NULL,
  body_snippet text
);

-- Operational notices: one row for each cause, sent once.
CREATE TABLE notices (
  id text COLLATE "C" PRIMARY KEY,
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  cause text NOT NULL UNIQUE,
  recipient text NOT NULL,
  subject text NOT NULL,
  body text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  sent_at timestamptz(3),
  -- how it was sent: smtp, or log where no SMTP server is configured
  channel text CHECK (channel IN ('smtp', 'log')),
  CHECK ((sent_at IS NULL) = (channel IS NULL))
);
CREATE INDEX notices_unsent ON notices (created_at) WHERE sent_at IS NULL;

CREATE TABLE idempotency_keys (
  key_id text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  fingerprint bytea NOT NULL,
  status integer NOT NULL,
  -- the answer, sealed: it may hold a secret
  answer bytea NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (key_id, idempotency_key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
`)
)
