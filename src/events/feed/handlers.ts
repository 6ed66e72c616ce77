/** The handlers of the event feed. C-1. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { Principal } from "../../access/credentials/Principal.ts"
import { Admission } from "../../access/visibility/Admission.ts"
import { Api } from "../../app/Api.ts"
import { handler } from "../../http/handler.ts"
import { FeedPages, filterOf } from "./FeedPages.ts"
import { FeedRepo } from "./FeedRepo.ts"
import { FeedStreams } from "./FeedStreams.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "feed",
  Effect.fnUntraced(function* (handlers) {
    const { admit } = yield* Admission
    const feed = yield* FeedRepo
    const pages = yield* FeedPages
    const streams = yield* FeedStreams

    return handlers
      .handleRaw(
        "readEventFeed",
        handler("readEventFeed", ({ urlParams }) => Effect.flatMap(Principal, (principal) => pages.answer(principal, urlParams)))
      )
      .handleRaw(
        "streamEventFeed",
        handler("streamEventFeed", ({ headers, urlParams: { after, from, ...filters } }) =>
          Effect.gen(function* () {
            const principal = yield* Principal
            const lastEventId = headers["last-event-id"]
            if (lastEventId === undefined) yield* pages.notBoth({ after, from })
            const start = yield* admit(principal, pages.begin(principal, { after, from }, lastEventId === "" ? undefined : lastEventId))
            const { method } = yield* HttpServerRequest.HttpServerRequest
            const place = start ?? (yield* admit(principal, feed.oldest(principal.organizationId)))
            const body = method === "HEAD" ? "" : yield* streams.open(principal, filterOf(filters), place)
            return HttpServerResponse.raw(body, {
              contentType: "text/event-stream",
              headers: { "cache-control": "no-store", "x-accel-buffering": "no" }
            })
          })
        )
      )
  })
)
