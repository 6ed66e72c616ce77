/** Responses and bodies of the portal's own routes. */
import { Cookies, HttpRouter, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect, Schema } from "effect"
import { notFound, problem } from "../http/Problem.ts"
import { isStorable } from "../values/givenId.ts"
import { PASSWORD_MAX, PASSWORD_MIN } from "./passwordRules.ts"

/** A JSON response, with the sign-in library's cookies if there are any. */
export const json = (body: unknown, cookies: ReadonlyArray<string> = []): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.mergeCookies(HttpServerResponse.unsafeJson(body), Cookies.fromSetCookie([...cookies]))

/** The empty response of a change. */
export const done = (cookies: ReadonlyArray<string> = []) => json({ done: true }, cookies)

/** An error that lasts for so many seconds: its detail, and when to retry. */
export const tooMany = (what: string, seconds: number) => {
  const minutes = Math.ceil(seconds / 60)
  const wait = minutes === 1 ? "a minute" : minutes <= 120 ? `${minutes} minutes` : `${Math.ceil(minutes / 60)} hours`
  return problem("rate_limited", `${what} Try again in ${wait}.`, { headers: { "retry-after": String(seconds) } })
}

/** The `id` in a path. */
export const pathId = Effect.flatMap(HttpRouter.params, ({ id }) => (id === undefined || !isStorable(id) ? notFound() : Effect.succeed(id)))

/** A query parameter; empty if absent. */
export const parameter = (name: string) =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => new URLSearchParams(url.split("?", 2)[1]).get(name) ?? "")

/** Text in a body, at most `max` characters. Postgres cannot store NUL. */
export const text = (max: number) =>
  Schema.String.pipe(
    Schema.filter((value) => (value.length <= max && isStorable(value)) || `must have at most ${max} characters and no NUL`)
  )

/** A new password. */
export const NewPassword = text(PASSWORD_MAX).pipe(
  Schema.filter((value) => value.length >= PASSWORD_MIN || `must have at least ${PASSWORD_MIN} characters`)
)

/** Proof of the second factor for one action: a code, or a passkey's response. */
export const Confirmation = Schema.Struct({
  code: Schema.optional(text(40)),
  passkey: Schema.optional(Schema.Unknown)
})
export type Confirmation = typeof Confirmation.Type
