/**
 * Sends commands to Temporal (temporal/commands.ts). What a command says is read from the rows when it is sent: a delivery
 * that waits for its next attempt has a workflow that hears when that is due; one that ended or is queued needs none, and
 * a workflow that still runs hears of it; a canceled one's workflow is canceled. A command is removed after it was sent, if
 * it was not written again meanwhile; sending twice is harmless, and while one dispatcher sends a command, others leave it.
 * Drains, recoveries, notices and claims go first; of deliveries, organizations take turns.
 * The command of a claim stays until its first attempts have begun, and is sent again every ten seconds. Decision D-22.
 */
import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Array as Arr, Effect, Schema } from "effect"
import { IN_FLIGHT_MS } from "../../../workflows/contract.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import { TemporalConnection, type TemporalUnavailable } from "../../runtime/temporal/Connection.ts"
import { AGAIN_S, insertDeliveryCommands } from "../../runtime/temporal/commands.ts"
import { NotStarted, ToStart, WorkflowStarter } from "../deliveries/WorkflowStarter.ts"

/** Commands per batch that are not of deliveries, and of deliveries: those of one organization delay no other by more. */
const BATCH = 200,
  DELIVERIES = 50
/** Concurrent calls. */
const CONCURRENCY = 24
/** When a command that Temporal rejected is sent again, in seconds, and one that could not be sent. */
const REJECTED_S = 60,
  FAILED_S = 1

const Command = Schema.Struct({ key: Schema.String, id: Schema.Number, members: Schema.NullOr(Schema.Array(Schema.String)) })
type Command = typeof Command.Type

const decodeCommands = decodeRows(Command),
  decodeDeliveries = decodeRows(Schema.Struct({ ...ToStart.fields, status: Schema.String, waitMs: Schema.Number })),
  decodeWebhooks = decodeRows(
    Schema.Struct({
      key: Schema.String,
      organizationId: Schema.String,
      /** Null for a notice about an API key. */
      webhookId: Schema.NullOr(Schema.String),
      url: Schema.NullOr(Schema.String)
    })
  )

type Sending = Effect.Effect<void, NotStarted | TemporalUnavailable>
type Sendings = ReadonlyArray<readonly [key: string, Sending]>

