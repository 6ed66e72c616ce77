/**
 * The API in the test's own process: the program's composition with the role `api` on a database of its own, called through
 * its web handlers, without a port and without the start of a program. For tests of what the API answers; what needs a
 * process, a socket or a log uses app.ts.
 */
import { afterAll, beforeAll } from "bun:test"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpApiClient from "@effect/platform/HttpApiClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { ConfigProvider, Effect, Fiber, Layer, Logger } from "effect"
import { Api } from "../../src/app/Api.ts"
import { start } from "../../src/app/App.ts"
import { type Handler, Serving } from "../../src/http/listener.ts"
import { decodeAllRows } from "../../src/runtime/database/decodeRows.ts"
import { DataDir } from "../../src/runtime/embedded/DataDir.ts"
import { Settings } from "../../src/runtime/settings/Settings.ts"
import { App, type Environment, type Listening, ORIGIN } from "./app.ts"

/** The peer of every request: a client on this machine. */
const peer = { requestIP: () => ({ address: "127.0.0.1", family: "IPv4" as const, port: 1 }), timeout: () => {} }

/** What `fetch` adds to the headers of a request, and a `Request` by itself does not have. */
const ownHeaders = ({ body }: RequestInit): Record<string, string> => ({
  host: new URL(ORIGIN).host,
  ...(typeof body === "string" || body instanceof Uint8Array ? { "content-length": String(Buffer.byteLength(body)) } : {})
})

/** Starts the API with these settings and returns how to send it requests and how to end it. */
const startApi = async (env: Environment): Promise<Listening> => {
  decodeAllRows()
  const handlers = new Map<string, Handler>()
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  const serving = {
    serve: ({ name }: { readonly name: string }, handle: Handler) =>
      Effect.as(
        Effect.sync(() => handlers.set(name, handle)),
        0
      )
  }
  const settings = Layer.provide(Settings.layer, Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(env)))))
  const fiber = Effect.runFork(
    start(["api"], { migrate: true, onReady: () => Effect.sync(resolve) }).pipe(
      Effect.provideService(Serving, serving),
      Effect.provide(Layer.mergeAll(Layer.provideMerge(DataDir.layer, settings), Logger.remove(Logger.defaultLogger)))
    )
  )
  await Promise.race([ready, Effect.runPromise(Fiber.join(fiber))])
  return {
    send: (to, target, init = {}) => {
      const handle = handlers.get(to === "api" ? "public API" : "platform listener")
      if (handle === undefined) throw new Error(`${to} is not served`)
      const headers = new Headers({ ...ownHeaders(init), ...Object.fromEntries(new Headers(init.headers)) })
      return handle(new Request(`${ORIGIN}${target}`, { ...init, headers }), peer)
    },
    end: () => Effect.runPromise(Effect.asVoid(Fiber.interrupt(fiber)))
  }
}

/** The API for the test file that calls this: opened before its tests, closed after them. */
export const useApi = (env: Environment = {}): App & { readonly restart: (stopped?: () => Promise<void>) => Promise<void> } => {
  const app = new App()
  let api: Listening | undefined
  const run = async () => {
    api = await startApi(app.env)
    app.send = api.send
  }
  beforeAll(async () => {
    await app.open([], env)
    await run()
  })
  afterAll(async () => {
    await api?.end()
    await app.close()
  })
  /** Ends the API and starts it again; `stopped` runs in between. */
  const restart = async (stopped?: () => Promise<void>) => {
    await api?.end()
    await stopped?.()
    await run()
  }
  return Object.assign(app, { restart })
}

/** The contract's typed client, which sends its requests to an app with a key. */
export const clientOf = (app: App, key: string) =>
  HttpApiClient.make(Api, {
    baseUrl: ORIGIN,
    transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(key))
  }).pipe(
    Effect.provide(FetchHttpClient.layer),
    Effect.provideService(FetchHttpClient.Fetch, ((url: URL, init?: RequestInit) => app.fetch(new Request(url.href, init))) as typeof fetch)
  )
