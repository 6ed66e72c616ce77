/** The handlers of lists across the vaults that a key can see. C-11. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Principal } from "../../access/credentials/Principal.ts"
import { reads, turns } from "../../access/visibility/Admission.ts"
import { Api } from "../../app/Api.ts"
import { handler } from "../../http/handler.ts"
import { answer, answerJson, Pages } from "../../http/Page.ts"
import { BalanceHistoryRepo } from "../vaults/BalanceHistoryRepo.ts"
import { placeOf } from "../vaults/balancePlace.ts"
import { TransactionExport } from "../vaults/TransactionExport.ts"
import { PortfolioRepo } from "./PortfolioRepo.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "portfolio",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const inTurn = yield* turns
    const pages = yield* Pages
    const portfolio = yield* PortfolioRepo
    const balances = yield* BalanceHistoryRepo
    const exports = yield* TransactionExport

    return handlers
      .handleRaw(
        "listAllTransactions",
        // Rows are stored as the JSON text of their response.
        read("listAllTransactions", ({ urlParams: { cursor, limit, ...filters } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.map(
              pages.cut({
                of: { list: "all-transactions", filters },
                limit,
                cursor,
                keyLength: 2,
                fetch: (after, take) => portfolio.transactions(principal, filters, after, take),
                keyOf: ({ id, timestamp }) => [timestamp, id]
              }),
              (found) => answerJson(found, ({ json }) => json ?? "")
            )
          )
        )
      )
      .handleRaw(
        "exportAllTransactions",
        handler("exportAllTransactions", ({ urlParams: { amounts, format, ...filters } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.flatMap(inTurn(portfolio.exported(principal, filters)), (source) =>
              exports.start(principal, source, { format, amounts })
            )
          )
        )
      )
      .handle(
        "listAllBalances",
        read("listAllBalances", ({ urlParams: { cursor, limit, sumBy, ...filters } }) =>
          Effect.gen(function* () {
            const principal = yield* Principal
            yield* balances.requirePast(filters.at)
            const of = { list: "all-balances", filters: { ...filters, sumBy } }
            if (sumBy === undefined) {
              const found = yield* pages.cut({
                of,
                limit,
                cursor,
                keyLength: 3,
                fetch: (after, take) =>
                  Effect.flatMap(balances.place(after), (place) => portfolio.balances(principal, filters, place, take)),
                keyOf: (row) => [...placeOf(row), row.vaultId]
              })
              return answer(found, ({ amount, asOf, asset, network, symbol, vaultId }) => ({
                asset,
                network,
                symbol,
                amount,
                asOf,
                vaultId
              }))
            }
            const found = yield* pages.cut({
              of,
              limit,
              cursor,
              keyLength: 2,
              fetch: (after, take) => Effect.flatMap(balances.place(after), (place) => portfolio.totals(principal, filters, place, take)),
              keyOf: placeOf
            })
            return answer(found, ({ amount, asset, network, symbol, vaultCount }) => ({ asset, symbol, network, amount, vaultCount }))
          })
        )
      )
  })
)
