/** The handlers of statements. C-6. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Option } from "effect"
import { Principal } from "../../access/credentials/Principal.ts"
import { reads } from "../../access/visibility/Admission.ts"
import { Api } from "../../app/Api.ts"
import { takes } from "../../http/errorBoundary.ts"
import { answerJson, Pages } from "../../http/Page.ts"
import { notFound, problem } from "../../http/Problem.ts"
import { csvCell, csvRow } from "../../values/csv.ts"
import type { StatementLine } from "./Statement.ts"
import { StatementsRepo, statementJson } from "./StatementsRepo.ts"

const json = (text: string) => HttpServerResponse.raw(text, { contentType: "application/json", headers: { vary: "accept" } })

const columns = ["asset", "symbol", "opening", "inbound", "outbound", "other", "closing", "transactionCount"] as const
const amounts: ReadonlySet<string> = new Set(["opening", "inbound", "outbound", "other", "closing"])

/** The lines of a statement as CSV, formatted like exports. */
const csvOf = (assets: string): string => {
  // The sealer serialized the text from lines.
  const lines = JSON.parse(assets) as ReadonlyArray<StatementLine>
  return [columns, ...lines.map((line) => columns.map((column) => csvCell(String(line[column]), amounts.has(column))))].map(csvRow).join("")
}

/** Whether an `Accept` header prefers CSV to JSON. */
const prefersCsv = (accept: string | undefined): boolean => {
  const quality = (type: string) => {
    const range = accept?.split(",").find((one) => one.split(";", 1)[0]?.trim().toLowerCase() === type)
    return range === undefined ? 0 : Number(/;\s*q=([\d.]+)/.exec(range)?.[1] ?? 1)
  }
  const csv = quality("text/csv")
  return csv > 0 && csv >= Math.max(quality("application/json"), quality("*/*"), quality("application/*"))
}

/** Whether text is an existing day. */
const isDay = (text: string): boolean => {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined
  return at !== undefined && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text) && text >= "0001"
}

export const layer = HttpApiBuilder.group(
  Api,
  "statements",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const pages = yield* Pages
    const statements = yield* StatementsRepo

    return handlers
      .handleRaw(
        "listStatements",
        read("listStatements", ({ path: { vaultId }, urlParams: { cursor, limit } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.map(
              pages.cut({
                of: { list: "statements", path: [vaultId] },
                limit,
                cursor,
                keyLength: 1,
                fetch: (after, take) =>
                  Effect.flatMap(
                    statements.list(principal, vaultId, after, take),
                    Option.match({ onNone: () => Effect.fail(notFound()), onSome: Effect.succeed })
                  ),
                keyOf: (row) => [row.date]
              }),
              (found) => answerJson(found, statementJson)
            )
          )
        )
      )
      .handleRaw(
        "getStatement",
        read("getStatement", ({ path: { date, vaultId }, urlParams: { revision } }) =>
          Effect.gen(function* () {
            const { headers } = yield* HttpServerRequest.HttpServerRequest
            const found = isDay(date) ? yield* statements.find(yield* Principal, vaultId, date, revision) : Option.none()
            if (Option.isNone(found)) return yield* notFound()
            if (prefersCsv(headers.accept)) {
              return HttpServerResponse.raw(csvOf(found.value.assets), {
                contentType: "text/csv; charset=utf-8",
                headers: { vary: "accept" }
              })
            }
            if (!takes(headers.accept))
              return yield* problem("not_acceptable", "The Accept header must allow application/json or text/csv.")
            return json(statementJson(found.value))
          })
        )
      )
  })
)
