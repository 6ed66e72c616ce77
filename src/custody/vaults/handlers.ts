/** The handlers of the vault routes. Spec: Custody reads. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect, Option } from "effect"
import { Principal } from "../../access/credentials/Principal.ts"
import { reads } from "../../access/visibility/Admission.ts"
import { Api } from "../../app/Api.ts"
import { handler } from "../../http/handler.ts"
import { answer, answerJson, type Key, type Of, Pages } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import { BalanceHistoryRepo } from "./BalanceHistoryRepo.ts"
import { placeOf } from "./balancePlace.ts"
import { TransactionExport } from "./TransactionExport.ts"
import { type Rows, VaultsRepo } from "./VaultsRepo.ts"

/** The rows of a visible vault, or 404. */
const orNotFound = <Row, E>(rows: Effect.Effect<Effect.Effect.Success<Rows<Row>>, E>) =>
  Effect.flatMap(rows, Option.match({ onNone: () => notFound(), onSome: Effect.succeed }))

export const layer = HttpApiBuilder.group(
  Api,
  "vaults",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const pages = yield* Pages
    const vaults = yield* VaultsRepo
    const balances = yield* BalanceHistoryRepo
    const exports = yield* TransactionExport

    /** A page of a list that belongs to the vault of the path. */
    const page = <Row, E>(
      of: Of,
      { cursor, limit }: { readonly cursor?: string | undefined; readonly limit: number },
      keyLength: number,
      fetch: (after: Key | null, take: number) => Effect.Effect<Effect.Effect.Success<Rows<Row>>, E>,
      keyOf: (row: Row) => Key
    ) => pages.cut({ of, limit, cursor, keyLength, fetch: (after, take) => orNotFound(fetch(after, take)), keyOf })

    return handlers
      .handle(
        "listVaults",
        read("listVaults", ({ urlParams: { cursor, limit } }) =>
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
        read("getVault", ({ path: { vaultId } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.flatMap(vaults.find(principal, vaultId), Option.match({ onNone: () => notFound(), onSome: Effect.succeed }))
          )
        )
      )
      .handle(
        "listBalances",
        read("listBalances", ({ path: { vaultId }, urlParams: { at, network, ...asked } }) =>
          Effect.gen(function* () {
            const principal = yield* Principal
            yield* balances.requirePast(at)
            const found = yield* page(
              { list: "balances", path: [vaultId], filters: { network, at } },
              asked,
              2,
              (after, take) =>
                Effect.flatMap(balances.place(after), (place) =>
                  at === undefined
                    ? vaults.balances(principal, vaultId, network, place, take)
                    : balances.at(principal, vaultId, at, network, place, take)
                ),
              placeOf
            )
            return answer(found, ({ amount, asOf, asset, network, symbol }) => ({ asset, network, symbol, amount, asOf }))
          })
        )
      )
      .handle(
        "listBalanceHistory",
        read("listBalanceHistory", ({ path: { vaultId }, urlParams: { cursor, limit, ...filters } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.map(
              page(
                { list: "balance-history", path: [vaultId], filters },
                { cursor, limit },
                2,
                (after, take) => balances.history(principal, vaultId, filters, after, take),
                (row) => [row.asOf, String(row.id)]
              ),
              (found) => answer(found, ({ amount, asOf, asset, recordedAt }) => ({ asset, amount, asOf, recordedAt }))
            )
          )
        )
      )
      .handleRaw(
        "listTransactions",
        // Rows are stored as the JSON text of their response and sent unchanged.
        read("listTransactions", ({ path: { vaultId }, urlParams: { cursor, limit, ...filters } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.map(
              page(
                { list: "transactions", path: [vaultId], filters },
                { cursor, limit },
                2,
                (after, take) => vaults.transactions(principal, vaultId, filters, after, take),
                (row) => [row.timestamp, row.id]
              ),
              (found) => answerJson(found, ({ json }) => json)
            )
          )
        )
      )
      .handle(
        "getTransaction",
        read("getTransaction", ({ path: { transactionId, vaultId } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.flatMap(
              vaults.transaction(principal, vaultId, transactionId),
              Option.match({ onNone: () => notFound(), onSome: Effect.succeed })
            )
          )
        )
      )
      .handleRaw(
        "exportTransactions",
        handler("exportTransactions", ({ path: { vaultId }, urlParams: { amounts, format, ...filters } }) =>
          Effect.flatMap(Principal, (principal) => exports.start(principal, exports.ofVault(vaultId, filters), { format, amounts }))
        )
      )
      .handle(
        "listAddresses",
        read("listAddresses", ({ path: { vaultId }, urlParams: { network, ...asked } }) =>
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
