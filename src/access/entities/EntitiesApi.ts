/** The contract of `GET /v1/entities`: the entities that a key reaches. C-11. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Page, PageParams } from "../../http/Page.ts"
import { query } from "../../http/Parameters.ts"
import { InvalidList } from "../../http/Problem.ts"
import { Entity } from "../visibility/Entity.ts"
import { EntitiesReadable } from "../visibility/scopeMiddleware.ts"

export class EntitiesApi extends HttpApiGroup.make("entities")
  .add(
    HttpApiEndpoint.get("listEntities", "/entities")
      .setUrlParams(query(PageParams))
      .addSuccess(Page(Entity, "EntityPage"))
      .addError(InvalidList)
      .middleware(EntitiesReadable)
      .annotate(OpenApi.Summary, "List entities")
      .annotate(
        OpenApi.Description,
        "Entities that the API key reaches, by id: all of the organization for an owner, otherwise those of the vaults on which the user has the Developer role. A key with a vault allowlist reaches the entities of its visible vaults."
      )
  )
  .annotate(OpenApi.Title, "Entities")
  .annotate(OpenApi.Description, "Operating units that vaults belong to. Scope `vault:read` or `webhook:read`.") {}
