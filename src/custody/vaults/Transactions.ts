/**
 * The list of a vault's transactions, the most frequent read. Rows are stored as the JSON text of their response and sent
 * unchanged. The framework's route and the fast path share this implementation. Spec: Custody reads. Decision D-2.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Option } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { answerText, Pages } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import type { TransactionFilter } from "./transactionPage.ts"
import { VaultsRepo } from "./VaultsRepo.ts"

export class Transactions extends Effect.Service<Transactions>()("custody/Transactions", {
  effect: Effect.gen(function* () {
    const pages = yield* Pages
    const vaults = yield* VaultsRepo

    return {
      /** A page of the vault's transactions as a response; 404 if the vault is not visible. */
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
