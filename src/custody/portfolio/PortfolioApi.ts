/** The contract of lists across the vaults that a key can see. C-11. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { VaultsDocumentReadable, VaultsReadable } from "../../access/visibility/scopeMiddleware.ts"
import { alsoAs } from "../../http/alsoAs.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { anyId, query } from "../../http/Parameters.ts"
import { withOneEnd } from "../../http/Period.ts"
import { InvalidList, InvalidRequest } from "../../http/Problem.ts"
import { AddressInput } from "../../values/ChainNames.ts"
import { TimestampParam } from "../../values/Timestamp.ts"
import { PortfolioBalance, transactionExample, transactionJson, VaultTransaction } from "../../values/Vault.ts"
import { csvHeader, csvLines } from "../vaults/transactionCsv.ts"
import { ExportForm, exampleNames, filter, TooManyExports, TooManyRows, TransactionFilters } from "../vaults/VaultsApi.ts"

const ofEntity = anyId("Only vaults of this entity")

const filters = {
  vaultId: anyId("Only this vault"),
  entityId: ofEntity,
  address: filter(AddressInput, "Only from or to this address; an EVM address in either letter case"),
  ...TransactionFilters
}

const line = `${transactionJson(transactionExample).slice(0, -1)},"vaultId":"vault_dkjh7m6gvxzc2wjrphqz46b3br"}\n`

export class PortfolioApi extends HttpApiGroup.make("portfolio")
  .add(
    HttpApiEndpoint.get("listAllTransactions", "/transactions")
      .setUrlParams(query({ ...PageParams, ...filters }).pipe(withOneEnd))
      .addSuccess(Page(VaultTransaction, "VaultTransactionPage"))
      .addError(InvalidList)
      .middleware(VaultsReadable)
      .annotate(OpenApi.Summary, "List transactions of all vaults")
      .annotate(
        OpenApi.Description,
        "Transactions of all vaults that the API key can see, most recent first, each with its `vaultId`. Filters are combined with AND; a vault or entity that the key cannot see matches nothing. A page looks at no more than 20,000 transactions, so it may be short or empty although `nextCursor` is not null."
      )
  )
  .add(
    HttpApiEndpoint.get("exportAllTransactions", "/transactions/export")
      .setUrlParams(query({ ...ExportForm, ...filters }).pipe(withOneEnd))
      .addSuccess(
        Schema.String.annotations({
          description: "With `format=csv`: a header line, then a line per transaction",
          examples: [csvHeader + csvLines(line, exampleNames, "spreadsheet")]
        }).pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType: "text/csv" }))
      )
      .addError(InvalidRequest)
      .addError(TooManyRows)
      .addError(TooManyExports)
      .middleware(VaultsDocumentReadable)
      .annotate(OpenApi.Summary, "Export transactions of all vaults")
      .annotate(OpenApi.Transform, alsoAs("application/x-ndjson", "With `format=ndjson`: a Transaction per line, with its `vaultId`", line))
      .annotate(
        OpenApi.Description,
        "All transactions that the list returns with these filters, as one file, with the limits of the export of one vault."
      )
  )
  .add(
    HttpApiEndpoint.get("listAllBalances", "/balances")
      .setUrlParams(
        query({
          ...PageParams,
          entityId: ofEntity,
          asset: TransactionFilters.asset,
          network: TransactionFilters.network,
          at: filter(TimestampParam, "Balances at this time, which must not be in the future; default: present balances"),
          sumBy: filter(
            Schema.Literal("asset").annotations({ title: "BalanceSum" }),
            "`asset`: one line per asset with the exact sum of its balances"
          )
        })
      )
      .addSuccess(Page(PortfolioBalance, "PortfolioBalancePage"))
      .addError(InvalidList)
      .middleware(VaultsReadable)
      .annotate(OpenApi.Summary, "List balances of all vaults")
      .annotate(
        OpenApi.Description,
        "Balances of all vaults that the API key can see, by network, the native asset first, then by symbol and vault, each with its `vaultId`. With `at`, balances from the last records at or before that time. With `sumBy=asset`, one line per asset: the sum over these vaults, with `vaultCount` instead of `vaultId`. A page looks at a bounded number of balances, so it may be short or empty although `nextCursor` is not null."
      )
  )
  .annotate(OpenApi.Title, "All vaults")
  .annotate(OpenApi.Description, "Transactions and balances of all vaults that the API key can see. Scope `vault:read`.") {}
