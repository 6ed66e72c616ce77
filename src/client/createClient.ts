/** Creates the client from the table of operations. Lists are async iterables. */

import type { Pages } from "./call.ts"
import { eachPage } from "./eachPage.ts"
import type { Page } from "./generated/custody.ts"
import { type Operations, routes } from "./generated/operations.ts"
import { type Call, type ClientOptions, caller } from "./request.ts"
import type { Route } from "./route.ts"

/** A client: every operation of the API. */
export type CustodyClient = Operations

type Record = Readonly<{ [name: string]: unknown }>
const isRecord = (value: unknown): value is Record => typeof value === "object" && value !== null

/** The arguments of an operation, in order: path, query or body, options. */
const callOf = (route: Route, given: ReadonlyArray<unknown>): Call => {
  const rest = [...given]
  const path = route.path.replaceAll(/\{\w+\}/g, (name) => {
    const id = rest.shift()
    // These would request another operation: a URL's path resolves them.
    if (typeof id !== "string" || ["", ".", ".."].includes(id)) throw new TypeError(`${name.slice(1, -1)} must be an id`)
    return encodeURIComponent(id)
  })
  const query = route.query ? rest.shift() : undefined
  const body = route.body ? rest.shift() : undefined
  const options = rest.shift()
  return { route, path, query: isRecord(query) ? query : {}, body, options: isRecord(options) ? options : {} }
}

/** A lazy list: it sends requests when it is awaited or iterated. */
const pagesOf = (call: Call, send: (call: Call) => Promise<unknown>): Pages<unknown> => {
  // The response of a list is a page: the contract says so, and the golden files and tests check it.
  const page = (cursor?: string) =>
    send(cursor === undefined ? call : { ...call, query: { ...call.query, cursor } }) as Promise<Page<unknown>>
  const pages = () => eachPage(page)
  return {
    // biome-ignore lint/suspicious/noThenProperty: awaiting a list gives its first page
    then: (onPage, onError) => page().then(onPage, onError),
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const { data } of pages()) yield* data
    }
  }
}

/** A client of the service at `baseUrl` with an API key. */
export const createClient = (options: ClientOptions): CustodyClient => {
  const send = caller(options)
  const operations = Object.entries(routes).map(([name, route]) => [
    name,
    route.pages
      ? (...given: ReadonlyArray<unknown>) => pagesOf(callOf(route, given), send)
      : async (...given: ReadonlyArray<unknown>) => send(callOf(route, given))
  ])
  // Each method is built from its operation's route; the contract's types describe its parameters and result.
  return Object.fromEntries(operations) as CustodyClient
}
