/** The contract of the catalog routes. Spec: Custody reads. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { VaultsReadable } from "../../access/visibility/scopeMiddleware.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { query } from "../../http/Parameters.ts"
import { InvalidList } from "../../http/Problem.ts"
import { NetworkName } from "../../values/ChainNames.ts"
import { Asset, Network } from "./Catalog.ts"

export class CatalogApi extends HttpApiGroup.make("catalog")
  .add(
    HttpApiEndpoint.get("listAssets", "/assets")
      .setUrlParams(
        query({
          ...PageParams,
          network: Schema.optional(NetworkName.annotations({ description: "Only on this network" })),
          symbol: Schema.optional(
            Schema.String.pipe(Schema.pattern(/^[^\x00-\x1f\x7f-\x9f]{1,64}$/)).annotations({
              description: "Only with exactly this symbol",
              message: () => "must be a symbol of 1 to 64 characters"
            })
          )
        })
      )
      .addSuccess(Page(Asset, "AssetPage"))
      .addError(InvalidList)
      .middleware(VaultsReadable)
      .annotate(OpenApi.Summary, "List assets")
      .annotate(
        OpenApi.Description,
        "Supported assets on the networks available to the organization, and assets that a visible vault holds or moved, by id."
      )
  )
  .add(
    HttpApiEndpoint.get("listNetworks", "/networks")
      .setUrlParams(query(PageParams))
      .addSuccess(Page(Network, "NetworkPage"))
      .addError(InvalidList)
      .middleware(VaultsReadable)
      .annotate(OpenApi.Summary, "List networks")
      .annotate(OpenApi.Description, "Networks available to the organization, by name.")
  )
  .annotate(OpenApi.Title, "Catalog")
  .annotate(OpenApi.Description, "Assets and networks. Scope `vault:read`.") {}
