/**
 * Detects that an endpoint is down, and starts its hold. Everything runs in the transaction that records a failure, which
 * locks the webhook's row of `webhook_health`. C-5.
 */
import type { SqlClient, SqlError } from "@effect/sql"
import { Duration, Effect, Schema } from "effect"
import { decodeRows } from "../database/decodeRows.ts"
import type { Recorded } from "./AttemptsRepo.ts"
import type { Answer } from "./request/Answer.ts"

/** Longest `Retry-After` of a probe, in seconds. */
const RETRY_AFTER_SECONDS = 3_600
/** Results that mean that the endpoint is down, not that it rejected this one delivery. */
const DOWN: ReadonlySet<string> = new Set([
  "timeout",
  "dns_error",
  "connection_refused",
  "connection_reset",
  "tls_error",
  "network_error",
  "5xx"
])

const decode = decodeRows(Schema.Struct({ notify: Schema.Boolean }))

/** Whether a failure means that the endpoint is down. */
export const meansDown = ({ httpStatus, result }: Answer): boolean => DOWN.has(result) || httpStatus === 429

/** The waits before the probes of an endpoint that is down, in seconds; the last one repeats. */
export type ProbeSeconds = readonly [number, ...ReadonlyArray<number>]

/** The probe schedule of the settings. */
export const probeSeconds = (schedule: ReadonlyArray<Duration.Duration>): ProbeSeconds => {
  const [first = 0, ...rest] = schedule.map(Duration.toSeconds)
  return [first, ...rest]
}

/**
 * Starts the hold of a webhook whose endpoint is down. Returns undefined if it was down already, otherwise whether its owner
 * is to be notified, at most once an hour.
 */
export const begin = (
  sql: SqlClient.SqlClient,
  webhookId: string,
  [first]: ProbeSeconds
): Effect.Effect<boolean | undefined, SqlError.SqlError> =>
  Effect.map(
    decode(sql`
      INSERT INTO webhook_holds AS h (webhook_id, down, down_at, probe_at, noticed)
      SELECT ${webhookId}, true, clock_timestamp(), clock_timestamp() + make_interval(secs => ${first}), NOT EXISTS (
        SELECT 1 FROM notices WHERE webhook_id = ${webhookId} AND cause LIKE 'held/%' AND created_at > now() - interval '1 hour')
      ON CONFLICT (webhook_id) DO UPDATE SET down = true, down_at = coalesce(h.down_at, excluded.down_at),
        probe_at = excluded.probe_at, probes = 0, collected = false, wake = h.wake + 1, noticed = h.noticed OR excluded.noticed
        WHERE NOT h.down
      RETURNING (SELECT NOT EXISTS (SELECT 1 FROM notices WHERE webhook_id = ${webhookId} AND cause LIKE 'held/%'
        AND created_at > now() - interval '1 hour')) AS notify`),
    ([row]) => row?.notify
  )

/** When the next probe is due after a failed one: `Retry-After` is honored, up to an hour. */
export const postponeProbe = (sql: SqlClient.SqlClient, { answer, webhookId }: Recorded, waits: ProbeSeconds) => sql`
  UPDATE webhook_holds SET probes = probes + 1, probe_at = clock_timestamp() + make_interval(secs => greatest(
    (${waits}::float8[])[least(probes + 2, ${waits.length})], ${Math.min(answer.retryAfterSeconds ?? 0, RETRY_AFTER_SECONDS)}))
  WHERE webhook_id = ${webhookId} AND down`

/** Holds a delivery whose attempt was in flight when its webhook's hold began. */
export const collectLate = (sql: SqlClient.SqlClient, webhookId: string) => sql`
  UPDATE webhook_holds h SET collected = false FROM webhooks w
  WHERE h.webhook_id = ${webhookId} AND w.id = h.webhook_id AND h.collected AND (h.down OR w.status = 'PAUSED')`
