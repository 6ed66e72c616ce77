/** The contract of statements. C-6. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { VaultDocumentReadable } from "../../access/visibility/scopeMiddleware.ts"
import { alsoAs } from "../../http/alsoAs.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { Flag, pathId, query } from "../../http/Parameters.ts"
import { InvalidList, InvalidRequest, problems } from "../../http/Problem.ts"
import { day } from "../../values/Day.ts"
import { Statement, StatementSummary } from "../../values/Statement.ts"
import { TooManyExports } from "../vaults/VaultsApi.ts"

const vaultId = pathId("vault, from List vaults")

const Revision = Schema.transform(
  Schema.String.pipe(Schema.filter((text) => /^[1-9]\d{0,8}$/.test(text) || "must be a whole number from 1")).annotations({
    jsonSchema: { type: "integer", minimum: 1, maximum: 999_999_999 }
  }),
  Schema.Number,
  { strict: true, decode: Number, encode: String }
).annotations({ description: "An earlier revision; default: the newest" })

const From = day("First day, as YYYY-MM-DD"),
  To = day("Last day, as YYYY-MM-DD")
const MovedOnly = Schema.optionalWith(Flag.annotations({ description: "CSV and summaries leave out lines without movement" }), {
  default: () => false
})

/** 409 of a summary: a day of the period is not sealed. */
const NotSealed = problems("NotSealed", "not_sealed")

const COLUMNS = "asset,symbol,opening,inbound,outbound,fees,other,closing,transactionCount\r\n",
  LINE = "ethereum/native,ETH,'10,'2.5,'1,'0.000021,'-0.5,'10.999979,4\r\n"
const csvToo = (description: string, example: string) => alsoAs("text/csv", description, example)

export class StatementsApi extends HttpApiGroup.make("statements")
  .add(
    HttpApiEndpoint.get("listStatements", "/vaults/:vaultId/statements")
      .setPath(Schema.Struct({ vaultId }))
      .setUrlParams(query({ ...PageParams, from: Schema.optional(From), to: Schema.optional(To), movedOnly: MovedOnly }))
      .addSuccess(Page(Statement, "StatementPage"))
      .addError(InvalidList)
      .addError(TooManyExports)
      .middleware(VaultDocumentReadable)
      .annotate(OpenApi.Summary, "List statements")
      .annotate(
        OpenApi.Transform,
        csvToo("With `Accept: text/csv`: a header line, then a line for each day and asset", `date,revision,${COLUMNS}2025-03-24,1,${LINE}`)
      )
      .annotate(
        OpenApi.Description,
        "The newest revision of each sealed day, newest day first. With `Accept: text/csv`, all lines of a period of at most 366 days, oldest day first: a file with the limits of an export, for which `from` and `to` are required."
      )
  )
  .add(
    HttpApiEndpoint.get("getStatement", "/vaults/:vaultId/statements/:date")
      .setPath(Schema.Struct({ vaultId, date: pathId("day, as YYYY-MM-DD") }))
      .setUrlParams(query({ revision: Schema.optional(Revision) }))
      .addSuccess(Statement)
      .addError(InvalidRequest)
      .middleware(VaultDocumentReadable)
      .annotate(OpenApi.Summary, "Get a statement")
      .annotate(OpenApi.Transform, csvToo("With `Accept: text/csv`: a header line, then the statement's lines", `${COLUMNS}${LINE}`))
      .annotate(
        OpenApi.Description,
        "The statement of a sealed UTC day: balances at its bounds, movements in between, the previous statement's hash and a signature. With `Accept: text/csv`, its lines as CSV."
      )
  )
  .add(
    HttpApiEndpoint.get("getStatementSummary", "/vaults/:vaultId/statement-summary")
      .setPath(Schema.Struct({ vaultId }))
      .setUrlParams(query({ from: From, to: To, movedOnly: MovedOnly }))
      .addSuccess(StatementSummary)
      .addError(InvalidRequest)
      .addError(NotSealed)
      .middleware(VaultDocumentReadable)
      .annotate(OpenApi.Summary, "Sum up statements")
      .annotate(OpenApi.Transform, csvToo("With `Accept: text/csv`: a header line, then a line per asset", `${COLUMNS}${LINE}`))
      .annotate(
        OpenApi.Description,
        "One line per asset over a period: the first day's opening, the sums of all days, and the last day's closing, with the hashes of the first and the last day's statements. A period that begins before the vault's first statement begins with it. A day that is not sealed yet is 409 `not_sealed`; so is a period that ends before the first statement, with `firstDate`, its day. With `Accept: text/csv`, the lines as CSV."
      )
  )
  .annotate(OpenApi.Title, "Statements")
  .annotate(OpenApi.Description, "Daily statements of vaults, sealed and signed. Scope `vault:read`.") {}
