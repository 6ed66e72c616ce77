/** The handlers of the event log. Spec: List webhook events. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect, Option } from "effect"
import { Principal } from "../../access/credentials/Principal.ts"
import { reads } from "../../access/visibility/Admission.ts"
import { Api } from "../../app/Api.ts"
import { answerJson, jsonText, Pages } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import { EventsRepo, eventJson } from "./EventsRepo.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "events",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const pages = yield* Pages
    const events = yield* EventsRepo

    return handlers
      .handleRaw(
        "listEvents",
        read("listEvents", ({ urlParams: { cursor, limit, ...filters } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.map(
              pages.cut({
                of: { list: "webhook-events", filters },
                limit,
                cursor,
                keyLength: 2,
                fetch: (after, take) => events.list(principal, filters, after, take),
                keyOf: (row) => [row.occurredAt, row.id]
              }),
              (found) => answerJson(found, eventJson)
            )
          )
        )
      )
      .handleRaw(
        "getEvent",
        read("getEvent", ({ path: { eventId } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.flatMap(
              events.findCounted(principal, eventId),
              Option.match({
                onNone: () => Effect.fail(notFound()),
                onSome: ({ counts, event }) =>
                  Effect.succeed(
                    jsonText(eventJson(event, `,"matchedCount":${event.matchedCount},"deliveryCounts":${JSON.stringify(counts)}`))
                  )
              })
            )
          )
        )
      )
  })
)
