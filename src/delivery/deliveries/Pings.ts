/**
 * Pings: one signed test request, a `webhook.ping` or a sample event, sent by a worker, whose result is returned directly. A ping is not in the log, does not
 * affect health, and works while the webhook is disabled. A workflow sends it, so the API role needs no outbound internet
 * access. Spec: ping. Decision D-26, C-12.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Fiber, Schema } from "effect"
import { type PingInput, searchKeys, workflows } from "../../../workflows/contract.ts"
import { changed, recordOf } from "../../access/audit/AuditTrail.ts"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { type Kind, PING } from "../../events/log/Kind.ts"
import { notFound, problem } from "../../http/Problem.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { TemporalConnection } from "../../runtime/temporal/Connection.ts"
import * as Id from "../../values/Id.ts"
import { PingResult } from "../webhooks/Webhook.ts"
import { NotStarted, WorkflowStarter } from "./WorkflowStarter.ts"

/** The outcome of a ping whose webhook was deleted in the meantime, or for which the API no longer waits. */
export const GONE = "gone"
/** Pings per webhook and minute. Decision D-26. */
export const PINGS_A_MINUTE = 6
/** Most pings of one organization in flight, over all processes. */
const IN_FLIGHT = 20
/**
 * For how many seconds a ping counts as in flight if its process is killed: from its request until a worker begins it, and
 * again from then on. The API waits less: first for the beginning, then for the result.
 */
export const LONGEST = 20
const BEGINNING = "14 seconds",
  RESULT = "17 seconds"

const decodeTimes = decodeRows(Schema.Struct({ until: Schema.String }))
const decodeResults = decodeRows(PingResult.omit("success"))

/** A ping in flight: when that ends if its process is killed. */
export interface Entered {
  readonly organizationId: string
  readonly webhookId: string
  readonly eventId: string
  /** The kind of the sample event to send; undefined for a `webhook.ping`. */
  readonly eventKind: Kind | undefined
  readonly until: string
}

/** The API's side: starts a ping and waits for its result. */
export class Pings extends Effect.Service<Pings>()("custody/Pings", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const temporal = yield* TemporalConnection
    const { withSearchAttributes } = yield* WorkflowStarter
    const away = () =>
      problem("service_unavailable", "No worker is available to send the ping. Try again.", { headers: { "retry-after": "5" } })

    const tooMany = () =>
      problem("rate_limited", `At most ${IN_FLIGHT} pings of an organization can be in flight. Try again when one has ended.`, {
        headers: { "retry-after": "10" }
      })

    /** Records the ping as in flight; fails with 429 if the organization has too many. */
    const enter = (principal: PrincipalState, webhookId: string, eventKind: Kind | undefined) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const { organizationId } = principal
          const eventId = Id.make("evt")
          yield* sql`SELECT pg_advisory_xact_lock(hashtextextended(${`pings ${organizationId}`}, 0))`
          const inFlight = yield* sql`
            SELECT 1 FROM pings WHERE organization_id = ${organizationId} AND result IS NULL AND until > clock_timestamp()`
          if (inFlight.length >= IN_FLIGHT) return yield* tooMany()
          const [row] = yield* decodeTimes(sql`
            INSERT INTO pings (event_id, webhook_id, organization_id, at, until)
            VALUES (${eventId}, ${webhookId}, ${organizationId}, clock_timestamp(), clock_timestamp() + make_interval(secs => ${LONGEST}))
            RETURNING until::text AS until`)
          // Before the ping, which cannot be undone.
          const changes = changed(["eventKind"], undefined, { eventKind })
          yield* recordOf(sql, principal, "webhook.pinged", { type: "webhook", id: webhookId }, changes)
          return { organizationId, webhookId, eventId, eventKind, until: row?.until ?? "" } satisfies Entered
        })
      )
    /** Withdraws a ping that no worker has begun, so that none sends it later. Fails if it has been begun. */
    const withdraw = (eventId: string, until: string) =>
      Effect.filterOrFail(
        sql`DELETE FROM pings WHERE event_id = ${eventId} AND result IS NULL AND until = ${until}::timestamptz RETURNING 1`,
        (rows) => rows.length > 0
      )
    const leave = (eventId: string) => Effect.ignore(sql`DELETE FROM pings WHERE event_id = ${eventId} AND result IS NULL`)

    const execute = ({ eventId, eventKind, organizationId, until, webhookId }: Entered) =>
      Effect.gen(function* () {
        const { client } = yield* Effect.mapError(temporal.now, away)
        const run = (asIndexed: boolean) =>
          client.workflow.execute(workflows.ping, {
            workflowId: `ping/${eventId}`,
            taskQueue: temporal.taskQueue,
            args: [{ webhookId, eventId, ...(eventKind === undefined ? {} : { eventKind }) } satisfies PingInput],
            workflowExecutionTimeout: "33 seconds",
            // A worker that is killed during a task is detected after this time, and another one continues.
            workflowTaskTimeout: "5 seconds",
            // A client is waiting for it, so it has priority over deliveries and notices, whose priority is 3.
            priority: { priorityKey: 1, fairnessKey: organizationId },
            staticSummary: eventKind ?? PING,
            ...(asIndexed
              ? {
                  typedSearchAttributes: [
                    { key: searchKeys.organizationId, value: organizationId },
                    { key: searchKeys.webhookId, value: webhookId }
                  ]
                }
              : {})
          })
        const running = yield* Effect.fork(
          withSearchAttributes((asIndexed) => Effect.tryPromise({ try: () => run(asIndexed), catch: (cause) => new NotStarted({ cause }) }))
        )
        // On a busy machine a worker may begin late; the endpoint still gets the time of any attempt.
        const begun = Effect.timeout(Fiber.join(running), RESULT)
        const { result: outcome } = yield* Effect.timeout(Fiber.join(running), BEGINNING).pipe(
          Effect.catchTag("TimeoutException", (late) =>
            Effect.matchEffect(withdraw(eventId, until), { onFailure: () => begun, onSuccess: () => Effect.fail(late) })
          ),
          Effect.tapError((error) => Effect.logWarning(`the webhook ${webhookId} could not be pinged`, error)),
          Effect.mapError(away)
        )
        // Deleted between the check and the request.
        if (outcome === GONE) return yield* notFound()
        const [row] = yield* decodeResults(sql`
            SELECT webhook_id AS "webhookId", event_id AS "eventId", at, result, http_status AS "httpStatus", latency_ms AS "latencyMs",
              body_snippet AS "bodySnippet", detail FROM pings WHERE event_id = ${eventId} AND result IS NOT NULL`)
        if (row === undefined) return yield* away()
        const { at, bodySnippet, detail, httpStatus, latencyMs, result } = row
        return { webhookId, eventId, at, success: result === "2xx", result, httpStatus, latencyMs, bodySnippet, detail }
      })

    return {
      /** Records a ping of a webhook. Fails with `rate_limited` if the organization has too many pings in flight. */
      enter,

      /** Sends a recorded ping; succeeds even if the endpoint failed. Fails with `service_unavailable` if no worker sends it. */
      ping: <E, R>(entered: Effect.Effect<Entered, E, R>) => Effect.acquireUseRelease(entered, execute, ({ eventId }) => leave(eventId))
    }
  })
}) {
  static readonly layer = this.Default
}
