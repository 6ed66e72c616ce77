/**
 * State that processes share: which processes run, and counts for rate limits across all of them. The counts are in unlogged
 * tables: they are useless after an hour, and a crash of Postgres only resets them.
 */
export const processes = `
-- A running process. seen_at is renewed every second and says whether it still runs.
CREATE TABLE processes (
  id text PRIMARY KEY,
  role text NOT NULL CHECK (role IN ('api', 'worker', 'dispatcher')),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Since when it has been seen without a gap, and whether it can do its work: a worker whose resolver is away makes no attempts.
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  can_send boolean NOT NULL DEFAULT true
);

-- What is left of a caller's rate limit, of which each process takes a part.
CREATE UNLOGGED TABLE rate_buckets (
  key text PRIMARY KEY,
  tokens float8 NOT NULL,
  -- What the last exchange granted.
  granted int NOT NULL,
  at timestamptz NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX rate_buckets_at ON rate_buckets (at);

-- The latest attempts of a caller: failed authentications, sign-ins, pings.
CREATE UNLOGGED TABLE recent_attempts (
  key text PRIMARY KEY,
  times timestamptz[] NOT NULL,
  granted int NOT NULL,
  at timestamptz NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX recent_attempts_at ON recent_attempts (at);
`
