/**
 * Pings: one signed test request, sent by a worker, its live result handed back. Not in the log, no effect on health,
 * allowed while the webhook is disabled. The request is made by a workflow, so that the API role needs no way out to
 * the internet. Spec: ping. Decision D-26.
 */
import { SqlClient } from "@effect/sql"
import { Effect, Schedule } from "effect"
import { workflows } from "../../workflows/contract.ts"
import { isUnavailable } from "../database/Database.ts"
import { PING } from "../events/Kind.ts"
import { MasterKey } from "../http/MasterKey.ts"
import { notFound, problem } from "../http/Problem.ts"
import { TemporalConnection } from "../temporal/Connection.ts"
import * as Id from "../values/Id.ts"
import * as Secret from "../webhooks/Secret.ts"
import type { PingResult } from "../webhooks/Webhook.ts"
import { Sender } from "./Sender.ts"

/** The outcome of a ping whose webhook is gone. */
const GONE = "gone"

/** The API's side: asks for a ping and waits for its result. */
export class Pings extends Effect.Service<Pings>()("custody/Pings", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const temporal = yield* TemporalConnection
    const away = () =>
      problem("service_unavailable", "No worker can send a ping right now. Try again.", { headers: { "retry-after": "5" } })

    return {
      /** Pings a webhook; answers also when the endpoint failed. */
      ping: (webhookId: string) =>
        Effect.gen(function* () {
          const { client } = yield* Effect.mapError(temporal.now, away)
          const eventId = Id.make("evt")
          const { result: outcome } = yield* Effect.tryPromise(() =>
            client.workflow.execute(workflows.ping, {
              workflowId: `ping/${eventId}`,
              taskQueue: temporal.taskQueue,
              args: [{ webhookId, eventId }],
              workflowExecutionTimeout: "15 seconds",
              // As long as the whole: a task that a worker took and died with is not run again by another, so nothing is sent twice.
              workflowTaskTimeout: "15 seconds",
              // Somebody waits for it: it goes before the deliveries and notices of however many webhooks, whose priority is 3.
              priority: { priorityKey: 1 },
              staticSummary: PING
            })
          ).pipe(
            Effect.timeout("16 seconds"),
            Effect.tapError((error) => Effect.logWarning(`the webhook ${webhookId} could not be pinged`, error)),
            Effect.mapError(away)
          )
          // Deleted between the question and the request.
          if (outcome === GONE) return yield* notFound()
          const [row] = yield* sql<Omit<PingResult, "success">>`
            SELECT webhook_id AS "webhookId", event_id AS "eventId", at, result, http_status AS "httpStatus", latency_ms AS "latencyMs",
              body_snippet AS "bodySnippet" FROM pings WHERE event_id = ${eventId}`
          if (row === undefined) return yield* away()
          const { at, bodySnippet, httpStatus, latencyMs, result } = row
          return { webhookId, eventId, at, success: result === "2xx", result, httpStatus, latencyMs, bodySnippet }
        })
    }
  })
}) {
  static readonly layer = this.Default
}

/** Tries again while Postgres cannot answer, for a part of the time that a ping has. */
const soon = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.retry(effect, { while: isUnavailable, schedule: Schedule.spaced("250 millis").pipe(Schedule.upTo("4 seconds")) })

/** The worker's side: sends the request and keeps its result for the API to read. */
export class PingSender extends Effect.Service<PingSender>()("custody/PingSender", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const sender = yield* Sender
    const master = yield* MasterKey

    return {
      send: (webhookId: string, eventId: string) =>
        Effect.gen(function* () {
          const [webhook] = yield* soon(sql<{ url: string; entityId: string; secrets: ReadonlyArray<Buffer> }>`
            SELECT w.url, (SELECT min(we.entity_id) FROM webhook_entities we WHERE we.webhook_id = w.id) AS "entityId",
              ${Secret.live(sql, "w.id")} AS secrets
            FROM webhooks w WHERE w.id = ${webhookId} AND w.deleted_at IS NULL`)
          if (webhook === undefined) return { result: GONE }
          const secrets = Secret.openAll(master, webhookId, webhook.secrets)
          // Better no ping than one that nobody can verify.
          if (secrets.length === 0)
            return yield* Effect.die(new Error("no signing secret can be opened: was MASTER_KEY replaced without MASTER_KEY_PREVIOUS?"))
          const at = new Date().toISOString()
          const body = JSON.stringify({
            id: eventId,
            kind: PING,
            schemaVersion: 1,
            date: at,
            entityId: webhook.entityId,
            vaultIds: null,
            data: { webhookId }
          })
          const answer = yield* sender
            .send({
              url: webhook.url,
              eventId,
              kind: PING,
              deliveryId: eventId.replace(/^evt_/, "del_"),
              attempt: 1,
              body,
              secrets,
              wanted: Effect.succeed(true)
            })
            .pipe(Effect.catchTag("Withdrawn", Effect.die))
          yield* soon(sql`
            INSERT INTO pings (event_id, webhook_id, at, result, http_status, latency_ms, body_snippet)
            VALUES (${eventId}, ${webhookId}, ${at}::timestamptz, ${answer.result}, ${answer.httpStatus}, ${answer.latencyMs}, ${answer.bodySnippet})
            ON CONFLICT (event_id) DO NOTHING`)
          return { result: answer.result }
        })
    }
  })
}) {
  static readonly layer = this.Default
}
