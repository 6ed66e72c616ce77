/** The handlers of the event log. Spec: List webhook events. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Option } from "effect"
import { Api } from "../Api.ts"
import { reads } from "../access/Admission.ts"
import { Principal } from "../credentials/Principal.ts"
import { answerText, Pages } from "../http/Page.ts"
import { notFound } from "../http/Problem.ts"
import { EventsRepo, eventJson } from "./EventsRepo.ts"

const json = (text: string) => HttpServerResponse.raw(text, { contentType: "application/json" })

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
              (found) => json(answerText({ ...found, rows: found.rows.map((row) => ({ json: eventJson(row) })) }))
            )
          )
        )
      )
      .handleRaw(
        "getEvent",
        read("getEvent", ({ path: { eventId } }) =>
          Effect.gen(function* () {
            const principal = yield* Principal
            const found = yield* events.findCounted(principal, eventId)
            if (Option.isNone(found)) return yield* notFound()
            const { counts, event } = found.value
            return json(eventJson(event, `,"matchedCount":${event.matchedCount},"deliveryCounts":${JSON.stringify(counts)}`))
          })
        )
      )
  })
)
