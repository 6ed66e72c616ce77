/**
 * The list of a vault's transactions, the hottest read: its rows are stored as the text that they are answered as, and
 * go out as they are. One implementation for both ways in, the framework's and the fast path's.
 * Spec: Custody reads. Decision D-2.
 */
import { HttpServerResponse } from "@effect/platform"
import { Effect, Option } from "effect"
import type { PrincipalState } from "../credentials/Principal.ts"
import { answerText, Pages } from "../http/Page.ts"
import { notFound } from "../http/Problem.ts"
import type { TransactionFilter } from "./transactionPage.ts"
import { VaultsRepo } from "./VaultsRepo.ts"

export class Transactions extends Effect.Service<Transactions>()("custody/Transactions", {
  effect: Effect.gen(function* () {
    const pages = yield* Pages
    const vaults = yield* VaultsRepo

    return {
      /** A page of the vault's transactions as the answer; 404 when the vault is not visible. */
      list: (
        principal: PrincipalState,
        vaultId: string,
        { cursor, limit, ...filters }: TransactionFilter & { readonly cursor?: string | undefined; readonly limit: number }
      ) =>
        Effect.map(
          pages.cut({
            of: { list: "transactions", path: [vaultId], filters },
            limit,
            cursor,
            keyLength: 2,
            fetch: (after, take) =>
              Effect.flatMap(
                vaults.transactions(principal, vaultId, filters, after, take),
                Option.match({ onNone: () => Effect.fail(notFound()), onSome: Effect.succeed })
              ),
            keyOf: (row) => [row.timestamp, String(row.id)]
          }),
          (found) => HttpServerResponse.raw(answerText(found), { contentType: "application/json" })
        )
    }
  })
}) {
  static readonly layer = this.Default
}
