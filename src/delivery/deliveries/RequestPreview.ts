/**
 * A delivery's request as it would be sent now, for developers who write the code that verifies it: headers with signatures
 * of the valid secrets, and the body. Nothing is sent. Requires the same permission as a redelivery. Decision D-24.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { notFound } from "../../http/Problem.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { Bytes, decodeRows } from "../../runtime/database/decodeRows.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import * as Secret from "../webhooks/signingSecret.ts"
import { requireRedeliverable } from "./redeliver.ts"
import * as sign from "./signatureHeaders.ts"

const decode = decodeRows(
  Schema.Struct({
    eventId: Schema.String,
    webhookId: Schema.String,
    kind: Schema.String,
    sequence: Schema.Number,
    url: Schema.String,
    body: Schema.String,
    attempts: Schema.Number,
    secrets: Schema.Array(Bytes),
    headerNames: Schema.Array(Schema.String),
    hasToken: Schema.Boolean
  })
)

/** The request that an attempt would send. */
export const PreparedRequest = Schema.Struct({
  url: Schema.String,
  headers: Schema.Record({ key: Schema.String, value: Schema.String }),
  body: Schema.String
})
export type PreparedRequest = typeof PreparedRequest.Type

export class RequestPreview extends Effect.Service<RequestPreview>()("custody/RequestPreview", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const master = yield* MasterKey

    return {
      /** The request of a delivery's next attempt, signed for this second. */
      signed: (principal: PrincipalState, deliveryId: string) =>
        Effect.gen(function* () {
          yield* requireRedeliverable(sql, principal, deliveryId)
          const [row] = yield* decode(sql`
          SELECT d.event_id AS "eventId", d.webhook_id AS "webhookId", d.kind, d.sequence, w.url, e.payload AS body,
            (SELECT count(*) FROM delivery_attempts t WHERE t.delivery_id = d.id) AS attempts,
            ${Secret.live(sql, "d.webhook_id")} AS secrets, w.header_names AS "headerNames",
            w.oauth IS NOT NULL AS "hasToken"
          FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id JOIN events e ON e.id = d.event_id WHERE d.id = ${deliveryId}`)
          if (row === undefined) return yield* notFound()
          const { attempts, body, eventId, hasToken, headerNames, kind, secrets, sequence, url, webhookId } = row
          const headers = sign.headers({
            id: eventId,
            timestamp: Math.floor(Date.now() / 1_000),
            body,
            secrets: Secret.openAll(master, webhookId, secrets)
          })
          return {
            url,
            headers: {
              // Their values are secrets.
              ...Object.fromEntries(headerNames.map((name) => [name, "***"])),
              ...(hasToken ? { authorization: "Bearer ***" } : {}),
              ...sign.descriptive({ deliveryId, attempt: attempts + 1, kind, sequence }),
              ...headers
            },
            body
          } satisfies PreparedRequest
        }).pipe(dieOnSql)
    }
  })
}) {
  static readonly layer = this.Default
}
