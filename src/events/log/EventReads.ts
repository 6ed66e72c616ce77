/**
 * Reads of the event log as responses. The framework's route and the fast path share this implementation. Spec: List webhook
 * events.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Option } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { answerText, Pages } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import type { EventsQuery } from "./EventsApi.ts"
import { EventsRepo, eventJson } from "./EventsRepo.ts"

const json = (text: string) => HttpServerResponse.raw(text, { contentType: "application/json" })

export class EventReads extends Effect.Service<EventReads>()("custody/EventReads", {
  effect: Effect.gen(function* () {
    const pages = yield* Pages
    const events = yield* EventsRepo

    return {
      /** A page of the events that the caller can see. */
      list: (principal: PrincipalState, { cursor, limit, ...filters }: typeof EventsQuery.Type) =>
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
        ),

      /** One event with the number of its deliveries by status; 404 if the caller cannot see it. */
      get: (principal: PrincipalState, eventId: string) =>
        Effect.flatMap(
          events.findCounted(principal, eventId),
          Option.match({
            onNone: () => Effect.fail(notFound()),
            onSome: ({ counts, event }) =>
              Effect.succeed(json(eventJson(event, `,"matchedCount":${event.matchedCount},"deliveryCounts":${JSON.stringify(counts)}`)))
          })
        )
    }
  })
}) {
  static readonly layer = this.Default
}
