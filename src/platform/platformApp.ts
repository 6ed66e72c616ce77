/**
 * The platform listener: the record feed for the custody platform, and health and metrics for orchestrators and scrapers.
 * It never listens on the public port. Source: custody records; interface.
 */

import { createHash, timingSafeEqual } from "node:crypto"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect, Either, Metric, Redacted } from "effect"
import { text } from "../http/Body.ts"
import { errorBoundary, methodsIn } from "../http/errorBoundary.ts"
import { respond } from "../http/Idempotency.ts"
import { type FieldIssue, type Problem, problem } from "../http/Problem.ts"
import type { Applied, InvalidRecords, Line } from "../ledger/applyTogether.ts"
import { Ledger, MAX_RECORDS } from "../ledger/Ledger.ts"
import { type Fault, read, readLine } from "../ledger/Record.ts"
import { render } from "../telemetry/Prometheus.ts"

/** Most bytes per request. */
export const MAX_BYTES = 4 * 1024 * 1024

/** The readiness of the process: each dependency with its error, null if it is available. */
export interface Readiness {
  readonly ready: boolean
  readonly dependencies: Readonly<Record<string, string | null>>
  /** Age of the oldest undispatched event in seconds, 0 if there is none. */
  readonly oldestUndispatchedSeconds: number | null
  /** Seconds overdue of the most overdue delivery whose endpoint accepted its last one, 0 if there is none. */
  readonly oldestOverdueSeconds: number | null
  /** Age of the oldest unsent operational notice in seconds, 0 if there is none. */
  readonly oldestUnsentNoticeSeconds: number | null
  /** For how long the oldest unsealed statement has been due in seconds, 0 if none is due. */
  readonly oldestOverdueStatementSeconds: number | null
  /** Webhooks whose endpoint is down. */
  readonly endpointsDown: number | null
  /** Seconds by which the read replica may be behind, null if it is absent; only with one. */
  readonly replicaLagSeconds?: number | null
}

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
    Effect.flatMap(
      (value): Effect.Effect<ReadonlyArray<Line>, Problem> =>
        Array.isArray(value)
          ? Effect.succeed(value.map((item: unknown, index) => lineOf(index + 1, read(item, index + 1), () => item)))
          : problem("invalid_body", "The JSON body must be an array of records.")
    )
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

const feed = (token: Redacted.Redacted) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const ledger = yield* Ledger
    if (!authorized(request.headers.authorization, token)) {
      return yield* problem("invalid_api_key", "Send `Authorization: Bearer <PLATFORM_TOKEN>`.", {
        headers: { "www-authenticate": "Bearer" }
      })
    }
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

const tally = ({ changed, events, unchanged }: Omit<Applied, "received">) => {
  Metric.tagged(fedRecords, "outcome", "changed").unsafeUpdate(changed, [])
  Metric.tagged(fedRecords, "outcome", "unchanged").unsafeUpdate(unchanged, [])
  fedEvents.unsafeUpdate(events, [])
}

/** The record feed. `token` is the platform token. */
export const feedRoutes = (token: Redacted.Redacted) => {
  // Registered at startup, so that a feed without records differs from a process without a feed.
  tally({ changed: 0, unchanged: 0, events: 0 })
  return HttpRouter.empty.pipe(HttpRouter.post("/platform/v1/records", feed(token)))
}

const dependencyUp = (dependency: string) =>
  Metric.gauge("custody_dependency_up", { description: "Whether a dependency is available: 1 or 0" }).pipe(
    Metric.tagged("dependency", dependency)
  )
const oldestUndispatched = Metric.gauge("custody_oldest_undispatched_event_seconds", {
  description: "Age of the oldest undispatched event; NaN while Postgres is unavailable"
})

const oldestOverdue = Metric.gauge("custody_oldest_overdue_delivery_seconds", {
  description: "Time overdue of the most overdue delivery whose endpoint accepted its last one; NaN while Postgres is unavailable"
})

const oldestUnsentNotice = Metric.gauge("custody_oldest_unsent_notice_seconds", {
  description: "Age of the oldest unsent operational notice; NaN while Postgres is unavailable"
})

const oldestOverdueStatement = Metric.gauge("custody_oldest_overdue_statement_seconds", {
  description: "How long the oldest unsealed statement has been due; NaN while Postgres is unavailable"
})

const endpointsDownGauge = Metric.gauge("custody_endpoints_down", {
  description: "Webhooks whose endpoint is down, so that their deliveries are held and it is probed; NaN while Postgres is unavailable"
})

const replicaLag = Metric.gauge("custody_replica_lag_seconds", {
  description: "Seconds by which the read replica may be behind; NaN while it is absent, and not shown without one"
})

/** Exports readiness as metrics. */
const measure = ({
  dependencies,
  endpointsDown,
  oldestOverdueSeconds,
  oldestOverdueStatementSeconds,
  oldestUndispatchedSeconds,
  oldestUnsentNoticeSeconds,
  replicaLagSeconds
}: Readiness) =>
  Effect.all([
    replicaLagSeconds === undefined ? Effect.void : Metric.set(replicaLag, replicaLagSeconds ?? Number.NaN),
    Effect.forEach(Object.entries(dependencies), ([name, fault]) => Metric.set(dependencyUp(name), fault === null ? 1 : 0)),
    Metric.set(oldestUndispatched, oldestUndispatchedSeconds ?? Number.NaN),
    Metric.set(oldestOverdue, oldestOverdueSeconds ?? Number.NaN),
    Metric.set(oldestUnsentNotice, oldestUnsentNoticeSeconds ?? Number.NaN),
    Metric.set(oldestOverdueStatement, oldestOverdueStatementSeconds ?? Number.NaN),
    Metric.set(endpointsDownGauge, endpointsDown ?? Number.NaN)
  ])

/** The listener's routes: health, metrics and the given ones. `readiness` checks the process. */
export const platformApp = <E, R>(routes: HttpRouter.HttpRouter<E, R>, readiness: Effect.Effect<Readiness>) => {
  const all = routes.pipe(
    HttpRouter.get("/health/live", Effect.orDie(HttpServerResponse.json({ live: true }))),
    HttpRouter.get(
      "/health/ready",
      Effect.flatMap(readiness, (state) => Effect.orDie(HttpServerResponse.json(state, { status: state.ready ? 200 : 503 })))
    ),
    HttpRouter.get(
      "/metrics",
      Effect.map(Effect.flatMap(readiness, measure), () =>
        HttpServerResponse.text(render(), { contentType: "text/plain; version=0.0.4; charset=utf-8" })
      )
    )
  )
  return errorBoundary({
    isPublic: () => true,
    methods: methodsIn(all),
    authenticate: Effect.void,
    unavailable: "Postgres is temporarily unavailable. Retry; with an Idempotency-Key the batch is applied only once."
  })(all)
}
