/**
 * The platform listener: the record feed for the custody platform, and health and metrics for orchestrators and scrapers.
 * It never listens on the public port. Source: custody records; interface.
 */
import type { HttpApp } from "@effect/platform"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Exit, Metric } from "effect"
import { errorBoundary, methodsIn, pathOf } from "../../http/errorBoundary.ts"
import { render } from "../../runtime/telemetry/Prometheus.ts"

/** The path of the record feed. */
export const RECORDS = "/platform/v1/records"
/** Most bytes per request to the record feed. */
export const MAX_BYTES = 4 * 1024 * 1024

/** What a dependency without an error says. */
export const OK = "ok"

/** The readiness of the process: each dependency with its error, or "ok". */
export interface Readiness {
  readonly ready: boolean
  readonly dependencies: Readonly<Record<string, string>>
  /** Age of the oldest undispatched event in seconds, 0 if there is none. */
  readonly oldestUndispatchedSeconds: number | null
  /** For how many seconds the most overdue delivery has been due, among those whose endpoint accepted its last attempt; 0 if there is none. */
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

const dependencyUp = (dependency: string) =>
  Metric.gauge("custody_dependency_up", { description: "Whether a dependency is available: 1 or 0" }).pipe(
    Metric.tagged("dependency", dependency)
  )
const oldestUndispatched = Metric.gauge("custody_oldest_undispatched_event_seconds", {
  description: "Age of the oldest undispatched event; NaN while Postgres is unavailable"
})

const oldestOverdue = Metric.gauge("custody_oldest_overdue_delivery_seconds", {
  description:
    "How long the most overdue delivery has been due, among those whose endpoint accepted its last attempt; NaN while Postgres is unavailable"
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
  description: "Seconds by which the read replica may be behind; NaN while it is unavailable; not exported if none is configured"
})

const answers = Metric.counter("custody_feed_answers_total", {
  description: "Responses of the record feed by status; none if the client had closed the connection"
})

/** Counts responses of the record feed. */
const counted = <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> => {
  Metric.tagged(answers, "status", "200").unsafeUpdate(0, [])
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) =>
    pathOf(url) === RECORDS
      ? Effect.onExit(app, (exit) =>
          Effect.sync(() => Metric.tagged(answers, "status", Exit.isSuccess(exit) ? String(exit.value.status) : "none").unsafeUpdate(1, []))
        )
      : app
  )
}

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
    Effect.forEach(Object.entries(dependencies), ([name, says]) => Metric.set(dependencyUp(name), says === OK ? 1 : 0)),
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
  const answering = errorBoundary({
    isPublic: () => true,
    methods: methodsIn(all.routes),
    authenticate: Effect.void,
    isInternal: true,
    unavailable: "Postgres is temporarily unavailable. Retry; with an Idempotency-Key the batch is applied only once."
  })(all)
  return counted(answering)
}
