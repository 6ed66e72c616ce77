/** The contract of the event log. Spec: List webhook events. Decisions D-9, D-28. */

import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { WebhookReadable, WebhooksReadable } from "../../access/visibility/scopeMiddleware.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { noQuery, pathId, query } from "../../http/Parameters.ts"
import { periodParams, withOneEnd } from "../../http/Period.ts"
import { InvalidList, InvalidRequest } from "../../http/Problem.ts"
import { GivenId } from "../../values/givenId.ts"
import { Event, EventDetail } from "./Event.ts"
import { KindName } from "./Kind.ts"

/** The path parameter of one event. */
export const eventPath = Schema.Struct({ eventId: pathId("event") })

/** The query of the list. */
export const EventsQuery = query({
  ...PageParams,
  kind: Schema.optional(KindName.annotations({ description: "Only this kind" })),
  vaultId: Schema.optional(GivenId.annotations({ description: "Only vault-scoped events that touch this vault" })),
  entityId: Schema.optional(GivenId.annotations({ description: "Only events of this entity" })),
  ...periodParams("Only")
}).pipe(withOneEnd)

export class EventsApi extends HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.get("listEvents", "/webhook-events")
      .setUrlParams(EventsQuery)
      .addSuccess(Page(Event, "WebhookEventPage"))
      .addError(InvalidList)
      .middleware(WebhooksReadable)
      .annotate(OpenApi.Summary, "List webhook events")
      .annotate(OpenApi.Description, "The event log of the last 31 days, most recent first, whether or not a webhook matched.")
  )
  .add(
    HttpApiEndpoint.get("getEvent", "/webhook-events/:eventId")
      .setPath(eventPath)
      .setUrlParams(noQuery)
      .addSuccess(EventDetail)
      .addError(InvalidRequest)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "Get a webhook event")
      .annotate(OpenApi.Description, "One event, with the number of webhooks that matched and its deliveries by status.")
  )
  .annotate(OpenApi.Title, "Event log")
  .annotate(OpenApi.Description, "Every event is recorded and kept for 31 days. Scope `webhook:read`.") {}
