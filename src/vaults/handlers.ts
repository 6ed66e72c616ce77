/** The vault paths. Spec: Custody reads. */
import { HttpApiBuilder } from "@effect/platform"
import { Effect, Option } from "effect"
import { Api } from "../Api.ts"
import { Principal } from "../credentials/Principal.ts"
import { answer, type Key, type Of, Pages } from "../http/Page.ts"
import { notFound } from "../http/Problem.ts"
import { verb } from "../http/verb.ts"
import { Transactions } from "./Transactions.ts"
import { type Rows, VaultsRepo } from "./VaultsRepo.ts"

/** The rows of a visible vault, or the one 404. */
const orNotFound = <Row>(rows: Rows<Row>) => Effect.flatMap(rows, Option.match({ onNone: () => notFound(), onSome: Effect.succeed }))

export const layer = HttpApiBuilder.group(
  Api,
  "vaults",
  Effect.fnUntraced(function* (handlers) {
    const pages = yield* Pages
    const vaults = yield* VaultsRepo
    const transactions = yield* Transactions

    /** A page of a list that belongs to the vault of the path. */
    const page = <Row>(
      of: Of,
      { cursor, limit }: { readonly cursor?: string | undefined; readonly limit: number },
      keyLength: number,
      fetch: (after: Key | null, take: number) => Rows<Row>,
      keyOf: (row: Row) => Key
    ) => pages.cut({ of, limit, cursor, keyLength, fetch: (after, take) => orNotFound(fetch(after, take)), keyOf })

    return handlers
      .handle(
        "listVaults",
        verb("listVaults", ({ urlParams: { cursor, limit } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.map(
              pages.cut({
                of: { list: "vaults" },
                limit,
                cursor,
                keyLength: 2,
                fetch: (after, take) => vaults.list(principal, after, take),
                keyOf: (row) => [row.createdAt, row.id]
              }),
              (found) => answer(found, (row) => row)
            )
          )
        )
      )
      .handle(
        "getVault",
        verb("getVault", ({ path: { vaultId } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.flatMap(vaults.find(principal, vaultId), Option.match({ onNone: () => notFound(), onSome: Effect.succeed }))
          )
        )
      )
      .handle(
        "listBalances",
        verb("listBalances", ({ path: { vaultId }, urlParams: { network, ...asked } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.map(
              page(
                { list: "balances", path: [vaultId], filters: { network } },
                asked,
                1,
                (after, take) => vaults.balances(principal, vaultId, network, after, take),
                // The asset alone says where it stands; the whole sort key would be too long for a cursor.
                (row) => [row.asset]
              ),
              (found) => answer(found, ({ amount, asset, network, symbol }) => ({ asset, network, symbol, amount }))
            )
          )
        )
      )
      .handleRaw(
        "listTransactions",
        verb("listTransactions", ({ path: { vaultId }, urlParams }) =>
          Effect.flatMap(Principal, (principal) => transactions.list(principal, vaultId, urlParams))
        )
      )
      .handle(
        "listAddresses",
        verb("listAddresses", ({ path: { vaultId }, urlParams: { network, ...asked } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.map(
              page(
                { list: "addresses", path: [vaultId], filters: { network } },
                asked,
                2,
                (after, take) => vaults.addresses(principal, vaultId, network, after, take),
                (row) => [row.createdAt, String(row.id)]
              ),
              (found) => answer(found, ({ address, assetType, network }) => ({ address, network, assetType }))
            )
          )
        )
      )
  })
)
