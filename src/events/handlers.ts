/** The handlers of the event log. Spec: List webhook events. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { reads } from "../access/Admission.ts"
import { Principal } from "../credentials/Principal.ts"
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