export class CommandRelay extends Effect.Service<CommandRelay>()("custody/CommandRelay", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const temporal = yield* TemporalConnection
    const starter = yield* WorkflowStarter

    /** Takes what is due; it is due again later, in case that this process ends before it has sent it. */
    const take = decodeCommands(sql`
      WITH RECURSIVE organizations (id) AS (
        SELECT min(organization_id) FROM commands
        UNION ALL
        SELECT (SELECT min(c.organization_id) FROM commands c WHERE c.organization_id > o.id) FROM organizations o WHERE o.id IS NOT NULL
      ), others AS MATERIALIZED (
        SELECT key FROM commands WHERE organization_id IS NULL AND due <= clock_timestamp() ORDER BY due LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
      ), deliveries AS MATERIALIZED (
        SELECT mine.key FROM organizations o CROSS JOIN LATERAL (
          SELECT c.key, c.due FROM commands c WHERE c.organization_id = o.id AND c.due <= clock_timestamp()
          ORDER BY c.due LIMIT greatest(1, ${DELIVERIES}::int / (SELECT count(*) FROM organizations)) FOR UPDATE SKIP LOCKED) mine
        ORDER BY mine.due LIMIT ${DELIVERIES}
      ), due AS (
        SELECT key FROM others UNION ALL SELECT key FROM deliveries
      )
      UPDATE commands c SET due = clock_timestamp() + make_interval(secs => ${AGAIN_S}) FROM due WHERE c.key = due.key
      RETURNING c.key, c.id, c.members`)

    /** The existing ones of these deliveries, by id. The event of a redelivery may no longer be in the log; its workflow then ends it. */
    const deliveriesOf = (ids: ReadonlyArray<string>) =>
      Effect.map(
        decodeDeliveries(sql`
          SELECT d.id, w.organization_id AS "organizationId", d.event_id AS "eventId", d.webhook_id AS "webhookId", d.kind,
            coalesce(e.entity_id, '') AS "entityId", w.url, d.status, CASE
            WHEN EXISTS (SELECT 1 FROM delivery_attempts t JOIN processes p ON p.id = t.process_id WHERE t.delivery_id = d.id AND t.result IS NULL)
              THEN ${IN_FLIGHT_MS}::float8
            -- Postgres' clock was set back since the last attempt.
            WHEN clock_timestamp() < coalesce((SELECT max(t.at) FROM delivery_attempts t WHERE t.delivery_id = d.id), d.created_at) THEN 0::float8
            ELSE coalesce(greatest(0, ceil(extract(epoch FROM d.next_attempt_at - clock_timestamp()) * 1000)), 0)::float8 END AS "waitMs"
          FROM unnest(${ids}::text[]) AS a (id) JOIN deliveries d ON d.id = a.id JOIN webhooks w ON w.id = d.webhook_id
            LEFT JOIN events e ON e.id = d.event_id`),
        (rows) => new Map(rows.map((row) => [row.id, row]))
      )

    /** What to send for deliveries and claims. A claim of which no delivery waits for its first attempt needs nothing. */
    const ofDeliveries = (commands: ReadonlyArray<Command>): Effect.Effect<Sendings, SqlError.SqlError> =>
      Effect.map(deliveriesOf(commands.flatMap(({ key, members }) => members ?? [key])), (found) =>
        commands.flatMap(({ key, members }): Sendings => {
          const deliveries = (members ?? [key]).flatMap((id) => found.get(id) ?? [])
          if (members !== null) return deliveries.some(({ status }) => status === "PENDING") ? [[key, starter.startClaim(deliveries)]] : []
          return deliveries.map((delivery) => [key, wake(delivery)])
        })
      )

    const wake = ({ status, waitMs, ...delivery }: ToStart & { readonly status: string; readonly waitMs: number }): Sending =>
      status === "PENDING" || status === "RETRYING"
        ? starter.wakeDelivery(delivery, waitMs)
        : status === "CANCELED"
          ? starter.cancelIfRunning(delivery.id)
          : starter.wakeIfRunning(delivery.id)

    /** What to send for drains, recoveries and notices. */
    const ofWebhooks = (keys: ReadonlyArray<string>): Effect.Effect<Sendings, SqlError.SqlError> =>
      Effect.map(
        decodeWebhooks(sql`
          SELECT a.key, coalesce(w.organization_id, n.organization_id) AS "organizationId", w.id AS "webhookId", w.url FROM unnest(${keys}::text[]) AS a (key)
            LEFT JOIN recoveries r ON r.id = a.key LEFT JOIN notices n ON n.id = a.key AND n.sent_at IS NULL
            LEFT JOIN webhooks w ON w.id = coalesce(r.webhook_id, n.webhook_id, split_part(a.key, '/', 2))
          WHERE w.id IS NOT NULL OR n.id IS NOT NULL`),
        (rows) =>
          rows.flatMap(({ key, organizationId, url, webhookId }): Sendings => {
            if (key.startsWith("ntc_")) return [[key, starter.startNotice(key, { organizationId, webhookId })]]
            if (webhookId === null || url === null) return []
            const webhook = { organizationId, webhookId, url }
            return [[key, key.startsWith("rec_") ? starter.wakeRecovery(key, webhook) : starter.wakeDrain(webhook)]]
          })
      )

    /** What to send for each command, by key; nothing for what is gone. */
    const sendingsOf = Effect.fnUntraced(function* (commands: ReadonlyArray<Command>) {
      const [others, deliveries] = Arr.partition(commands, ({ key, members }) => members !== null || key.startsWith("del_"))
      return new Map<string, Sending>([
        ...(deliveries.length === 0 ? [] : yield* ofDeliveries(deliveries)),
        ...(others.length === 0 ? [] : yield* ofWebhooks(others.map(({ key }) => key)))
      ])
    })

    /** Sends a command. Returns what becomes of it: a claim's stays until its first attempts have begun. */
    const send = ({ key, members }: Command, sending: Sending | undefined): Effect.Effect<"done" | "stays" | "rejected" | "failed"> =>
      sending === undefined
        ? Effect.succeed("done")
        : Effect.matchEffect(sending, {
            onSuccess: () => Effect.succeed(members === null ? "done" : "stays"),
            onFailure: (error) =>
              error instanceof NotStarted && error.refused
                ? Effect.as(Effect.logError(`Temporal rejected the workflow of ${key}: ${error.message}`), "rejected")
                : Effect.as(Effect.logDebug(`a command could not be sent yet: ${error.message}`), "failed")
          })

    return {
      /** Sends what is due; a failed command is sent again by the next run. Returns whether more may be due. */
      relay: Effect.gen(function* () {
        for (;;) {
          if (!(yield* temporal.isAvailable)) return true
          const commands = yield* take
          if (commands.length === 0) return false
          const sendings = yield* sendingsOf(commands)
          const results = yield* Effect.forEach(
            commands,
            (command) => Effect.map(send(command, sendings.get(command.key)), (result) => [command.id, result] as const),
            { concurrency: CONCURRENCY }
          )
          failpoint("commands-sent")
          const { done = [], failed = [], rejected = [] } = Object.groupBy(results, ([, result]) => result)
          const ids = (of: typeof results) => of.map(([id]) => id)
          if (done.length > 0) yield* sql`DELETE FROM commands WHERE id = ANY(${ids(done)}::bigint[])`
          // Each delivery of a rejected claim is tried alone, and the dispatcher claims again.
          if (rejected.length > 0)
            yield* sql`
              WITH closed AS (DELETE FROM commands WHERE id = ANY(${ids(rejected)}::bigint[]) AND members IS NOT NULL RETURNING members)
              ${insertDeliveryCommands(sql, sql`SELECT d.id, d.organization_id FROM closed, unnest(members) m (id) JOIN deliveries d ON d.id = m.id`)}`
          for (const [waiting, seconds] of [
            [rejected, REJECTED_S],
            [failed, FAILED_S]
          ] as const)
            if (waiting.length > 0)
              yield* sql`UPDATE commands SET due = clock_timestamp() + make_interval(secs => ${seconds}) WHERE id = ANY(${ids(waiting)}::bigint[])`
          if (failed.length > 0) return true
        }
      })
    }
  })
}) {
  static readonly layer = this.Default
}
