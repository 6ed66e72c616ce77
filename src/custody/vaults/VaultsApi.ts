/** The contract of the vault routes. Spec: Custody reads. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { VaultDocumentReadable, VaultReadable, VaultsReadable } from "../../access/visibility/scopeMiddleware.ts"
import { alsoAs } from "../../http/alsoAs.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { noQuery, pathId, query } from "../../http/Parameters.ts"
import { periodParams, withOneEnd } from "../../http/Period.ts"
import { InvalidList, InvalidRequest, problems } from "../../http/Problem.ts"
import { AssetIdInput, HashInput, NetworkName } from "../../values/ChainNames.ts"
import { TimestampParam } from "../../values/Timestamp.ts"
import {
  Balance,
  BalanceRecord,
  DepositAddress,
  Direction,
  Transaction,
  TransactionDetail,
  TransactionStatus,
  transactionExample,
  transactionJson,
  Vault
} from "../../values/Vault.ts"
import { csvHeader, csvLines } from "./transactionCsv.ts"

/** 422 of exports. */
export const TooManyRows = problems("TooManyRows", "too_many_rows")
/** 429 of exports. */
export const TooManyExports = problems("TooManyExports", "too_many_exports")

const path = Schema.Struct({ vaultId: pathId("vault, from List vaults") })
/** An optional query parameter. */
export const filter = <A, I extends string>(schema: Schema.Schema<A, I>, description: string) =>
  Schema.optional(schema.annotations({ description }))

/** Filters of transactions. */
export const TransactionFilters = {
  status: filter(TransactionStatus, "Only this status"),
  direction: filter(Direction, "Only this direction"),
  asset: filter(AssetIdInput, "Only this asset; an EVM contract in either letter case"),
  network: filter(NetworkName, "Only this network"),
  hash: filter(HashInput, "Only this transaction hash"),
  ...periodParams("Only with a timestamp")
}

/** A line of an export as NDJSON, and what CSV has besides. */
const jsonLine = `${transactionJson(transactionExample)}\n`
export const exampleNames = {
  vaultIds: ["vault_dkjh7m6gvxzc2wjrphqz46b3br"],
  labels: { vault_dkjh7m6gvxzc2wjrphqz46b3br: "Exchange Hot Wallet" },
  symbols: { [transactionExample.asset]: "USDT" }
}

/** How a file is written, as query parameters. */
export const ExportForm = {
  format: Schema.Literal("csv", "ndjson").annotations({
    title: "ExportFormat",
    description: "`csv` (RFC 4180), or `ndjson`: one Transaction per line"
  }),
  amounts: Schema.optionalWith(
    Schema.Literal("spreadsheet", "plain").annotations({
      title: "ExportAmounts",
      description:
        "Amounts in CSV: after an apostrophe, so that spreadsheets keep every digit, or `plain`, for programs. Amounts in NDJSON are plain."
    }),
    { default: () => "spreadsheet" }
  )
}

/** The query of a vault's transactions. */
export const TransactionQuery = query({ ...PageParams, ...TransactionFilters }).pipe(withOneEnd)

