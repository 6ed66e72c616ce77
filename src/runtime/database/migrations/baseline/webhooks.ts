/**
 * Tables of webhooks, their health, queues, recoveries and notices. Secrets are stored encrypted. A deleted webhook keeps its row
 * until its last delivery leaves the log, because its deliveries stay readable through their events.
 */
export const webhooks = `
CREATE TABLE webhooks (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  url text NOT NULL,
  description text NOT NULL,
  status text NOT NULL CHECK (status IN ('ACTIVE', 'PAUSED', 'DISABLED')),
  disabled_reason text CHECK (disabled_reason IN ('MANUAL', 'FAILING', 'GONE')),
  disabled_at timestamptz(3),
  event_kinds text[] NOT NULL CHECK (cardinality(event_kinds) > 0),
  -- Null: no filter.
  vault_ids text[] CHECK (cardinality(vault_ids) > 0),
  notification_email text NOT NULL,
  -- Names of the headers of its requests, and its OAuth client credentials without their secret. With values and secret, they are
  -- encrypted in gateway_credentials.
  header_names text[] NOT NULL DEFAULT '{}' CHECK (cardinality(header_names) <= 10),
  oauth jsonb,
  gateway_credentials bytea CHECK (gateway_credentials IS NOT NULL OR cardinality(header_names) = 0 AND oauth IS NULL),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  deleted_at timestamptz(3),
  -- When a caller who cannot see every vault last changed the URL, and the number of the newest delivery then. Deliveries that were
  -- waiting are sent only if the webhook still covers them.
  moved_at timestamptz,
  moved_to bigint,
  -- The number of the newest delivery when a caller who sees no event without a vault last changed the URL: those of such events that were
  -- waiting are not sent.
  hidden_to bigint,
  UNIQUE (id, organization_id),
  CHECK ((status = 'DISABLED') = (disabled_reason IS NOT NULL)),
  CHECK ((disabled_reason IS NULL) = (disabled_at IS NULL)),
  CHECK (deleted_at IS NULL OR status = 'DISABLED')
);
-- Not compressed, so that the size of a page is known without reading the ids.
ALTER TABLE webhooks ALTER COLUMN vault_ids SET STORAGE EXTERNAL;
CREATE INDEX webhooks_newest ON webhooks (organization_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX webhooks_deleted ON webhooks (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX webhooks_by_status ON webhooks (organization_id, status, created_at DESC NULLS LAST, id DESC) WHERE deleted_at IS NULL;

CREATE TABLE webhook_entities (
  webhook_id text COLLATE "C" NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  organization_id text COLLATE "C" NOT NULL,
  created_at timestamptz(3) NOT NULL,
  -- That of the webhook; null if it is deleted.
  status text COLLATE "C",
  PRIMARY KEY (webhook_id, entity_id),
  FOREIGN KEY (webhook_id, organization_id) REFERENCES webhooks (id, organization_id),
  FOREIGN KEY (entity_id, organization_id) REFERENCES entities (id, organization_id)
);
CREATE INDEX webhook_entities_by_entity ON webhook_entities (entity_id, webhook_id);
CREATE INDEX webhook_entities_newest ON webhook_entities (entity_id, status, created_at DESC, webhook_id DESC) WHERE status IS NOT NULL;
CREATE FUNCTION webhook_entities_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE webhook_entities SET status = CASE WHEN NEW.deleted_at IS NULL THEN NEW.status END WHERE webhook_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_entities_follow AFTER UPDATE OF status, deleted_at ON webhooks FOR EACH ROW
  WHEN (OLD.status <> NEW.status OR OLD.deleted_at IS DISTINCT FROM NEW.deleted_at) EXECUTE FUNCTION webhook_entities_follow();

CREATE TABLE webhook_secrets (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  ciphertext bytea NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  -- Null for the current secret; until then, deliveries are also signed with this one.
  expires_at timestamptz(3)
);
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (webhook_id) WHERE expires_at IS NULL;
CREATE INDEX webhook_secrets_by_webhook ON webhook_secrets (webhook_id, id DESC);

-- The current streak of failures, which decides about notices and the automatic disable; written on failures and on the success
-- that ends a streak.
CREATE TABLE webhook_health (
  webhook_id text COLLATE "C" PRIMARY KEY REFERENCES webhooks (id),
  consecutive_failures integer NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0),
  failing_since timestamptz(3),
  -- The first delivery that failed in the streak, and whether another one failed, too.
  first_failed_delivery text COLLATE "C",
  several_deliveries boolean NOT NULL DEFAULT false,
  -- The first 410 response of the streak.
  gone_at timestamptz(3),
  last_failure_at timestamptz(3),
  last_failure_result text,
  -- Consecutive failures that mean that the endpoint is down: their number, since when, the first delivery, and whether they are of
  -- several deliveries.
  down_failures integer NOT NULL DEFAULT 0,
  down_since timestamptz(3),
  down_delivery text COLLATE "C",
  down_several boolean NOT NULL DEFAULT false,
  CHECK ((consecutive_failures = 0) = (failing_since IS NULL))
);

-- Outcomes of deliveries and of attempts, in slots of ten minutes and shards, so that no two writers wait for one row.
CREATE TABLE webhook_counters (
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  slot timestamptz NOT NULL,
  shard smallint NOT NULL,
  delivered integer NOT NULL DEFAULT 0,
  failed integer NOT NULL DEFAULT 0,
  -- Attempts by their result: 2xx, 3xx and 4xx, 5xx, and those without a response.
  succeeded integer NOT NULL DEFAULT 0,
  rejected integer NOT NULL DEFAULT 0,
  errored integer NOT NULL DEFAULT 0,
  unanswered integer NOT NULL DEFAULT 0,
  last_success_at timestamptz(3),
  PRIMARY KEY (webhook_id, slot, shard)
) WITH (fillfactor = 50);

CREATE TABLE webhook_sequences (
  webhook_id text COLLATE "C" PRIMARY KEY REFERENCES webhooks (id),
  -- The number of the webhook's newest delivery.
  last bigint NOT NULL CHECK (last > 0)
) WITH (fillfactor = 50);

-- Webhooks with a queue: their HELD deliveries wait for their turn, and nothing but the webhook's drain sends to them. C-5.
CREATE TABLE webhook_queues (
  webhook_id text COLLATE "C" PRIMARY KEY REFERENCES webhooks (id),
  -- Whether new events join the queue: the webhook is paused, or more than deliveries of recoveries is queued.
  live boolean NOT NULL,
  -- When the drain acts next: a probe, a part of the queue; null while it has nothing to do.
  due timestamptz,
  -- Whether the endpoint is down and probed, since when, and how many probes have failed.
  down boolean NOT NULL DEFAULT false,
  down_at timestamptz(3),
  probes integer NOT NULL DEFAULT 0,
  -- Whether the retries that waited when it was asked to send everything, or the hold began, are in the queue.
  retries_queued boolean NOT NULL DEFAULT true,
  -- How many queued deliveries were delivered, and whether a notice about the hold was sent.
  delivered integer NOT NULL DEFAULT 0,
  noticed boolean NOT NULL DEFAULT false,
  -- Waiting deliveries up to this number are to be canceled.
  cancel_to bigint,
  cancel_reason text CHECK (cancel_reason IN ('WEBHOOK_DISABLED', 'WEBHOOK_DELETED', 'MANUAL')),
  CHECK (NOT down OR down_at IS NOT NULL),
  CHECK ((cancel_to IS NULL) = (cancel_reason IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX webhook_queues_due ON webhook_queues (due);

CREATE TABLE recoveries (
  id text COLLATE "C" PRIMARY KEY,
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  organization_id text COLLATE "C" NOT NULL,
  status text NOT NULL CHECK (status IN ('RUNNING', 'PAUSED', 'COMPLETED', 'CANCELED')),
  since timestamptz(3) NOT NULL,
  until timestamptz(3) NOT NULL,
  -- Null: those of the webhook.
  event_kinds text[] CHECK (cardinality(event_kinds) > 0),
  vault_ids text[] CHECK (cardinality(vault_ids) > 0),
  include text[] NOT NULL CHECK (cardinality(include) > 0),
  rate_per_second integer CHECK (rate_per_second > 0),
  -- The positions of the last event that was examined, and of the last one to examine.
  position bigint NOT NULL,
  last_position bigint NOT NULL,
  scanned bigint NOT NULL DEFAULT 0,
  created bigint NOT NULL DEFAULT 0,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  completed_at timestamptz(3),
  -- Whether waiting deliveries of the recovery must still be canceled.
  canceling boolean NOT NULL DEFAULT false,
  -- When its workflow last looked.
  seen_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  CHECK ((status IN ('COMPLETED', 'CANCELED')) = (completed_at IS NOT NULL)),
  CHECK (since <= until)
);
ALTER TABLE recoveries ALTER COLUMN vault_ids SET STORAGE EXTERNAL;
CREATE INDEX recoveries_newest ON recoveries (webhook_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX recoveries_running ON recoveries (webhook_id) WHERE status IN ('RUNNING', 'PAUSED');
CREATE INDEX recoveries_under_way ON recoveries (id) WHERE status = 'RUNNING' OR canceling;

-- Pings, which are not in the event log: the API writes one, the worker its result, and retention removes it.
CREATE TABLE pings (
  event_id text COLLATE "C" PRIMARY KEY,
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  organization_id text COLLATE "C" NOT NULL,
  at timestamptz(3) NOT NULL,
  -- When it is over at the latest, even if its process was killed. Without a result it is in flight until then.
  until timestamptz NOT NULL,
  result text,
  http_status integer NOT NULL DEFAULT 0,
  latency_ms integer NOT NULL DEFAULT 0,
  body_snippet text,
  detail text
);
CREATE INDEX pings_of_webhook ON pings (webhook_id);
CREATE INDEX pings_in_flight ON pings (organization_id, until) WHERE result IS NULL;

-- E-mails about a webhook, an API key or an account: one row for each cause, sent once.
CREATE TABLE notices (
  id text COLLATE "C" PRIMARY KEY,
  webhook_id text COLLATE "C" REFERENCES webhooks (id),
  cause text NOT NULL UNIQUE,
  recipient text NOT NULL,
  subject text NOT NULL,
  body text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  sent_at timestamptz(3),
  -- How it was sent: smtp, or log if no SMTP server is configured.
  channel text CHECK (channel IN ('smtp', 'log')),
  organization_id text COLLATE "C" NOT NULL,
  -- The API key and its expiry; it is not sent if the key no longer expires then.
  key_id text COLLATE "C" REFERENCES api_keys (id),
  key_expires_at timestamptz(3),
  CHECK ((sent_at IS NULL) = (channel IS NULL)),
  -- One about an account has neither.
  CHECK (num_nonnulls(webhook_id, key_id) <= 1),
  CHECK ((key_id IS NULL) = (key_expires_at IS NULL))
);
CREATE INDEX notices_of_webhook ON notices (webhook_id);
CREATE INDEX notices_unsent ON notices (created_at) WHERE sent_at IS NULL;
`
