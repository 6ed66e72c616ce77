/**
 * The public API's HTTP listener: the contract's routes behind the error boundary, the documentation, and the web portal.
 * Spec: Endpoints.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpRouter from "@effect/platform/HttpRouter"
import { Effect, Layer, Metric, MetricBoundaries, type Runtime } from "effect"
import { Authentication } from "../access/credentials/Authentication.ts"
import * as access from "../access/routes.ts"
import { Admission } from "../access/visibility/Admission.ts"
import { layer as scopes } from "../access/visibility/scopeMiddleware.ts"
import * as custody from "../custody/routes.ts"
import * as delivery from "../delivery/routes.ts"
import { FeedStreams } from "../events/feed/FeedStreams.ts"
import * as events from "../events/routes.ts"
import { accessLog } from "../http/accessLog.ts"
import { MAX_BODY } from "../http/Body.ts"
import { cors } from "../http/cors.ts"
import { errorBoundary, methodsIn } from "../http/errorBoundary.ts"
import { listen } from "../http/listener.ts"
import { Pages } from "../http/Page.ts"
import type { RequestState } from "../http/RequestContext.ts"
import * as Portal from "../portal/server/Portal.ts"
import { Settings } from "../runtime/settings/Settings.ts"
import { Api } from "./Api.ts"
import { routes as documentation, isPublic as isDocumentation } from "./documentation/routes.ts"

/** How long a client may take to send a body, in seconds. */
const BODY_SECONDS = 10

/** Paths that need no key. */
const publicPaths = new Set(["/v1/jwks.json", "/v1/webhook-source-addresses"])

const methodsOf = (() => {
  const gets = [...documentation.map(([path]) => path), ...publicPaths]
  const routes = gets.map((path): { readonly path: string; readonly method: string } => ({ path, method: "GET" }))
  HttpApi.reflect(Api, { onGroup: () => {}, onEndpoint: ({ endpoint: { method, path } }) => void routes.push({ path, method }) })
  return methodsIn(routes.flatMap((route) => (route.method === "GET" ? [route, { ...route, method: "HEAD" }] : [route])))
})()

const answers = Metric.counter("custody_http_answers_total", { description: "Responses of the public API by status" })
const byStatus = new Map<number, typeof answers>()
const count = (status: number) => {
  const known = byStatus.get(status) ?? Metric.tagged(answers, "status", String(status))
  byStatus.set(status, known)
  known.unsafeUpdate(1, [])
}
const seconds = Metric.histogram(
  "custody_http_request_seconds",
  MetricBoundaries.fromIterable([0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]),
  "Time from request to response of the public API, without what a reader of the event feed asks to wait"
)

/** Counts and logs a response. */
const observer = (logReads: boolean, runtime: Runtime.Runtime<never>) => {
  const log = accessLog(logReads, runtime)
  return (request: Request, state: RequestState, status: number) => {
    seconds.unsafeUpdate((performance.now() - state.startedAt - state.waitedMs) / 1000, [])
    count(status)
    log(request, state, status)
  }
}

const groups = Layer.mergeAll(custody.layer, events.layer, delivery.layer, access.layer).pipe(
  Layer.provide(scopes),
  Layer.provideMerge(Layer.mergeAll(Pages.layer, Admission.layer))
)

/** The OpenAPI document and its page, created at the first request: most processes never serve them and start faster. */
const documents = HttpApiBuilder.Router.use((router) =>
  Effect.flatMap(Settings, (settings) =>
    Effect.forEach(documentation, ([path, answer]) => router.get(path, Effect.provideService(answer, Settings, settings)))
  )
)

/** The services of the API's and the portal's routes. */
const layer = HttpApiBuilder.api(Api).pipe(
  Layer.provideMerge(groups),
  Layer.merge(documents),
  Layer.merge(Layer.provide(Portal.layer, [Pages.layer, Admission.layer])),
  Layer.provideMerge(Layer.mergeAll(HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer)),
  Layer.provide(
    HttpRouter.setRouterConfig({
      caseSensitive: true,
      ignoreTrailingSlash: false,
      ignoreDuplicateSlashes: false,
      maxParamLength: 4_096
    })
  )
)

const listening = Effect.gen(function* () {
  const settings = yield* Settings
  const authentication = yield* Authentication
  const isPublic = (path: string) => publicPaths.has(path) || isDocumentation(path)
  const through = errorBoundary({
    isPublic,
    methods: methodsOf,
    authenticate: authentication.authenticate
  })
  // Inside the framework's app, so that the error boundary sees failures before the framework turns them into responses.
  const { add } = yield* HttpApiBuilder.Middleware
  const across = cors({ origins: settings.corsOrigins, isPublic })
  yield* add((app) => across(through(app)))
  const app = yield* HttpApiBuilder.httpApp
  return yield* listen(
    {
      name: "public API",
      portSetting: "PORT",
      host: settings.host,
      port: settings.port,
      tls:
        settings.tlsCertFile !== undefined && settings.tlsKeyFile !== undefined
          ? { certFile: settings.tlsCertFile, keyFile: settings.tlsKeyFile }
          : undefined,
      trustedProxies: settings.trustedProxies,
      maxBody: MAX_BODY * 2,
      bodySeconds: BODY_SECONDS,
      onDrain: (yield* FeedStreams).stop,
      onResponse: observer(settings.logLevel === "debug", yield* Effect.runtime<never>())
    },
    Portal.withPortal(app)
  )
})

/** Serves the public API while the scope is open. Returns the port. */
export const serve = Effect.flatMap(Layer.build(layer), (services) => Effect.provide(listening, services))
