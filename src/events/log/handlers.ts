/** The handlers of the event log. Spec: List webhook events. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Principal } from "../../access/credentials/Principal.ts"
import { reads } from "../../access/visibility/Admission.ts"
import { Api } from "../../app/Api.ts"
import { EventReads } from "./EventReads.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "events",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const events = yield* EventReads

    return handlers
      .handleRaw(
        "listEvents",
        read("listEvents", ({ urlParams }) => Effect.flatMap(Principal, (principal) => events.list(principal, urlParams)))
      )
      .handleRaw(
        "getEvent",
        read("getEvent", ({ path: { eventId } }) => Effect.flatMap(Principal, (principal) => events.get(principal, eventId)))
      )
  })
)
