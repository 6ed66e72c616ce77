/** The routes of the documentation: no key, compressed, cached by browsers for a while; unknown pages are 404. */
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { LRUCache } from "lru-cache"
import { notFound, type Problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { originOf } from "../../portal/server/origin.ts"
import type { Settings } from "../../runtime/settings/Settings.ts"
import { script, scriptPath, style, stylePath } from "./page.ts"

/** Whether a path needs no key: everything under the documentation's base path. */
export const isPublic = (path: string): boolean => path === "/v1/openapi.json" || path === "/v1/docs" || path.startsWith("/v1/docs/")

const HTML = "text/html; charset=utf-8"
const SOON = "public, max-age=300"
const LONG = "public, max-age=31536000, immutable"
const plainPolicy =
  "default-src 'none'; script-src 'self'; form-action 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"

/** The bytes of texts, plain and compressed: of every page but results of searches, and of the document as seen from some addresses. */
const packed = new LRUCache<string, { readonly plain: Blob; readonly gzip: Blob }>({ max: 200 })
const pack = (text: string) => ({ plain: new Blob([text]), gzip: new Blob([Bun.gzipSync(text)]) })

/** A text, compressed if the client accepts it. All clients that read it slowly share one `Blob`; Bun would copy other bytes for each. */
const send = (text: string, contentType: string, cache: string, policy = plainPolicy, kept = true) =>
  Effect.gen(function* () {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const { headers: own } = yield* currentRequest
    Object.assign(own, {
      "cache-control": cache,
      vary: "accept-encoding",
      "content-security-policy": policy,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer"
    })
    const both = packed.get(text) ?? pack(text)
    if (kept) packed.set(text, both)
    const isPacked = (headers["accept-encoding"] ?? "").includes("gzip")
    const body = isPacked ? both.gzip : both.plain
    const encoding = isPacked ? { "content-encoding": "gzip" } : {}
    return HttpServerResponse.raw(body, { contentType, contentLength: body.size, headers: encoding })
  })

const found = (text: string | undefined) => (text === undefined ? notFound() : send(text, HTML, SOON))
const name = Effect.map(HttpRouter.params, (params) => params["name"] ?? "")
/** The words of a search, as far as they are read. */
const query = Effect.map(HttpServerRequest.ParsedSearchParams, ({ q = "" }) => String(q).slice(0, 100).trim())

const lazy = <A>(load: () => Promise<A>): Effect.Effect<A> => {
  let loading: Promise<A> | undefined
  return Effect.promise(() => {
    loading ??= load()
    return loading
  })
}
// Most processes never serve these pages, so nothing is loaded before the first request.
const reference = lazy(() => import("./reference.ts").then(async (module) => ({ ...(await module.reference()), policy: module.policy })))
const guides = lazy(() => import("./guides.ts"))
const documents = lazy(async () => {
  const { documentAt } = await import("../openapi/OpenApi.ts")
  return new LRUCache<string, string>({ max: 20, memoMethod: (origin) => JSON.stringify(documentAt(origin)) })
})
/** The document, which names the service's origin. Without one that a setting or loopback confirms, it is where it was served. */
const openapi = Effect.zipWith(documents, originOf, (texts, origin) => texts.memo(origin ?? "/"))

const guidePage = (one: string) => Effect.flatMap(guides, ({ guidePages }) => found(guidePages.get(one)))

type Answer = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  Problem<"not_found">,
  HttpServerRequest.HttpServerRequest | HttpServerRequest.ParsedSearchParams | HttpRouter.RouteContext | Settings
>

/** The response of each path. */
export const routes: ReadonlyArray<readonly [HttpRouter.PathInput, Answer]> = [
  ["/v1/openapi.json", Effect.flatMap(openapi, (text) => send(text, "application/json", SOON))],
  ["/v1/docs", Effect.flatMap(reference, ({ html, policy }) => send(html, HTML, SOON, policy))],
  ["/v1/docs/guides", guidePage("quick-start")],
  ["/v1/docs/guides/:name", Effect.flatMap(name, guidePage)],
  ["/v1/docs/errors", Effect.flatMap(guides, ({ errorList }) => found(errorList))],
  ["/v1/docs/errors/:name", Effect.flatMap(name, (one) => Effect.flatMap(guides, ({ errorPages }) => found(errorPages.get(one))))],
  [
    "/v1/docs/search",
    Effect.zipWith(guides, query, ({ searchPage }, one) => searchPage(one)).pipe(
      Effect.flatMap((text) => send(text, HTML, SOON, plainPolicy, false))
    )
  ],
  [
    "/v1/docs/files/:name",
    Effect.gen(function* () {
      const file = `/v1/docs/files/${yield* name}`
      if (file === stylePath) return yield* send(style, "text/css; charset=utf-8", LONG)
      if (file === scriptPath) return yield* send(script, "text/javascript; charset=utf-8", LONG)
      const large = (yield* reference).files.get(file)
      return large === undefined ? yield* notFound() : yield* send(large, "text/javascript; charset=utf-8", LONG)
    })
  ]
]
