/**
 * The public API's HTTP listener: the contract's routes behind the error boundary, the documentation, and the web portal.
 * Spec: Endpoints.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpRouter from "@effect/platform/HttpRouter"
import { Effect, Layer, Metric, MetricBoundaries, type Runtime } from "effect"
import { AuditLogRepo } from "../access/audit/AuditLogRepo.ts"
import * as auditLog from "../access/audit/handlers.ts"
import { Authentication } from "../access/credentials/Authentication.ts"
import { KeyChecks } from "../access/credentials/KeyChecks.ts"
import { Admission } from "../access/visibility/Admission.ts"
import { CredentialRepo } from "../access/visibility/CredentialRepo.ts"
import * as credential from "../access/visibility/handlers.ts"
import * as Access from "../access/visibility/scopeMiddleware.ts"
import { CatalogRepo } from "../custody/catalog/CatalogRepo.ts"
import * as catalog from "../custody/catalog/handlers.ts"
import * as statements from "../custody/statements/handlers.ts"
import { StatementsRepo } from "../custody/statements/StatementsRepo.ts"
import { BalanceHistoryRepo } from "../custody/vaults/BalanceHistoryRepo.ts"
import * as vaults from "../custody/vaults/handlers.ts"
import { TransactionExport } from "../custody/vaults/TransactionExport.ts"
import { Transactions } from "../custody/vaults/Transactions.ts"
import { TransactionQuery } from "../custody/vaults/VaultsApi.ts"
import { VaultsRepo } from "../custody/vaults/VaultsRepo.ts"
import { DeliveriesQuery } from "../delivery/deliveries/DeliveriesApi.ts"
import { DeliveriesRepo } from "../delivery/deliveries/DeliveriesRepo.ts"
import { DeliveryReads } from "../delivery/deliveries/DeliveryReads.ts"
import * as deliveries from "../delivery/deliveries/handlers.ts"
import { Pings } from "../delivery/deliveries/Pings.ts"
import { WorkflowStarter } from "../delivery/deliveries/WorkflowStarter.ts"
import * as recoveries from "../delivery/recoveries/handlers.ts"
import { Recoveries } from "../delivery/recoveries/Recoveries.ts"
import { RecoveriesRepo } from "../delivery/recoveries/RecoveriesRepo.ts"
import * as webhooks from "../delivery/webhooks/handlers.ts"
import { WebhookPreview } from "../delivery/webhooks/WebhookPreview.ts"
import { WebhookReads } from "../delivery/webhooks/WebhookReads.ts"
import { Webhooks } from "../delivery/webhooks/Webhooks.ts"
import { WebhooksRepo } from "../delivery/webhooks/WebhooksRepo.ts"
import { CatchUpQuery } from "../events/feed/FeedApi.ts"
import { FeedFollower } from "../events/feed/FeedFollower.ts"
import { FeedPages } from "../events/feed/FeedPages.ts"
import { FeedRepo } from "../events/feed/FeedRepo.ts"
import { FeedStreams } from "../events/feed/FeedStreams.ts"
import * as feed from "../events/feed/handlers.ts"
import { OpenReaders } from "../events/feed/OpenReaders.ts"
import { EventReads } from "../events/log/EventReads.ts"
import { EventsQuery } from "../events/log/EventsApi.ts"
import { EventsRepo } from "../events/log/EventsRepo.ts"
import * as events from "../events/log/handlers.ts"
import { CheckpointsRepo } from "../events/proof/CheckpointsRepo.ts"
import * as proof from "../events/proof/handlers.ts"
import { accessLog } from "../http/accessLog.ts"
import { MAX_BODY } from "../http/Body.ts"
import { errorBoundary } from "../http/errorBoundary.ts"
import { fastPath } from "../http/fastPath.ts"
import { listen } from "../http/listener.ts"
import { Pages } from "../http/Page.ts"
import { noQuery } from "../http/Parameters.ts"
import type { RequestState } from "../http/RequestContext.ts"
import * as Portal from "../portal/server/Portal.ts"
import { SigningKeys } from "../runtime/crypto/SigningKeys.ts"
import { routed } from "../runtime/database/replica/ReadReplica.ts"
import { Settings } from "../runtime/settings/Settings.ts"
import { Api } from "./Api.ts"
import { routes as documentation, isPublic as isDocumentation } from "./documentation/routes.ts"

/** How long a client may take to send a body, in seconds. */
const BODY_SECONDS = 10

/** Paths that need no key. */
const publicPaths = new Set(["/v1/jwks.json"])

