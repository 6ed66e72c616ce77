/** The record feed of the platform listener: `POST /platform/v1/records`, and the JSON Schema of records. Source: custody records; interface. */
import { createHash, timingSafeEqual } from "node:crypto"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Either, Metric, Redacted } from "effect"
import type { Applied, InvalidRecords, Line } from "../../custody/ledger/groupCommit.ts"
import { Ledger, MAX_RECORDS } from "../../custody/ledger/Ledger.ts"
import { type Fault, jsonSchema, readLine, readOnce } from "../../custody/ledger/Record.ts"
import { repeatedKeys } from "../../custody/ledger/repeatedKeys.ts"
import { text } from "../../http/Body.ts"
import { respond } from "../../http/Idempotency.ts"
import { type FieldIssue, type Problem, problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { MAX_BYTES, RECORDS } from "./platformApp.ts"

const digest = (text: string) => createHash("sha256").update(text).digest()

/** Whether the header has the platform token; compared in constant time. */
const authorized = (header: string | undefined, token: Redacted.Redacted): boolean =>
  timingSafeEqual(digest(header ?? ""), digest(`Bearer ${Redacted.value(token)}`))

/** The lines of a body: NDJSON by default, or one JSON array. */
const linesOf = (type: string, body: string): Effect.Effect<ReadonlyArray<Line>, Problem> => {
  if (type === "application/x-ndjson") {
    return Effect.succeed(
      body
        .split("\n")
        .flatMap((source, index) =>
          source.trim() === "" ? [] : [lineOf(index + 1, readLine(source, index + 1), () => JSON.parse(source))]
        )
    )
  }
  if (type !== "application/json") {
    return problem("unsupported_media_type", "Send records as application/x-ndjson, or as a JSON array in application/json.")
  }
  return Effect.try({ try: (): unknown => JSON.parse(body), catch: () => problem("malformed_json", "The body is not JSON.") }).pipe(
    Effect.flatMap((value): Effect.Effect<ReadonlyArray<Line>, Problem> => {
      if (!Array.isArray(value)) return problem("invalid_body", "The JSON body must be an array of records.")
      const repeated = repeatedKeys(body)
      return Effect.succeed(
        value.map((item: unknown, index) => lineOf(index + 1, readOnce(item, index + 1, repeated.get(index)), () => item))
      )
    })
  )
}

const lineOf = (line: number, record: Line["read"], input: () => unknown): Line =>
  Either.isRight(record) ? { line, read: record } : { line, read: record, id: idOf(input) }

/** The id or name in a line, to recognize records that refer to it. */
export const idOf = (input: () => unknown): string | undefined => {
  try {
    const value = input()
    if (typeof value !== "object" || value === null) return undefined
    const id = "id" in value ? value.id : "name" in value ? value.name : undefined
    return typeof id === "string" ? id : undefined
  } catch {
    return undefined
  }
}

/** Every error, with its line beside the envelope's usual fields. */
const issueOf = ({ field, line, reason }: Fault): FieldIssue & { readonly line: number; readonly reason: string } => ({
  in: "body",
  field,
  code: "invalid_record",
  detail: `line ${line}: ${field === "" ? "" : `${field} `}${reason}`,
  line,
  reason
})

/** The request, if it has the platform token. */
const authorizedRequest = (token: Redacted.Redacted) =>
  Effect.filterOrFail(
    HttpServerRequest.HttpServerRequest,
    ({ headers }) => authorized(headers.authorization, token),
    () => problem("invalid_api_key", "Send `Authorization: Bearer <PLATFORM_TOKEN>`.", { headers: { "www-authenticate": "Bearer" } })
  ).pipe(Effect.tap(() => Effect.map(currentRequest, (context) => (context.isKnown = true))))

const feed = (token: Redacted.Redacted) =>
  Effect.gen(function* () {
    const request = yield* authorizedRequest(token)
    const ledger = yield* Ledger
    const wanted = request.headers["x-record-events"]
    if (wanted !== undefined && wanted !== "none") {
      return yield* problem("invalid_parameter", "X-Record-Events must be `none` or absent.")
    }
    const type = (request.headers["content-type"] ?? "application/x-ndjson").split(";", 1)[0]?.trim().toLowerCase() ?? ""
    const sent = yield* text(MAX_BYTES, `A request may have at most ${MAX_BYTES} bytes; split it.`)
    const lines = yield* linesOf(type, sent)
    if (lines.length > MAX_RECORDS) {
      return yield* problem("payload_too_large", `A request may have at most ${MAX_RECORDS} records; split it.`)
    }
    const fed = Effect.map(ledger.feed(sent, lines, { events: wanted !== "none" }), ({ answer, applied }) => {
      if (applied !== undefined) tally(applied)
      return respond(answer)
    })
    // A committed batch is counted, whether or not its client still waits.
    return yield* Effect.catchTag(Effect.uninterruptible(fed), "InvalidRecords", invalid)
  })

const invalid = ({ faults }: InvalidRecords) =>
  Effect.fail(
    problem(
      "invalid_body",
      `${faults.length} of the records' fields are invalid; nothing was applied. The first: ` +
        `${faults[0] === undefined ? "" : issueOf(faults[0]).detail}.`,
      { fields: faults.map(issueOf) }
    )
  )

const fedRecords = Metric.counter("custody_feed_records_total", { description: "Records of the feed by outcome" })
const fedEvents = Metric.counter("custody_feed_events_total", { description: "Events recorded by the feed" })

const tally = ({ changed, events, stale, unchanged }: Omit<Applied, "received" | "staleLines">) => {
  Metric.tagged(fedRecords, "outcome", "changed").unsafeUpdate(changed, [])
  Metric.tagged(fedRecords, "outcome", "unchanged").unsafeUpdate(unchanged, [])
  Metric.tagged(fedRecords, "outcome", "stale").unsafeUpdate(stale, [])
  fedEvents.unsafeUpdate(events, [])
}

/** The record feed. `token` is the platform token. */
export const recordFeedRoutes = (token: Redacted.Redacted) => {
  // Registered at startup, so that a feed without records differs from a process without a feed.
  tally({ changed: 0, unchanged: 0, stale: 0, events: 0 })
  return HttpRouter.empty.pipe(
    HttpRouter.post(RECORDS, feed(token)),
    HttpRouter.get(
      "/platform/v1/records/schema",
      Effect.flatMap(authorizedRequest(token), () => Effect.orDie(HttpServerResponse.json(jsonSchema())))
    )
  )
}
