/**
 * The public API as an HTTP listener: the contract's routes behind the one door, the document that describes
 * them, the web portal beside them, and nothing else. Spec: Endpoints.
 */
import { HttpApi, HttpApiBuilder, HttpRouter, HttpServerResponse } from "@effect/platform"
import { Effect, Layer, Metric, MetricBoundaries, type Runtime } from "effect"
import { Api } from "./Api.ts"
import { CatalogRepo } from "./catalog/CatalogRepo.ts"
import * as catalog from "./catalog/handlers.ts"
import * as Access from "./credentials/Access.ts"
import { Authentication } from "./credentials/Authentication.ts"
import { DeliveriesRepo } from "./deliveries/DeliveriesRepo.ts"
import * as deliveries from "./deliveries/handlers.ts"
import { Pings } from "./deliveries/Pings.ts"
import { Starter } from "./deliveries/Starter.ts"
import { docsPage } from "./docsPage.ts"
import { EventsRepo } from "./events/EventsRepo.ts"
import * as events from "./events/handlers.ts"
import { answerLog } from "./http/answerLog.ts"
import { MAX_BODY } from "./http/Body.ts"
import { door } from "./http/door.ts"
import type { ExchangeState } from "./http/Exchange.ts"
import { express } from "./http/express.ts"
import { listen } from "./http/listen.ts"
import { Pages } from "./http/Page.ts"
import { document } from "./OpenApi.ts"
import * as Portal from "./portal/Portal.ts"
import { Settings } from "./settings/Settings.ts"
import * as vaults from "./vaults/handlers.ts"
import { Transactions } from "./vaults/Transactions.ts"
import { TransactionQuery } from "./vaults/VaultsApi.ts"
import { VaultsRepo } from "./vaults/VaultsRepo.ts"
import * as webhooks from "./webhooks/handlers.ts"
import { Webhooks } from "./webhooks/Webhooks.ts"
import { WebhooksRepo } from "./webhooks/WebhooksRepo.ts"

/** How long a caller may take to send a body of that size, in seconds. */
const BODY_SECONDS = 10

/** Paths without a key. */
const publicPaths = new Set(["/v1/openapi.json", "/v1/docs"])

/** Every route of the contract as a pattern with its methods, for 405 answers. */
const routes = (() => {
  const found = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>()
  const add = (path: string, method: string) => {
    const known = found.get(path) ?? { pattern: new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`), methods: new Set<string>() }
    known.methods.add(method)
    if (method === "GET") known.methods.add("HEAD")
    found.set(path, known)
  }
  HttpApi.reflect(Api, { onGroup: () => {}, onEndpoint: ({ endpoint }) => add(endpoint.path, endpoint.method) })
  for (const path of publicPaths) add(path, "GET")
  return [...found.values()]
})()

const methodsOf = (path: string) =>
  [...new Set(routes.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => [...methods]))].sort()

const answers = Metric.counter("custody_http_answers_total", { description: "Answers of the public API by status" })
const byStatus = new Map<number, typeof answers>()
const count = (status: number) => {
  const known = byStatus.get(status) ?? Metric.tagged(answers, "status", String(status))
  byStatus.set(status, known)
  known.unsafeUpdate(1, [])
}
const seconds = Metric.histogram(
  "custody_http_request_seconds",
  MetricBoundaries.fromIterable([0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]),
  "Time from request to answer of the public API"
)

/** Counts and logs an answer. */
const observer = (logReads: boolean, runtime: Runtime.Runtime<never>) => {
  const log = answerLog(logReads, runtime)
  return (request: Request, state: ExchangeState, status: number) => {
    seconds.unsafeUpdate((performance.now() - state.startedAt) / 1000, [])
    count(status)
    log(request, state, status)
  }
}

const reads = Layer.provideMerge(Transactions.layer, Layer.merge(Pages.layer, VaultsRepo.layer))

const groups = Layer.mergeAll(vaults.layer, catalog.layer, webhooks.layer, events.layer, deliveries.layer).pipe(
  Layer.provide([CatalogRepo.layer, WebhooksRepo.layer, Webhooks.layer, EventsRepo.layer, DeliveriesRepo.layer]),
  Layer.provide([Pings.layer, Starter.layer]),
  Layer.provide(Access.layer),
  Layer.provide(reads)
)

const documents = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    const text = JSON.stringify(document)
    yield* router.get("/v1/openapi.json", Effect.succeed(HttpServerResponse.raw(text, { contentType: "application/json" })))
    yield* router.get(
      "/v1/docs",
      Effect.succeed(
        HttpServerResponse.raw(docsPage, {
          contentType: "text/html; charset=utf-8",
          headers: { "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'", "x-content-type-options": "nosniff" }
        })
      )
    )
  })
)

/** Serves the public API for as long as the scope is open. Returns the port in use. */
export const serve = Effect.gen(function* () {
  const settings = yield* Settings
  const authentication = yield* Authentication
  const through = door({ isPublic: (path) => publicPaths.has(path), methods: methodsOf, authenticate: authentication.authenticate })
  const transactions = yield* Transactions
  const hot = express({
    path: "/v1/vaults/:vaultId/transactions",
    query: TransactionQuery,
    authorize: Access.authorizations(authentication).vaultReadable,
    handle: transactions.list
  })
  // Inside the framework's app, so that the door sees failures before the framework writes them its own way.
  const { add } = yield* HttpApiBuilder.Middleware
  yield* add(through)
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
      onAnswer: observer(settings.logLevel === "debug", yield* Effect.runtime<never>())
    },
    Portal.withPortal(hot(through)(app))
  )
}).pipe(
  Effect.provide(
    HttpApiBuilder.api(Api).pipe(
      Layer.provide(groups),
      Layer.merge(documents),
      Layer.merge(reads),
      Layer.merge(Portal.layer),
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
  )
)