/** Every route of the contract as a pattern with its methods, for 405 responses. */
const routes = (() => {
  const found = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>()
  const add = (path: string, method: string) => {
    const known = found.get(path) ?? { pattern: new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`), methods: new Set<string>() }
    known.methods.add(method)
    if (method === "GET") known.methods.add("HEAD")
    found.set(path, known)
  }
  HttpApi.reflect(Api, { onGroup: () => {}, onEndpoint: ({ endpoint }) => add(endpoint.path, endpoint.method) })
  for (const [path] of documentation) add(path, "GET")
  for (const path of publicPaths) add(path, "GET")
  return [...found.values()]
})()

const methodsOf = (path: string) =>
  [...new Set(routes.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => [...methods]))].sort()

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
  "Time from request to response of the public API"
)

/** Counts and logs a response. */
const observer = (logReads: boolean, runtime: Runtime.Runtime<never>) => {
  const log = accessLog(logReads, runtime)
  return (request: Request, state: RequestState, status: number) => {
    seconds.unsafeUpdate((performance.now() - state.startedAt) / 1000, [])
    count(status)
    log(request, state, status)
  }
}

/** Reads that may use a replica and be up to 5 seconds old: custody data and its catalog. All others use the primary. Decision D-58. */
const custodyReads = Layer.provide(
  Layer.mergeAll(VaultsRepo.layer, BalanceHistoryRepo.layer, CatalogRepo.layer, TransactionExport.layer),
  routed
)

const reads = Layer.provideMerge(Transactions.layer, Layer.mergeAll(Pages.layer, custodyReads, Admission.layer))

/** The services of the event feed. */
const following = Layer.merge(FeedStreams.layer, FeedPages.layer).pipe(
  Layer.provideMerge(FeedFollower.layer),
  Layer.provideMerge(Layer.mergeAll(FeedRepo.layer, KeyChecks.layer, OpenReaders.layer))
)

const groups = Layer.mergeAll(
  vaults.layer,
  statements.layer,
  catalog.layer,
  webhooks.layer,
  events.layer,
  deliveries.layer,
  recoveries.layer,
  proof.layer,
  auditLog.layer,
  credential.layer,
  feed.layer
).pipe(
  Layer.provide([SigningKeys.layer, AuditLogRepo.layer, CheckpointsRepo.layer, Webhooks.layer]),
  Layer.provideMerge(Layer.mergeAll(EventReads.layer, DeliveryReads.layer, WebhookReads.layer)),
  Layer.provide([WebhooksRepo.layer, EventsRepo.layer, DeliveriesRepo.layer]),
  Layer.provide([Layer.provideMerge(Recoveries.layer, RecoveriesRepo.layer)]),
  Layer.provide([CredentialRepo.layer, WebhookPreview.layer, StatementsRepo.layer]),
  Layer.provide(Pings.layer),
  Layer.provide(WorkflowStarter.layer),
  Layer.provide(Access.layer),
  Layer.provideMerge(following),
  Layer.provide(reads)
)

/** The OpenAPI document and its page, created at the first request: most processes never serve them and start faster. */
const documents = HttpApiBuilder.Router.use((router) => Effect.forEach(documentation, ([path, answer]) => router.get(path, answer)))

/** The services of the API's and the portal's routes. */
const layer = HttpApiBuilder.api(Api).pipe(
  Layer.provideMerge(groups),
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

const listening = Effect.gen(function* () {
  const settings = yield* Settings
  const authentication = yield* Authentication
  const through = errorBoundary({
    isPublic: (path) => publicPaths.has(path) || isDocumentation(path),
    methods: methodsOf,
    authenticate: authentication.authenticate
  })
  const transactions = yield* Transactions
  const { admit } = yield* Admission
  const feedPages = yield* FeedPages
  const { vaultReadable, webhookReadable, webhooksReadable } = Access.authorizations(authentication)
  const eventReads = yield* EventReads
  const deliveryReads = yield* DeliveryReads
  const webhookReads = yield* WebhookReads
  const hot = [
    fastPath({
      path: "/v1/vaults/:vaultId/transactions",
      query: TransactionQuery,
      authorize: vaultReadable,
      handle: (principal, vaultId, asked) => admit(principal, transactions.list(principal, vaultId, asked))
    }),
    fastPath({
      path: "/v1/event-feed",
      query: CatchUpQuery,
      authorize: webhooksReadable,
      handle: (principal, _, asked) => feedPages.answer(principal, asked)
    }),
    fastPath({
      path: "/v1/webhook-events",
      query: EventsQuery,
      authorize: webhooksReadable,
      handle: (principal, _, asked) => admit(principal, eventReads.list(principal, asked))
    }),
    fastPath({
      path: "/v1/webhook-events/:eventId",
      query: noQuery,
      authorize: webhookReadable,
      handle: (principal, eventId) => admit(principal, eventReads.get(principal, eventId))
    }),
    fastPath({
      path: "/v1/webhooks/:webhookId",
      query: noQuery,
      authorize: webhookReadable,
      handle: (principal, webhookId) => admit(principal, webhookReads.get(principal, webhookId))
    }),
    fastPath({
      path: "/v1/webhooks/:webhookId/deliveries",
      query: DeliveriesQuery,
      authorize: webhookReadable,
      handle: (principal, webhookId, asked) => admit(principal, deliveryReads.list(principal, webhookId, asked))
    })
  ]
  // Inside the framework's app, so that the error boundary sees failures before the framework turns them into responses.
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
      onDrain: (yield* FeedStreams).stop,
      onResponse: observer(settings.logLevel === "debug", yield* Effect.runtime<never>())
    },
    Portal.withPortal(hot.reduce((served, path) => path(through)(served), app))
  )
})

/** Serves the public API while the scope is open. Returns the port. */
export const serve = Effect.flatMap(Layer.build(layer), (services) => Effect.provide(listening, services))
