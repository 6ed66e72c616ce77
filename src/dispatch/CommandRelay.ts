/**
 * Sends commands to Temporal (temporal/commands.ts). What a command says is read from the rows when it is sent: a delivery
 * that waits for its next attempt has a workflow that is told when that is due; one that ended or is queued needs none, and
 * a workflow that still runs hears of it; a canceled one's workflow is canceled. A command is removed after it was sent, if
 * it was not written again meanwhile; sending twice is harmless. The command of a claim stays until its first attempts have
 * begun, and is sent again every ten seconds. Decision D-22.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { IN_FLIGHT_MS } from "../../workflows/contract.ts"
import { decodeRows } from "../database/decodeRows.ts"
import { deliveriesToStart, toStartColumns, toStartJoins } from "../deliveries/deliveriesToStart.ts"
import { NotStarted, ToStart, WorkflowStarter } from "../deliveries/WorkflowStarter.ts"
import { TemporalConnection, type TemporalUnavailable } from "../temporal/Connection.ts"
import { CLAIM_AGAIN_S, insertCommands } from "../temporal/commands.ts"

/** Commands per batch, and concurrent calls. */
const BATCH = 200,
  CONCURRENCY = 24
/** When a command that Temporal rejected is sent again, in seconds. */
const REJECTED_S = 60

const Command = Schema.Struct({ key: Schema.String, id: Schema.Number, members: Schema.NullOr(Schema.Array(Schema.String)) })
type Command = typeof Command.Type
const OfWebhook = Schema.Struct({ key: Schema.String, organizationId: Schema.String, webhookId: Schema.String, url: Schema.String })

const decodeCommands = decodeRows(Command),
  decodeDeliveries = decodeRows(Schema.Struct({ ...ToStart.fields, status: Schema.String, waitMs: Schema.Number })),
  decodeWebhooks = decodeRows(OfWebhook)