export class VaultsApi extends HttpApiGroup.make("vaults")
  .add(
    HttpApiEndpoint.get("listVaults", "/vaults")
      .setUrlParams(query(PageParams))
      .addSuccess(Page(Vault, "VaultPage"))
      .addError(InvalidList)
      .middleware(VaultsReadable)
      .annotate(OpenApi.Summary, "List vaults")
      .annotate(OpenApi.Description, "Vaults that the API key can access, newest first.")
  )
  .add(
    HttpApiEndpoint.get("getVault", "/vaults/:vaultId")
      .setPath(path)
      .setUrlParams(noQuery)
      .addSuccess(Vault)
      .addError(InvalidRequest)
      .middleware(VaultReadable)
      .annotate(OpenApi.Summary, "Get a vault")
      .annotate(OpenApi.Description, "One vault.")
  )
  .add(
    HttpApiEndpoint.get("listBalances", "/vaults/:vaultId/balances")
      .setPath(path)
      .setUrlParams(
        query({
          ...PageParams,
          network: TransactionFilters.network,
          at: filter(TimestampParam, "Balances at this time, which must not be in the future; default: present balances")
        })
      )
      .addSuccess(Page(Balance, "BalancePage"))
      .addError(InvalidList)
      .middleware(VaultReadable)
      .annotate(OpenApi.Summary, "List balances")
      .annotate(
        OpenApi.Description,
        "Settled balances across the networks the vault operates on, by network, the native asset first, then by symbol. With `at`, balances from the last records at or before that time; assets without one are absent."
      )
  )
  .add(
    HttpApiEndpoint.get("listBalanceHistory", "/vaults/:vaultId/balance-history")
      .setPath(path)
      .setUrlParams(
        query({
          ...PageParams,
          asset: AssetIdInput.annotations({ description: "The asset; an EVM contract in either letter case" }),
          ...periodParams("Only records")
        }).pipe(withOneEnd)
      )
      .addSuccess(Page(BalanceRecord, "BalanceRecordPage"))
      .addError(InvalidList)
      .middleware(VaultReadable)
      .annotate(OpenApi.Summary, "List the history of a balance")
      .annotate(
        OpenApi.Description,
        "Every record of one asset's balance, newest first. Of several records with the same time, the first in the list was recorded last and counts."
      )
  )
  .add(
    HttpApiEndpoint.get("listTransactions", "/vaults/:vaultId/transactions")
      .setPath(path)
      .setUrlParams(TransactionQuery)
      .addSuccess(Page(Transaction, "TransactionPage"))
      .addError(InvalidList)
      .middleware(VaultReadable)
      .annotate(OpenApi.Summary, "List transactions")
      .annotate(OpenApi.Description, "Transfers into and out of the vault, most recent first. Filters are combined with AND.")
  )
  .add(
    HttpApiEndpoint.get("getTransaction", "/vaults/:vaultId/transactions/:transactionId")
      .setPath(Schema.Struct({ ...path.fields, transactionId: pathId("transaction, from List transactions") }))
      .setUrlParams(noQuery)
      .addSuccess(TransactionDetail)
      .addError(InvalidRequest)
      .middleware(VaultReadable)
      .annotate(OpenApi.Summary, "Get a transaction")
      .annotate(OpenApi.Description, "One transaction of the vault, and every state that it has had.")
  )
  .add(
    HttpApiEndpoint.get("exportTransactions", "/vaults/:vaultId/transactions/export")
      .setPath(path)
      .setUrlParams(
        query({
          ...ExportForm,
          ...TransactionFilters
        }).pipe(withOneEnd)
      )
      .addSuccess(
        Schema.String.annotations({
          description: "With `format=csv`: a header line, then a line per transaction",
          examples: [csvHeader + csvLines(jsonLine, exampleNames, "spreadsheet")]
        }).pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType: "text/csv" }))
      )
      .addError(InvalidRequest)
      .addError(TooManyRows)
      .addError(TooManyExports)
      .middleware(VaultDocumentReadable)
      .annotate(OpenApi.Summary, "Export transactions")
      .annotate(OpenApi.Transform, alsoAs("application/x-ndjson", "With `format=ndjson`: a Transaction per line", jsonLine))
      .annotate(
        OpenApi.Description,
        "All matching transactions, most recent first, as a stream of one consistent snapshot. In CSV, an apostrophe precedes cells that a spreadsheet would read as a formula, and amounts unless `amounts=plain`. The file is named after the vault and the period. A key can have two exports at a time, an organization three. An export that takes longer than half an hour is cut off. If the connection breaks before the end of the file, the file is incomplete."
      )
  )
  .add(
    HttpApiEndpoint.get("listAddresses", "/vaults/:vaultId/addresses")
      .setPath(path)
      .setUrlParams(query({ ...PageParams, network: TransactionFilters.network }))
      .addSuccess(Page(DepositAddress, "DepositAddressPage"))
      .addError(InvalidList)
      .middleware(VaultReadable)
      .annotate(OpenApi.Summary, "List deposit addresses")
      .annotate(OpenApi.Description, "Deposit addresses of the vault, newest first.")
  )
  .annotate(OpenApi.Title, "Vaults")
  .annotate(OpenApi.Description, "Vaults, their balances, transactions and deposit addresses. Scope `vault:read`.") {}
