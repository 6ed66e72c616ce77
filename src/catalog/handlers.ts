/** The catalog paths. Spec: Custody reads. */
import { HttpApiBuilder } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Principal } from "../credentials/Principal.ts"
import { and } from "../database/sql.ts"
import { answer, Pages } from "../http/Page.ts"
import { verb } from "../http/verb.ts"
import type { Asset, Network } from "./Catalog.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "catalog",
  Effect.fnUntraced(function* (handlers) {
    const pages = yield* Pages
    const sql = yield* SqlClient.SqlClient

    return handlers
      .handle(
        "listAssets",
        verb("listAssets", ({ urlParams: { cursor, limit, network, symbol } }) =>
          Effect.flatMap(Principal, ({ organizationId }) =>
            Effect.map(
              pages.cut({
                of: { list: "assets", filters: { network, symbol } },
                limit,
                cursor,
                keyLength: 1,
                fetch: (after, take) =>
                  Effect.orDie(sql<typeof Asset.Type>`
              SELECT a.id, a.symbol, a.name, a.decimals, a.network FROM assets a
              WHERE a.network = ANY((SELECT o.networks FROM organizations o WHERE o.id = ${organizationId})::text[])
              ${and(
                sql,
                network !== undefined && sql`a.network = ${network}`,
                symbol !== undefined && sql`a.symbol = ${symbol}`,
                after !== null && sql`a.id > ${after[0]}`
              )}
              ORDER BY a.id LIMIT ${take}`),
                keyOf: (row) => [row.id]
              }),
              (found) => answer(found, (row) => row)
            )
          )
        )
      )
      .handle(
        "listNetworks",
        verb("listNetworks", ({ urlParams: { cursor, limit } }) =>
          Effect.flatMap(Principal, ({ organizationId }) =>
            Effect.map(
              pages.cut({
                of: { list: "networks" },
                limit,
                cursor,
                keyLength: 1,
                fetch: (after, take) =>
                  Effect.orDie(sql<typeof Network.Type>`
              SELECT n.name, n.kind FROM networks n
              WHERE n.name = ANY((SELECT o.networks FROM organizations o WHERE o.id = ${organizationId})::text[])
              ${and(sql, after !== null && sql`n.name > ${after[0]}`)}
              ORDER BY n.name LIMIT ${take}`),
                keyOf: (row) => [row.name]
              }),
              (found) => answer(found, (row) => row)
            )
          )
        )
      )
  })
)
