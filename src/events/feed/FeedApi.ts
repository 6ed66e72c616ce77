/** The contract of the event feed. C-1. */

import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { WebhooksReadable } from "../../access/visibility/scopeMiddleware.ts"
import { MAX_LIMIT, PageParams } from "../../http/Page.ts"
import { anyId, anyOf, query } from "../../http/Parameters.ts"
import { InvalidList, problems } from "../../http/Problem.ts"
import { Event } from "../log/Event.ts"
import { KindName } from "../log/Kind.ts"

/** Longest wait for an event, in seconds. */
export const MAX_WAIT = 30

const Wait = Schema.transform(
  Schema.String.pipe(
    Schema.filter((text) => (/^\d{1,2}$/.test(text) && Number(text) <= MAX_WAIT) || `must be a whole number from 0 to ${MAX_WAIT}`)
  ).annotations({ jsonSchema: { type: "integer", minimum: 0, maximum: MAX_WAIT, default: 0 } }),
  Schema.Number,
  { strict: true, decode: Number, encode: String }
).annotations({ description: "Seconds to wait for an event before the response is sent; default 0" })

const place = {
  after: Schema.optional(
    Schema.String.annotations({
      jsonSchema: {
        type: "string",
        maxLength: 256,
        description: "A `resumeCursor`: only events recorded after it; default: the whole log"
      }
    })
  ),
  from: Schema.optional(
    Schema.Literal("now").annotations({
      title: "FeedStart",
      description: "`now`: only events recorded from now on; not together with `after`"
    })
  )
}

const filters = {
  kind: anyOf(KindName, "Only events of this kind"),
  vaultId: anyId("Only vault-scoped events of this vault"),
  entityId: anyId("Only events of this entity")
}

const CursorExpired = problems("CursorExpired", "cursor_expired", "cursor_gone")
const TooManyStreams = problems("TooManyStreams", "too_many_streams")

const Feed = Schema.Struct({
  data: Schema.Array(Event),
  pagination: Schema.Struct({
    limit: Schema.Int.annotations({
      description: "Page size",
      jsonSchema: { type: "integer", minimum: 1, maximum: MAX_LIMIT, examples: [100] }
    }),
    nextCursor: Schema.NullOr(Schema.String).annotations({
      description: "Equal to `resumeCursor` if there are more events, otherwise null"
    })
  }).annotations({ identifier: "FeedPagination" }),
  resumeCursor: Schema.String.annotations({
    description: "Position after the last event examined: pass it as `after`",
    examples: ["mVb0rJ3cYw1n9XkQ5uTzHs7dLqEa2fGiPo4RvNxByC8KtMjZ"]
  })
}).annotations({ identifier: "EventFeedPage" })

export class FeedApi extends HttpApiGroup.make("feed")
  .add(
    HttpApiEndpoint.get("readEventFeed", "/event-feed")
      .setUrlParams(query({ ...place, limit: PageParams.limit, ...filters, wait: Schema.optionalWith(Wait, { default: () => 0 }) }))
      .addSuccess(Feed)
      .addError(InvalidList)
      .addError(CursorExpired)
      .addError(TooManyStreams)
      .middleware(WebhooksReadable)
      .annotate(OpenApi.Summary, "Read the event feed")
      .annotate(
        OpenApi.Description,
        "The event log in the order of recording. Every event that this key can see and that is recorded after a cursor was issued " +
          "appears exactly once after it, and nothing is ever recorded before it. A page skips what the key cannot see at that moment. A key can have 20 requests that wait for events."
      )
  )
  .add(
    HttpApiEndpoint.get("streamEventFeed", "/event-feed/stream")
      .setUrlParams(query({ ...place, ...filters }))
      .setHeaders(
        Schema.Struct({
          "last-event-id": Schema.optional(
            Schema.String.annotations({ description: "The `id` of the last event received; takes precedence over `after`" })
          )
        })
      )
      .addSuccess(
        Schema.String.pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType: "text/event-stream" })).annotations({
          description: "Server-sent events: id is the resumeCursor, event is webhook-event, data is the WebhookEvent",
          examples: [": at mVb0rJ3cYw1n9XkQ5uTzHs7dLqEa2fGiPo4RvNxByC8KtMjZ\n\n"]
        })
      )
      .addError(InvalidList)
      .addError(CursorExpired)
      .addError(TooManyStreams)
      .middleware(WebhooksReadable)
      .annotate(OpenApi.Summary, "Stream the event feed")
      .annotate(
        OpenApi.Description,
        "The event feed as server-sent events. `id` is the cursor after the event, `event` is `webhook-event`, `data` is the webhook event. An " +
          "idle stream sends a comment with its cursor every 15 seconds. A key can have 5 open streams. A reader that does not keep " +
          "up is disconnected and can resume from its last `id`. A stream ends after an hour at the latest; readers reconnect."
      )
  )
  .annotate(OpenApi.Title, "Event feed")
  .annotate(OpenApi.Description, "Every event once, in order, resumable. Scope `webhook:read`.") {}
