/** The handlers of statements. C-6. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Option } from "effect"
import { Principal } from "../../access/credentials/Principal.ts"
import { reads, turns } from "../../access/visibility/Admission.ts"
import { Api } from "../../app/Api.ts"
import { takes } from "../../http/errorBoundary.ts"
import { handler } from "../../http/handler.ts"
import { answerJson, type Key, Pages } from "../../http/Page.ts"
import { notFound, problem } from "../../http/Problem.ts"
import { dayAfter, isDay, later } from "../../values/Day.ts"
import { Exports } from "../vaults/Exports.ts"
import { type DayRange, linesIn, StatementsRepo, statementJson } from "./StatementsRepo.ts"
import { csvOfLines, isMoved } from "./statementCsv.ts"

const json = (text: string) => HttpServerResponse.raw(text, { contentType: "application/json", headers: { vary: "accept" } })

/** CSV text as a response to a request that may also have JSON. */
const csv = (text: string) => HttpServerResponse.raw(text, { contentType: "text/csv; charset=utf-8", headers: { vary: "accept" } })

/** Most days of a file, and of a summary. */
const FILE_DAYS = 366,
  SUMMARY_DAYS = 3_660

const invalid = (field: string, detail: string) =>
  problem("invalid_parameter", `\`${field}\` ${detail}.`, { fields: [{ in: "query", field, code: "invalid_parameter", detail }] })

/** Rejects a period that ends before it begins, or has more days than `most`, if given. */
const checkDays = ({ from, to }: DayRange, most?: number) => {
  if (from === undefined || to === undefined) return Effect.void
  if (from > to) return invalid("from", "must not be after `to`")
  return most !== undefined && dayAfter(from, most - 1) < to ? invalid("to", `must be at most ${most} days after \`from\``) : Effect.void
}

/** A statement to come: the days of a vault are sealed in order. */
const notSealed = (date: string, first: string) =>
  date < first ? `The vault's statements begin at ${first}.` : `The statement of ${date} is not sealed yet.`

/** Whether an `Accept` header prefers CSV to JSON. */
const prefersCsv = (accept: string | undefined): boolean => {
  const quality = (type: string) => {
    const range = accept?.split(",").find((one) => one.split(";", 1)[0]?.trim().toLowerCase() === type)
    return range === undefined ? 0 : Number(/;\s*q=([\d.]+)/.exec(range)?.[1] ?? 1)
  }
  const ofCsv = quality("text/csv")
  return ofCsv > 0 && ofCsv >= Math.max(quality("application/json"), quality("*/*"), quality("application/*"))
}

/** Whether the response is CSV; fails if it can be neither CSV nor JSON. */
const asCsv = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers: { accept } }) => {
  if (prefersCsv(accept)) return Effect.succeed(true)
  return takes(accept) ? Effect.succeed(false) : problem("not_acceptable", "The Accept header must allow application/json or text/csv.")
})

export const layer = HttpApiBuilder.group(
  Api,
  "statements",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const inTurn = yield* turns
    const pages = yield* Pages
    const statements = yield* StatementsRepo
    const exports = yield* Exports

    return handlers
      .handleRaw(
        "listStatements",
        handler("listStatements", ({ path: { vaultId }, urlParams: { cursor, from, limit, movedOnly, to } }) =>
          Effect.gen(function* () {
            const principal = yield* Principal
            if (yield* asCsv) {
              if (from === undefined || to === undefined) return yield* invalid(from === undefined ? "from" : "to", "is required for CSV")
              if (cursor !== undefined) return yield* invalid("cursor", "cannot be used for CSV, which has all rows")
              yield* checkDays({ from, to }, FILE_DAYS)
              return yield* exports.start(principal, vaultId, statements.csv(vaultId, { from, to }, movedOnly))
            }
            yield* checkDays({ from, to })
            const fetch = (after: Key | null, take: number) =>
              Effect.flatMap(
                statements.list(principal, vaultId, { from, to }, after, take),
                Option.match({ onNone: () => notFound(), onSome: Effect.succeed })
              )
            const of = { list: "statements", path: [vaultId], filters: { from, to } }
            const page = pages.cut({ of, limit, cursor, keyLength: 1, fetch, keyOf: (row) => [row.date] })
            return yield* inTurn(Effect.map(page, (found) => answerJson(found, statementJson)))
          })
        )
      )
      .handleRaw(
        "getStatement",
        read("getStatement", ({ path: { date, vaultId }, urlParams: { revision } }) =>
          Effect.gen(function* () {
            const principal = yield* Principal
            const wantsCsv = yield* asCsv
            if (!isDay(date)) return yield* notFound()
            const found = yield* statements.find(principal, vaultId, date, revision)
            if (Option.isSome(found)) return wantsCsv ? csv(csvOfLines(linesIn(found.value))) : json(statementJson(found.value))
            const sealed = Option.getOrUndefined(yield* statements.sealed(principal, vaultId))
            const isToCome = sealed !== undefined && (date < sealed.first || date >= sealed.next)
            return yield* isToCome ? problem("not_found", notSealed(date, sealed.first)) : notFound()
          })
        )
      )
      .handleRaw(
        "getStatementSummary",
        read("getStatementSummary", ({ path: { vaultId }, urlParams: { movedOnly, to, ...asked } }) =>
          Effect.gen(function* () {
            const principal = yield* Principal
            const wantsCsv = yield* asCsv
            yield* checkDays({ from: asked.from, to })
            const sealed = Option.getOrUndefined(yield* statements.sealed(principal, vaultId))
            if (sealed === undefined) return yield* notFound()
            const { first, next } = sealed
            const from = later(asked.from, first)
            if (to < first) return yield* problem("not_sealed", notSealed(to, first), { members: { firstDate: first } })
            if (to >= next) return yield* problem("not_sealed", notSealed(later(from, next), first))
            yield* checkDays({ from, to }, SUMMARY_DAYS)
            const [found] = yield* statements.summary(principal, vaultId, { from, to })
            if (found === undefined) return yield* notFound()
            const assets = movedOnly ? found.assets.filter(isMoved) : found.assets
            return wantsCsv ? csv(csvOfLines(assets)) : json(JSON.stringify({ vaultId, from, to, ...found, assets }))
          })
        )
      )
  })
)