export class CommandRelay extends Effect.Service<CommandRelay>()("custody/CommandRelay", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const temporal = yield* TemporalConnection
    const starter = yield* WorkflowStarter

    const due = decodeCommands(sql`
      SELECT key, id, members FROM commands WHERE due <= clock_timestamp() ORDER BY due LIMIT ${BATCH}`)

    type Sending = Effect.Effect<void, NotStarted | TemporalUnavailable>

    /** What to send for commands of deliveries, by key; the command of a delivery that is gone needs nothing. */
    const deliveries = (keys: ReadonlyArray<string>) =>
      Effect.map(
        decodeDeliveries(sql`
          SELECT ${sql.literal(toStartColumns)}, d.status, CASE
            WHEN EXISTS (SELECT 1 FROM delivery_attempts t JOIN processes p ON p.id = t.process_id WHERE t.delivery_id = d.id AND t.result IS NULL)
              THEN ${IN_FLIGHT_MS}::float8
            ELSE coalesce(greatest(0, ceil(extract(epoch FROM d.next_attempt_at - clock_timestamp()) * 1000)), 0)::float8 END AS "waitMs"
          FROM unnest(${keys}::text[]) AS a (id) JOIN deliveries d ON d.id = a.id ${sql.literal(toStartJoins)}`),
        (rows) =>
          rows.map(({ status, waitMs, ...delivery }): readonly [string, Sending] => [
            delivery.id,
            status === "PENDING" || status === "RETRYING"
              ? starter.wakeDelivery(delivery, waitMs)
              : status === "CANCELED"
                ? starter.cancelIfRunning(delivery.id)
                : starter.wakeIfRunning(delivery.id)
          ])
      )

    const drains = (keys: ReadonlyArray<string>) =>
      Effect.map(
        decodeWebhooks(sql`
          SELECT a.key, w.organization_id AS "organizationId", w.id AS "webhookId", w.url
          FROM unnest(${keys}::text[]) AS a (key) JOIN webhooks w ON w.id = split_part(a.key, '/', 2)`),
        (rows) => rows.map(({ key, ...webhook }): readonly [string, Sending] => [key, starter.wakeDrain(webhook)])
      )

    const recoveries = (keys: ReadonlyArray<string>) =>
      Effect.map(
        decodeWebhooks(sql`
          SELECT r.id AS key, r.organization_id AS "organizationId", w.id AS "webhookId", w.url
          FROM unnest(${keys}::text[]) AS a (key) JOIN recoveries r ON r.id = a.key JOIN webhooks w ON w.id = r.webhook_id`),
        (rows) => rows.map(({ key, ...webhook }): readonly [string, Sending] => [key, starter.wakeRecovery(key, webhook)])
      )

    const notices = (keys: ReadonlyArray<string>) =>
      Effect.map(
        decodeWebhooks(sql`
          SELECT n.id AS key, n.organization_id AS "organizationId", n.webhook_id AS "webhookId", '' AS url
          FROM unnest(${keys}::text[]) AS a (key) JOIN notices n ON n.id = a.key WHERE n.sent_at IS NULL`),
        (rows) => rows.map(({ key, ...webhook }): readonly [string, Sending] => [key, starter.startNotice(key, webhook)])
      )

    /** A claim of which no delivery waits for its first attempt needs nothing. */
    const claims = (commands: ReadonlyArray<Command>) =>
      Effect.map(
        Effect.forEach(commands, ({ key, members }) =>
          Effect.map(deliveriesToStart(sql, members ?? []), (found) =>
            found.some(({ status }) => status === "PENDING") ? [[key, starter.startClaim(found)] as const] : []
          )
        ),
        (all): ReadonlyArray<readonly [string, Sending]> => all.flat()
      )

    /** What to send for each command, by key. */
    const sendings = Effect.fnUntraced(function* (commands: ReadonlyArray<Command>) {
      const keys = (prefix: string) => commands.flatMap(({ key }) => (key.startsWith(prefix) ? [key] : []))
      const some = <E, R>(
        of: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<readonly [string, Sending]>, E, R>,
        prefix: string
      ) => {
        const found = keys(prefix)
        return found.length === 0 ? Effect.succeed([]) : of(found)
      }
      return new Map<string, Sending>([
        ...(yield* some(deliveries, "del_")),
        ...(yield* some(drains, "drain/")),
        ...(yield* some(recoveries, "rec_")),
        ...(yield* some(notices, "ntc_")),
        ...(yield* claims(commands.filter(({ members }) => members !== null)))
      ])
    })

    return {
      /** Sends what is due; a failed command is sent again by the next run. Returns whether more may be due. */
      relay: Effect.gen(function* () {
        for (;;) {
          const commands = yield* due
          if (commands.length === 0) return false
          if (!(yield* temporal.isAvailable)) return true
          const all = yield* sendings(commands)
          const results = yield* Effect.forEach(
            commands,
            (one): Effect.Effect<readonly [id: number, "again" | "done" | "rejected" | "failed"]> =>
              Effect.matchEffect(all.get(one.key) ?? Effect.void, {
                // A claim's command stays until its first attempts have begun.
                onSuccess: () => Effect.succeed([one.id, one.members !== null && all.has(one.key) ? "again" : "done"] as const),
                onFailure: (error): Effect.Effect<readonly [id: number, "rejected" | "failed"]> =>
                  error instanceof NotStarted && error.refused
                    ? Effect.as(Effect.logError(`Temporal rejected the workflow of ${one.key}: ${error.message}`), [
                        one.id,
                        "rejected"
                      ] as const)
                    : Effect.as(Effect.logDebug(`a command could not be sent yet: ${error.message}`), [one.id, "failed"] as const)
              }),
            { concurrency: CONCURRENCY }
          )
          // failpoint: commands-sent
          const of = (what: (typeof results)[number][1]) => results.flatMap(([id, result]) => (result === what ? [id] : []))
          const [again, done, rejected] = [of("again"), of("done"), of("rejected")]
          if (done.length > 0) yield* sql`DELETE FROM commands WHERE id = ANY(${done}::bigint[])`
          // Each delivery of a rejected claim is tried alone, and the dispatcher claims again.
          if (rejected.length > 0)
            yield* sql`
              WITH closed AS (DELETE FROM commands WHERE id = ANY(${rejected}::bigint[]) AND members IS NOT NULL RETURNING members)
              ${insertCommands(sql, sql`SELECT unnest(members) FROM closed`)}`
          for (const [ids, seconds] of [
            [again, CLAIM_AGAIN_S],
            [rejected, REJECTED_S]
          ] as const)
            if (ids.length > 0)
              yield* sql`UPDATE commands SET due = clock_timestamp() + make_interval(secs => ${seconds}) WHERE id = ANY(${ids}::bigint[])`
          if (of("failed").length > 0) return true
          if (commands.length < BATCH) return false
        }
      })
    }
  })
}) {
  static readonly layer = this.Default
}
