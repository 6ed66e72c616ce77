/**
 * The routes that pages can request, of the API and of the portal, by path. A path with its ids filled in, such as
 * `/v1/vaults/${id}/balances`, has the type of its route's response, so that a page that requests a route that does not
 * exist, or reads a field that the response does not have, does not compile.
 */
import type { ApiRoutes } from "./apiRoutes.ts"
import type { PortalRoutes } from "./portalRoutes.ts"

type Routes = ApiRoutes & PortalRoutes
type Method = "GET" | "POST" | "PATCH" | "DELETE"

type Segments<P extends string> = P extends `${infer Head}/${infer Tail}` ? [Head, ...Segments<Tail>] : [P]
type WithoutQuery<P extends string> = P extends `${infer Path}?${string}` ? Path : P

/** Whether a path's segments are those of a route, in which `:id` and `{id}` stand for any. */
type Fits<Given, Route> = Given extends [infer G, ...infer Gs]
  ? Route extends [infer R, ...infer Rs]
    ? R extends `:${string}` | `{${string}}`
      ? Fits<Gs, Rs>
      : G extends R
        ? Fits<Gs, Rs>
        : false
    : false
  : Route extends []
    ? true
    : false

type RouteOf<M extends Method, P extends string> = {
  [K in keyof Routes]: K extends `${M} ${infer R}` ? (true extends Fits<Segments<WithoutQuery<P>>, Segments<R>> ? K : never) : never
}[keyof Routes]

/** A route's path with any ids. */
type Filled<R extends string> = R extends `${infer Head}/${infer Tail}` ? `${FilledSegment<Head>}/${Filled<Tail>}` : FilledSegment<R>
type FilledSegment<S extends string> = S extends `:${string}` | `{${string}}` ? string : S

/** The paths of a method, with or without a query. */
export type Path<M extends Method> = {
  [K in keyof Routes]: K extends `${M} ${infer R}` ? Filled<R> | `${Filled<R>}?${string}` : never
}[keyof Routes]

/** The response of a path. */
export type Answer<M extends Method, P extends string> = Routes[RouteOf<M, P>]["answer"]

/** The body that a path takes; none where it takes none. */
export type Body<M extends Method, P extends string> = Routes[RouteOf<M, P>] extends { body: infer B } ? B : undefined

/** The value per id of a path that returns data by id. */
export type ById<P extends string> = Answer<"GET", P> extends Readonly<Record<string, infer A>> ? A : never

type RowOf<A> = A extends { readonly data: ReadonlyArray<infer R> } ? R : never

/** The rows of a path that returns a page; of several paths, those of each. */
export type Row<P extends string> = RowOf<Answer<"GET", P>>

/** A list with its filters in the query, which may be empty. */
export type ListSource<P extends Path<"GET"> = Path<"GET">> = `${P}?${string}`
