/**
 * The worker's side of a ping: sends the signed test request, a `webhook.ping` or a sample event, and stores its result for the API. If the result cannot be
 * stored, the ping fails. Nothing is sent a second time, or after the API has stopped waiting. Spec: ping. Decision D-26, C-12.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import type { PingInput } from "../../../workflows/contract.ts"
import { isKind, PING } from "../../events/log/Kind.ts"
import { sampleEvent } from "../../events/log/sampleEvent.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { Bytes, decodeRows } from "../../runtime/database/decodeRows.ts"
import { whileUnavailable } from "../../runtime/database/unavailable.ts"
import { GONE, LONGEST } from "../deliveries/Pings.ts"
import * as gateway from "../gateway/gatewayCredentials.ts"
import * as signingSecret from "../webhooks/signingSecret.ts"
import { WebhookClient } from "./request/WebhookClient.ts"

/** Retries while Postgres is unavailable, for part of a ping's time. */
const soon = whileUnavailable("250 millis", "4 seconds")

/** The entity is null for a webhook without entities. */
const decode = decodeRows(
  Schema.Struct({
    url: Schema.String,
    entityId: Schema.NullOr(Schema.String),
    secrets: Schema.Array(Bytes),
    gatewayCredentials: Schema.NullOr(Bytes)
  })
)

export class PingSender extends Effect.Service<PingSender>()("custody/PingSender", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const webhookClient = yield* WebhookClient
    const master = yield* MasterKey

    return {
      send: ({ eventId, eventKind = PING, webhookId }: PingInput) =>
        Effect.gen(function* () {
          const begun = yield* soon(sql`
            UPDATE pings SET until = greatest(until + interval '1 second', clock_timestamp() + make_interval(secs => ${LONGEST}))
            WHERE event_id = ${eventId} RETURNING 1`)
          // The API no longer waits for it.
          if (begun.length === 0) return { result: GONE }
          const [webhook] = yield* soon(
            decode(sql`
            SELECT w.url, (SELECT min(we.entity_id) FROM webhook_entities we WHERE we.webhook_id = w.id) AS "entityId",
              ${signingSecret.live(sql, "w.id")} AS secrets, w.gateway_credentials AS "gatewayCredentials"
            FROM webhooks w WHERE w.id = ${webhookId} AND w.deleted_at IS NULL`)
          )
          if (webhook === undefined) return { result: GONE }
          const secrets = signingSecret.openAll(master, webhookId, webhook.secrets)
          const credentials = gateway.open(master, webhookId, webhook.gatewayCredentials)
          // A ping that no secret signs, or without its headers, is not sent.
          if (secrets.length === 0 || credentials === undefined)
            return yield* Effect.die(
              new Error("the webhook's secrets cannot be decrypted: was MASTER_KEY replaced without MASTER_KEY_PREVIOUS?")
            )
          const at = new Date().toISOString()
          // The kind of a newer API is unknown to this worker.
          const sampled = isKind(eventKind) ? eventKind : null
          const body =
            sampled === null
              ? JSON.stringify({
                  id: eventId,
                  kind: PING,
                  schemaVersion: 1,
                  date: at,
                  entityId: webhook.entityId,
                  vaultIds: null,
                  data: { webhookId }
                })
              : sampleEvent(eventId, sampled, at)
          const answer = yield* webhookClient
            .send({
              webhookId,
              url: webhook.url,
              eventId,
              kind: sampled ?? PING,
              test: sampled !== null,
              deliveryId: eventId.replace(/^evt_/, "del_"),
              attempt: 1,
              body,
              secrets,
              credentials,
              wanted: Effect.succeed(true),
              // A ping has one attempt, which must not be wasted on a connection that the endpoint is about to close.
              fresh: true,
              // It shows whether the credentials work now.
              newToken: true
            })
            .pipe(Effect.catchTag("Withdrawn", Effect.die))
          yield* soon(sql`
            UPDATE pings SET at = ${at}::timestamptz, result = ${answer.result}, http_status = ${answer.httpStatus},
              latency_ms = ${answer.latencyMs}, body_snippet = ${answer.bodySnippet}, detail = ${answer.detail}
            WHERE event_id = ${eventId} AND result IS NULL`)
          return { result: answer.result }
        })
    }
  })
}) {
  static readonly layer = this.Default
}
