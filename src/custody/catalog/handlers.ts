/** The handlers of the catalog routes. Spec: Custody reads. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Principal } from "../../access/credentials/Principal.ts"
import { reads } from "../../access/visibility/Admission.ts"
import { Api } from "../../app/Api.ts"
import { answer, Pages } from "../../http/Page.ts"
import { CatalogRepo } from "./CatalogRepo.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "catalog",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const pages = yield* Pages
    const catalog = yield* CatalogRepo

    return handlers
      .handle(
        "listAssets",
        read("listAssets", ({ urlParams: { cursor, limit, ...filters } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.map(
              pages.cut({
                of: { list: "assets", filters },
                limit,
                cursor,
                keyLength: 1,
                fetch: (after, take) => catalog.assets(principal, filters, after, take),
                keyOf: (row) => [row.id]
              }),
              (found) => answer(found, (row) => row)
            )
          )
        )
      )
      .handle(
        "listNetworks",
        read("listNetworks", ({ urlParams: { cursor, limit } }) =>
          Effect.flatMap(Principal, ({ organizationId }) =>
            Effect.map(
              pages.cut({
                of: { list: "networks" },
                limit,
                cursor,
                keyLength: 1,
                fetch: (after, take) => catalog.networks(organizationId, after, take),
                keyOf: (row) => [row.name]
              }),
              (found) => answer(found, (row) => row)
            )
          )
        )
      )
  })
)
