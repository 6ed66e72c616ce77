/** The handler of `GET /v1/entities`. C-11. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "../../app/Api.ts"
import { answer, Pages } from "../../http/Page.ts"
import { Principal } from "../credentials/Principal.ts"
import { reads } from "../visibility/Admission.ts"
import { EntitiesRepo } from "./EntitiesRepo.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "entities",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const pages = yield* Pages
    const entities = yield* EntitiesRepo

    return handlers.handle(
      "listEntities",
      read("listEntities", ({ urlParams: { cursor, limit } }) =>
        Effect.flatMap(Principal, (principal) =>
          Effect.map(
            pages.cut({
              of: { list: "entities" },
              limit,
              cursor,
              keyLength: 1,
              fetch: (after, take) => entities.list(principal, after, take),
              keyOf: ({ id }) => [id]
            }),
            (found) => answer(found, (row) => row)
          )
        )
      )
    )
  })
)
