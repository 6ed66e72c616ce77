/** The contract of statements. C-6. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { VaultDocumentReadable, VaultReadable } from "../../access/visibility/scopeMiddleware.ts"
import { alsoAs } from "../../http/alsoAs.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { pathId, query } from "../../http/Parameters.ts"
import { InvalidList, InvalidRequest } from "../../http/Problem.ts"
import { Statement } from "./Statement.ts"

const vaultId = pathId("vault, from List vaults")

const Revision = Schema.transform(
  Schema.String.pipe(Schema.filter((text) => /^[1-9]\d{0,8}$/.test(text) || "must be a whole number from 1")).annotations({
    jsonSchema: { type: "integer", minimum: 1, maximum: 999_999_999 }
  }),
  Schema.Number,
  { strict: true, decode: Number, encode: String }
).annotations({ description: "An earlier revision; default: the newest" })

export class StatementsApi extends HttpApiGroup.make("statements")
  .add(
    HttpApiEndpoint.get("listStatements", "/vaults/:vaultId/statements")
      .setPath(Schema.Struct({ vaultId }))
      .setUrlParams(query(PageParams))
      .addSuccess(Page(Statement, "StatementPage"))
      .addError(InvalidList)
      .middleware(VaultReadable)
      .annotate(OpenApi.Summary, "List statements")
      .annotate(OpenApi.Description, "The newest revision of each sealed day, newest day first.")
  )
  .add(
    HttpApiEndpoint.get("getStatement", "/vaults/:vaultId/statements/:date")
      .setPath(Schema.Struct({ vaultId, date: pathId("day, as YYYY-MM-DD") }))
      .setUrlParams(query({ revision: Schema.optional(Revision) }))
      .addSuccess(Statement)
      .addError(InvalidRequest)
      .middleware(VaultDocumentReadable)
      .annotate(OpenApi.Summary, "Get a statement")
      .annotate(
        OpenApi.Transform,
        alsoAs(
          "text/csv",
          "With `Accept: text/csv`: a header line, then the statement's lines",
          "asset,symbol,opening,inbound,outbound,other,closing,transactionCount\r\nethereum/native,ETH,'10,'2.5,'1,'-0.000021,'11.499979,4\r\n"
        )
      )
      .annotate(
        OpenApi.Description,
        "The statement of a sealed UTC day: balances at its bounds, movements in between, the previous statement's hash and a signature. With `Accept: text/csv`, its lines as CSV."
      )
  )
  .annotate(OpenApi.Title, "Statements")
  .annotate(OpenApi.Description, "Daily statements of vaults, sealed and signed. Scope `vault:read`.") {}
