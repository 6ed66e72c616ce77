/** The contract of deliveries: histories, redelivery, ping. Spec: Webhook operations; List event deliveries. Decisions D-22, D-26, D-27. */

import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { InsufficientScope, OwnerRequired, WebhookReadable } from "../../access/visibility/scopeMiddleware.ts"
import { eventPath } from "../../events/log/EventsApi.ts"
import { KindName } from "../../events/log/Kind.ts"
import { InvalidBody, optionalInDocument, PayloadTooLarge, UnsupportedMediaType } from "../../http/Body.ts"
import { IdempotencyHeaders, IdempotencyInProgress, IdempotencyKeyReused } from "../../http/Idempotency.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { noQuery, pathId, query } from "../../http/Parameters.ts"
import { InvalidList, InvalidRequest, problems } from "../../http/Problem.ts"
import { GivenId } from "../../values/givenId.ts"
import { TimestampFrom, TimestampParam } from "../../values/Timestamp.ts"
import { PingResult, PingWebhook } from "../webhooks/Webhook.ts"
import { webhookPath } from "../webhooks/WebhooksApi.ts"
import { Delivery, DeliveryStatus } from "./Delivery.ts"

/** A delivery's number in a query. C-2. */
const Sequence = Schema.transform(
  Schema.String.pipe(
    Schema.filter((text) => (/^\d{1,15}$/.test(text) && Number(text) >= 1) || "must be a whole number of at least 1")
  ).annotations({ jsonSchema: { type: "integer", minimum: 1 } }),
  Schema.Number,
  { strict: true, decode: Number, encode: String }
)

const NotRedeliverable = problems("NotRedeliverable", "webhook_disabled", "redelivery_limit_reached")

/** The query of a webhook's deliveries. */
export const DeliveriesQuery = query({
  ...PageParams,
  status: Schema.optional(Schema.Array(DeliveryStatus).annotations({ description: "Only these statuses; may be given several times" })),
  kind: Schema.optional(KindName.annotations({ description: "Only deliveries of events of this kind" })),
  sequence: Schema.optional(Sequence.annotations({ description: "Only the delivery with this number" })),
  eventId: Schema.optional(GivenId.annotations({ description: "Only deliveries of this event" })),
  createdAfter: Schema.optional(TimestampFrom.annotations({ description: "Only created at or after this" })),
  createdBefore: Schema.optional(TimestampParam.annotations({ description: "Only created at or before this" }))
})

export class DeliveriesApi extends HttpApiGroup.make("deliveries")
  .add(
    HttpApiEndpoint.get("listWebhookDeliveries", "/webhooks/:webhookId/deliveries")
      .setPath(webhookPath)
      .setUrlParams(DeliveriesQuery)
      .addSuccess(Page(Delivery, "DeliveryPage"))
      .addError(InvalidList)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "List a webhook's deliveries")
      .annotate(OpenApi.Description, "Delivery history with every attempt, newest first.")
  )
  .add(
    HttpApiEndpoint.get("listEventDeliveries", "/webhook-events/:eventId/deliveries")
      .setPath(eventPath)
      .setUrlParams(noQuery)
      .addSuccess(Schema.Struct({ data: Schema.Array(Delivery) }).annotations({ identifier: "EventDeliveries" }))
      .addError(InvalidRequest)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "List an event's deliveries")
      .annotate(
        OpenApi.Description,
        "All deliveries, without pagination. An empty list for a dispatched event means that no webhook matched it (compare `matchedCount`)."
      )
  )
  .add(
    HttpApiEndpoint.post("redeliver", "/webhook-deliveries/:deliveryId/redeliver")
      .setPath(Schema.Struct({ deliveryId: pathId("delivery") }))
      .setUrlParams(noQuery)
      .setHeaders(IdempotencyHeaders)
      .addSuccess(Delivery, { status: 202 })
      .addError(InvalidBody)
      .addError(PayloadTooLarge)
      .addError(UnsupportedMediaType)
      .addError(InsufficientScope)
      .addError(OwnerRequired)
      .addError(NotRedeliverable)
      .addError(IdempotencyInProgress)
      .addError(IdempotencyKeyReused)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "Redeliver")
      .annotate(
        OpenApi.Description,
        "Creates a new delivery of the same event, to the webhook's current URL and signed with its current secrets. An event with 200 deliveries is not redelivered. Accepts `Idempotency-Key`."
      )
  )
  .add(
    HttpApiEndpoint.post("pingWebhook", "/webhooks/:webhookId/ping")
      .setPath(webhookPath)
      .setUrlParams(noQuery)
      .setPayload(PingWebhook)
      .addSuccess(PingResult)
      .addError(InvalidBody)
      .addError(PayloadTooLarge)
      .addError(UnsupportedMediaType)
      .addError(InsufficientScope)
      .addError(OwnerRequired)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "Ping a webhook")
      .annotate(
        OpenApi.Description,
        "Sends a signed test POST and returns the result; 200 even if the endpoint failed. With `eventKind`, it is a complete sample event of that kind, marked by the header `X-Service-Test` and by `data.test`: its ids name nothing, and amounts are 0. At most 6 per minute, and 20 of an organization in progress at a time; beyond that 429."
      )
      .annotate(OpenApi.Transform, optionalInDocument)
  )
  .annotate(OpenApi.Title, "Deliveries")
  .annotate(OpenApi.Description, "Delivery history, redelivery and pings.") {}
