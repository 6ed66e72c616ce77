-- The outbox of a custody platform, in the platform's database. A transaction that changes custody data inserts the record of each
-- change here too, so that both commit or neither does. If a record is read from several rows, such as a user with its roles, the
-- transaction first updates the row that it describes: otherwise, of two at once, the last one may not see the other's change.
CREATE TABLE custody_outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  record jsonb NOT NULL,
  -- Sent as `occurredAt` of a record that has none. By the time of recording instead, history that is sent late would make old news
  -- of what changed meanwhile.
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Whether it happened before the service was in use: it is recorded without an event.
  history boolean NOT NULL DEFAULT false,
  -- The batch that it is sent in, and its Idempotency-Key: every attempt to send a batch must have the same records.
  batch uuid,
  sent_at timestamptz
);
CREATE INDEX ON custody_outbox (id) WHERE batch IS NULL;
CREATE INDEX ON custody_outbox (id) WHERE batch IS NOT NULL AND sent_at IS NULL;
CREATE INDEX ON custody_outbox (batch);

CREATE FUNCTION custody_time(at timestamptz) RETURNS text STABLE LANGUAGE sql AS $$
  SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- The batch to send now: one that was not answered yet, or else the next records that no batch has, up to 500 of one `history` and
-- 4 MB, but at least one. No row if everything was sent.
CREATE FUNCTION custody_next_batch() RETURNS TABLE (batch uuid, history boolean, records text) LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(hashtext('custody_outbox'));

  WITH new AS (
    SELECT o.id, row_number() OVER upto = 1 OR sum(octet_length(o.record::text) + 1) OVER upto <= 4000000
      AND bool_and(o.history) OVER upto = bool_or(o.history) OVER upto AS fits
    FROM (SELECT * FROM custody_outbox w WHERE w.batch IS NULL ORDER BY w.id LIMIT 500) o
    WINDOW upto AS (ORDER BY o.id)
  )
  UPDATE custody_outbox o SET batch = (SELECT gen_random_uuid())
  WHERE o.id IN (SELECT n.id FROM new n WHERE n.fits)
    AND NOT EXISTS (SELECT FROM custody_outbox u WHERE u.batch IS NOT NULL AND u.sent_at IS NULL);

  SELECT o.batch, o.history, string_agg((jsonb_build_object('occurredAt', custody_time(o.occurred_at)) || o.record)::text, E'\n' ORDER BY o.id)
  FROM custody_outbox o
  WHERE o.batch = (SELECT u.batch FROM custody_outbox u WHERE u.batch IS NOT NULL AND u.sent_at IS NULL ORDER BY u.id LIMIT 1)
  GROUP BY o.batch, o.history
$$;

-- A hash or an asset as the service returns it: those of EVM chains in lower case.
CREATE FUNCTION custody_name(name text) RETURNS text IMMUTABLE LANGUAGE sql AS $$
  SELECT CASE WHEN name ~ '(^0x[0-9a-fA-F]{64}|:0x[0-9a-fA-F]{40})$' THEN lower(name) ELSE name END
$$;

-- What is compared of a transaction: its status, amount, time in milliseconds, and fee.
CREATE FUNCTION custody_line(record jsonb) RETURNS text STABLE LANGUAGE sql AS $$
  SELECT concat_ws(' ', record->>'network', custody_name(record->>'hash'), record->>'direction', record->>'status',
    custody_name(record->>'asset'), trim_scale((record->>'amount')::numeric),
    custody_time(regexp_replace(record->>'timestamp', '(\.\d{3})\d+', '\1')::timestamptz),
    custody_name(record->'fee'->>'asset'), trim_scale((record->'fee'->>'amount')::numeric))
$$;

-- A transaction by its records: a field that one leaves out keeps its value.
CREATE AGGREGATE custody_merged(jsonb) (SFUNC = jsonb_concat, STYPE = jsonb, INITCOND = '{}');

CREATE FUNCTION custody_hash(lines text[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$
  SELECT encode(sha256(convert_to(coalesce(array_to_string(lines, E'\n'), ''), 'UTF8')), 'hex')
$$;

-- Compares the transactions of a vault with the service's export of them (NDJSON): counts, hashes, and the first differences. The
-- outbox stands for the tables of the platform here; there, `ours` is a query of those.
CREATE FUNCTION custody_reconcile(vault text, export text)
RETURNS TABLE (ours bigint, theirs bigint, our_hash text, their_hash text, differences text[]) LANGUAGE sql AS $$
  WITH ours AS (
    SELECT custody_line(record) AS line FROM (
      SELECT custody_merged(record ORDER BY id) AS record FROM custody_outbox
      WHERE record->>'type' = 'transaction' AND record->>'vaultId' = vault
      GROUP BY record->'network', custody_name(record->>'hash'), coalesce((record->>'index')::int, 0), record->'direction'
    ) latest
  ), theirs AS (
    SELECT custody_line(line::jsonb) AS line FROM string_to_table(export, E'\n') line WHERE line <> ''
  ), differences AS (
    (SELECT 'only here: ' || line AS line FROM (TABLE ours EXCEPT ALL TABLE theirs) here)
    UNION ALL
    (SELECT 'only there: ' || line FROM (TABLE theirs EXCEPT ALL TABLE ours) there)
  )
  SELECT (SELECT count(*) FROM ours), (SELECT count(*) FROM theirs),
    (SELECT custody_hash(array_agg(line ORDER BY line)) FROM ours), (SELECT custody_hash(array_agg(line ORDER BY line)) FROM theirs),
    ARRAY(SELECT line FROM differences LIMIT 20)
$$;
