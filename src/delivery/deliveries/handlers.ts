/** The handlers of the delivery routes. Spec: Webhook operations; List event deliveries. */

import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option } from "effect"
import { callerOf, Principal } from "../../access/credentials/Principal.ts"
import { slidingWindows } from "../../access/limits/SlidingWindows.ts"
import { reads, turns } from "../../access/visibility/Admission.ts"
import { withBody } from "../../access/visibility/withBody.ts"
import { Api } from "../../app/Api.ts"
import { EventsRepo } from "../../events/log/EventsRepo.ts"
import * as Body from "../../http/Body.ts"
import { handler } from "../../http/handler.ts"
import * as Idempotency from "../../http/Idempotency.ts"
import { answerJson, Pages } from "../../http/Page.ts"
import { notFound, problem } from "../../http/Problem.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { PingWebhook } from "../webhooks/Webhook.ts"
import { requireManageable, WebhooksRepo } from "../webhooks/WebhooksRepo.ts"
import { DeliveriesRepo } from "./DeliveriesRepo.ts"
import { PINGS_A_MINUTE, Pings } from "./Pings.ts"
import { redeliver, requireRedeliverable } from "./redeliver.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "deliveries",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const inTurn = yield* turns
    const bodied = yield* withBody
    const pages = yield* Pages
    const webhooks = yield* WebhooksRepo
    const events = yield* EventsRepo
    const deliveries = yield* DeliveriesRepo
    const pings = yield* Pings
    const sql = yield* SqlClient.SqlClient
    const master = yield* MasterKey
    const pinged = yield* slidingWindows({ name: "ping", limit: PINGS_A_MINUTE, windowMs: 60_000 })
    const { rateLimit, webhookRetrySchedule } = yield* Settings

    const spendPing = (webhookId: string) =>
      rateLimit === null
        ? Effect.void
        : Effect.flatMap(pinged.take(webhookId), (wait) =>
            wait === 0
              ? Effect.void
              : problem("rate_limited", `A webhook can be pinged ${PINGS_A_MINUTE} times a minute.`, {
                  headers: { "retry-after": String(Math.ceil(wait / 1_000)) }
                })
          )

    return handlers
      .handleRaw(
        "listWebhookDeliveries",
        read("listWebhookDeliveries", ({ path: { webhookId }, urlParams: { cursor, limit, ...filters } }) =>
          Effect.gen(function* () {
            const principal = yield* Principal
            const page = yield* pages.cut({
              of: { list: "deliveries", path: [webhookId], filters },
              limit,
              cursor,
              keyLength: 2,
              fetch: (after, take) => deliveries.ofWebhook(principal, webhookId, filters, after, take),
              keyOf: (row) => [row.createdAt, row.id]
            })
            // A webhook that the caller cannot see has no deliveries.
            if (page.rows.length === 0 && Option.isNone(yield* webhooks.find(principal, webhookId))) return yield* notFound()
            return answerJson(page, JSON.stringify)
          })
        )
      )
      .handle(
        "listEventDeliveries",
        read("listEventDeliveries", ({ path: { eventId } }) =>
          Effect.gen(function* () {
            const principal = yield* Principal
            if (Option.isNone(yield* events.find(principal, eventId))) return yield* notFound()
            return { data: yield* deliveries.ofEvent(principal, eventId) }
          })
        )
      )
      .handleRaw(
        "redeliver",
        handler("redeliver", ({ path: { deliveryId } }) =>
          Effect.gen(function* () {
            // Permission is checked before the response to an earlier request with the same Idempotency-Key is returned.
            const { principal } = yield* bodied((caller) => inTurn(requireRedeliverable(sql, caller, deliveryId)), Body.none)
            const made = Effect.map(redeliver(sql, webhookRetrySchedule, principal, deliveryId), (delivery) => ({
              status: 202,
              body: delivery
            }))
            return yield* inTurn(Idempotency.once(sql, callerOf(principal), Idempotency.NO_BODY, made))
          }).pipe(Effect.provideService(MasterKey, master), dieOnSql)
        ),
        { uninterruptible: true }
      )
      .handleRaw(
        "pingWebhook",
        handler("pingWebhook", ({ path: { webhookId } }) =>
          Effect.gen(function* () {
            const { body, principal } = yield* bodied(
              (caller) => inTurn(requireManageable(webhooks, caller, webhookId)),
              Body.optional(PingWebhook)
            )
            yield* spendPing(webhookId)
            return HttpServerResponse.unsafeJson(yield* pings.ping(inTurn(pings.enter(principal, webhookId, body.eventKind))))
          }).pipe(dieOnSql)
        )
      )
  })
)
