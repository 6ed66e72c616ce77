/** The contract of the event feed. C-1. */

import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { WebhooksReadable } from "../access/scopeMiddleware.ts"
import { Event } from "../events/Event.ts"
import { MAX_LIMIT, PageParams } from "../http/Page.ts"
import { query } from "../http/Parameters.ts"
import { InvalidList, problems } from "../http/Problem.ts"
import { GivenId } from "../values/givenId.ts"

/** Longest that an answer is held, in seconds. */
export const MAX_WAIT = 30

const Wait = Schema.transform(
  Schema.String.pipe(
    Schema.filter((text) => (/^\d{1,2}$/.test(text) && Number(text) <= MAX_WAIT) || `must be a whole number from 0 to ${MAX_WAIT}`)
  ).annotations({ jsonSchema: { type: "integer", minimum: 0, maximum: MAX_WAIT, default: 0 } }),
  Schema.Number,
  { strict: true, decode: Number, encode: String }
).annotations({ description: "Seconds that the answer is held until there is an event, 0 when absent" })

const anyOf = (description: string) =>
  Schema.optional(Schema.Array(GivenId).annotations({ description: `${description}; may be given several times` }))

const place = {
  after: Schema.optional(
    Schema.String.annotations({
      jsonSchema: {
        type: "string",
        maxLength: 256,
        description: "A `resumeCursor`: only what was recorded after it. Absent: the whole log"
      }
    })
  ),
  from: Schema.optional(
    Schema.Literal("now").annotations({ description: "`now`: only what is recorded from now on. Not together with `after`" })
  )
}

const filters = {
  kind: anyOf("Only events of this kind"),
  vaultId: anyOf("Only vault-scoped events of this vault"),
  entityId: anyOf("Only events of this entity")
}

const CursorExpired = problems("CursorExpired", "cursor_expired")
const TooManyStreams = problems("TooManyStreams", "too_many_streams")

const Feed = Schema.Struct({
  data: Schema.Array(Event),
  pagination: Schema.Struct({
    limit: Schema.Int.annotations({ description: "Rows asked for", jsonSchema: { type: "integer", minimum: 1, maximum: MAX_LIMIT } }),
    nextCursor: Schema.NullOr(Schema.String).annotations({
      description: "Equal to `resumeCursor` while more is recorded already, otherwise null"
    })
  }).annotations({ identifier: "FeedPagination" }),
  resumeCursor: Schema.String.annotations({ description: "The place after the last event that was looked at: pass it as `after`" })
}).annotations({ identifier: "EventFeedPage" })

export class FeedApi extends HttpApiGroup.make("feed")
  .add(
    HttpApiEndpoint.get("readEventFeed", "/event-feed")
      .setUrlParams(query({ ...place, limit: PageParams.limit, ...filters, wait: Schema.optionalWith(Wait, { default: () => 0 }) }))
      .addSuccess(Feed)
      .addError(InvalidList)
      .addError(CursorExpired)
      .middleware(WebhooksReadable)
      .annotate(OpenApi.Summary, "Read the event feed")
      .annotate(
        OpenApi.Description,
        "The event log in the order of recording. Every event that this key may see and that was recorded after a cursor was given out " +
          "appears exactly once after it, and nothing is ever recorded before it. After an upgrade from a version without the feed it " +
          "begins at the upgrade until older events are numbered."
      )
  )
  .add(
    HttpApiEndpoint.get("streamEventFeed", "/event-feed/stream")
      .setUrlParams(query({ ...place, ...filters }))
      .setHeaders(
        Schema.Struct({
          "last-event-id": Schema.optional(
            Schema.String.annotations({ description: "The `id` of the last event received; goes before `after`" })
          )
        })
      )
      .addSuccess(
        Schema.String.pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType: "text/event-stream" })).annotations({
          description: "Server-sent events: id is the resumeCursor, event is webhook-event, data is the WebhookEvent"
        })
      )
      .addError(InvalidList)
      .addError(CursorExpired)
      .addError(TooManyStreams)
      .middleware(WebhooksReadable)
      .annotate(OpenApi.Summary, "Stream the event feed")
      .annotate(
        OpenApi.Description,
        "The event feed as server-sent events. `id` is the place after the event, `event` is `webhook-event`, `data` the webhook event. An " +
          "idle stream has a comment with its place every 15 seconds. At most 5 streams of a key at once; a reader that does not keep " +
          "up is disconnected and goes on from its last `id`."
      )
  )
  .annotate(OpenApi.Title, "Event feed")
  .annotate(OpenApi.Description, "Every event once, in order, resumable. Scope `webhook:read`.") {}
