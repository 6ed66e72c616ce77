/** The contract of the vault paths. Spec: Custody reads. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { VaultReadable, VaultsReadable } from "../credentials/Access.ts"
import { Page, PageParams } from "../http/Page.ts"
import { noQuery, pathId, query } from "../http/Parameters.ts"
import { InvalidList, InvalidRequest } from "../http/Problem.ts"
import { AssetIdInput, HashInput, NetworkName } from "../values/Chain.ts"
import { TimestampFrom, TimestampParam } from "../values/Timestamp.ts"
import { Balance, DepositAddress, Direction, Transaction, TransactionStatus, Vault } from "./Vault.ts"

const path = Schema.Struct({ vaultId: pathId("vault, from List vaults") })
const filter = <A, I extends string>(schema: Schema.Schema<A, I>, description: string) =>
  Schema.optional(schema.annotations({ description }))

/** Filters of a vault's transactions. */
export const TransactionFilters = {
  status: filter(TransactionStatus, "Only this status"),
  direction: filter(Direction, "Only this direction"),
  asset: filter(AssetIdInput, "Only this asset; an EVM contract in either letter case"),
  network: filter(NetworkName, "Only this network"),
  hash: filter(HashInput, "Only this transaction hash"),
  occurredAfter: filter(TimestampFrom, "Only with a timestamp at or after this"),
  occurredBefore: filter(TimestampParam, "Only with a timestamp at or before this")
}

/** The query of a vault's transactions. */
export const TransactionQuery = query({ ...PageParams, ...TransactionFilters })

export class VaultsApi extends HttpApiGroup.make("vaults")
  .add(
    HttpApiEndpoint.get("listVaults", "/vaults")
      .setUrlParams(query(PageParams))
      .addSuccess(Page(Vault, "VaultPage"))
      .addError(InvalidList)
      .middleware(VaultsReadable)
      .annotate(OpenApi.Summary, "List vaults")
      .annotate(OpenApi.Description, "The vaults that the key can access, newest first.")
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
      .setUrlParams(query({ ...PageParams, network: TransactionFilters.network }))
      .addSuccess(Page(Balance, "BalancePage"))
      .addError(InvalidList)
      .middleware(VaultReadable)
      .annotate(OpenApi.Summary, "List balances")
      .annotate(
        OpenApi.Description,
        "Settled balances across the networks the vault operates on, by network, the native asset first, then by symbol."
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
      .annotate(OpenApi.Description, "Transfers into and out of the vault, most recent first. Filters combine with AND.")
  )
  .add(
    HttpApiEndpoint.get("listAddresses", "/vaults/:vaultId/addresses")
      .setPath(path)
      .setUrlParams(query({ ...PageParams, network: TransactionFilters.network }))
      .addSuccess(Page(DepositAddress, "DepositAddressPage"))
      .addError(InvalidList)
      .middleware(VaultReadable)
      .annotate(OpenApi.Summary, "List deposit addresses")
      .annotate(OpenApi.Description, "Addresses that the vault receives at, newest first.")
  )
  .annotate(OpenApi.Title, "Vaults")
  .annotate(OpenApi.Description, "Vaults, their balances, transactions and deposit addresses. Scope `vault:read`.") {}
