/**
 * The pages' client of the service: JSON over the portal's own routes. An error is an {@link ApiProblem} with the code,
 * the detail and the invalid fields of the response.
 */

import type { Page } from "../../client/index.ts"
import type { Confirmation } from "../signIn/confirmation.ts"
import type { Answer, Body, ById, Path, Row } from "./routeTypes.ts"

type Sent<M extends "POST", P extends Path<M>> = Body<M, P> extends undefined ? [] : [body: Body<M, P>]

const ROOT = "/portal/api"
/** Input in the last minute counts as activity. */
const ACTIVE_MS = 60_000

let lastInput = Date.now()
for (const kind of ["pointerdown", "keydown", "wheel", "touchstart"]) {
  addEventListener(
    kind,
    () => {
      lastInput = Date.now()
    },
    { passive: true }
  )
}

/** An error response, or none at all (`status` 0). */
export class ApiProblem extends Error {
  readonly status: number
  readonly code: string
  /** Messages by field. */
  readonly fields: Readonly<Record<string, string>>
  constructor(status: number, code: string, message: string, fields: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.fields = fields
  }
}

const sentence = (text: string) => {
  const begun = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(begun) ? begun : `${begun}.`
}

interface ProblemBody {
  readonly code?: string
  readonly detail?: string
  readonly errors?: ReadonlyArray<{ readonly field: string; readonly detail: string }>
}

/** Request timeout; slower responses count as unreachable. */
const ANSWER_MS = 20_000

const UNREACHABLE = "The service cannot be reached. Check your connection and try again."

const refusal = async (response: Response): Promise<ApiProblem> => {
  // Anything but the service's own envelope (such as a proxy's page) lacks its fields.
  const body: ProblemBody = await response.json().catch(() => ({}))
  const { code = "unknown", detail = "The service gave no reason.", errors = [] } = body
  const said =
    code === "not_found"
      ? "It does not exist, or you cannot see it."
      : code === "invalid_body" && errors.length > 0
        ? "Check the marked fields."
        : detail
  return new ApiProblem(response.status, code, said, Object.fromEntries(errors.map((one) => [one.field, sentence(one.detail)])))
}

/** Codes that mean that the session is missing or incomplete. */
export const sessionEnded = (error: unknown): boolean =>
  error instanceof ApiProblem &&
  (error.code === "signed_out" || (error.code === "second_factor_required" && error.fields["code"] === undefined))

let signInAgain: (() => Promise<void>) | undefined
/** What a change waits for when its session has expired; undefined if nobody was signed in before. */
export const onSessionEnd = (wait: (() => Promise<void>) | undefined): void => {
  signInAgain = wait
}

const isRead = (method: string) => method === "GET" || method === "HEAD"

/** How many times a read is repeated while the service is busy. */
const BUSY_RETRIES = 6

/** Waits as long as the service asks for, at most 5 s. */
const waitFor = (response: Response) =>
  new Promise((resolve) => setTimeout(resolve, 1_000 * Math.min(5, Math.max(1, Number(response.headers.get("retry-after"))))))

interface Sending {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Ends the request: nobody waits for it any more. */
  readonly signal?: AbortSignal
}

const sendOnce = (method: string, path: string, { body, headers = {}, signal }: Sending) =>
  fetch(`${ROOT}${path}`, {
    method,
    signal: AbortSignal.any([AbortSignal.timeout(ANSWER_MS), ...(signal === undefined ? [] : [signal])]),
    headers: {
      "x-portal": "1",
      ...(Date.now() - lastInput < ACTIVE_MS ? { "x-portal-active": "1" } : {}),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  }).catch(() => {
    throw new ApiProblem(0, "unreachable", UNREACHABLE)
  })

/** A read waits while the service is busy; a change that was refused is the user's to repeat. */
const send = async (method: string, path: string, sending: Sending = {}) => {
  let response = await sendOnce(method, path, sending)
  for (let left = BUSY_RETRIES; response.status === 503 && isRead(method) && left > 0; left--) {
    await waitFor(response)
    response = await sendOnce(method, path, sending)
  }
  if (!response.ok) throw await refusal(response)
  return response
}

/** A change whose session has expired waits for the next sign-in and is then sent again: no input is lost. */
const ask = async (...request: Parameters<typeof send>) => {
  try {
    return await send(...request)
  } catch (error) {
    if (isRead(request[0]) || signInAgain === undefined || !sessionEnded(error)) throw error
    await signInAgain()
    return send(...request)
  }
}

const read = async (response: Response) => (response.status === 204 ? undefined : response.json())

/** The header with the second factor for an action of the API. */
const confirmedBy = (confirmation: Confirmation | undefined): Readonly<Record<string, string>> =>
  confirmation === undefined ? {} : { "x-portal-confirmation": JSON.stringify(confirmation) }

/** The signal of a query, which ends its request with the page that shows it. */
interface Ending {
  readonly signal?: AbortSignal
}

export const get = async <P extends Path<"GET">>(path: P, ending: Ending = {}): Promise<Answer<"GET", P>> =>
  read(await ask("GET", path, ending))
/** Data of these ids, by id. */
export const getById = async <P extends Path<"GET">>(
  path: P,
  ids: ReadonlyArray<string>,
  ending: Ending = {}
): Promise<Readonly<Record<string, ById<P>>>> => read(await ask("GET", `${path}?ids=${ids.map(encodeURIComponent).join(",")}`, ending))
/** A page of a list: its path, with its filters and cursor in the query. */
export const getPage = async <P extends Path<"GET">>(source: `${P}?${string}`, ending: Ending = {}): Promise<Page<Row<P>>> =>
  read(await ask("GET", source, ending))
/** The response as text, of the given media type if there are several. */
export const getText = async (path: string, accept = "application/json"): Promise<string> =>
  (await ask("GET", path, { headers: { accept } })).text()
/** Checks whether a download would succeed; rejects if not. */
export const getHead = async (path: string): Promise<void> => void (await ask("HEAD", path))
/** The URL from which the browser itself loads a path. */
export const addressOf = (path: string): string => `${ROOT}${path}`
export const post = async <P extends Path<"POST">>(path: P, ...[body]: Sent<"POST", P>): Promise<Answer<"POST", P>> =>
  read(await ask("POST", path, { body: body ?? {} }))
export const patch = async <P extends Path<"PATCH">>(
  path: P,
  body: Body<"PATCH", P>,
  confirmation?: Confirmation
): Promise<Answer<"PATCH", P>> => read(await ask("PATCH", path, { body, headers: confirmedBy(confirmation) }))
export const remove = async <P extends Path<"DELETE">>(path: P): Promise<void> => void (await ask("DELETE", path))
/** A change that happens once even if its response is lost: a retry with the same `key` gets the same response. */
export const postOnce = async <P extends Path<"POST">>(
  path: P,
  key: string,
  ...[body, confirmation]: Body<"POST", P> extends undefined
    ? [body?: undefined, confirmation?: Confirmation]
    : [body: Body<"POST", P>, confirmation?: Confirmation]
): Promise<Answer<"POST", P>> => read(await ask("POST", path, { body, headers: { "idempotency-key": key, ...confirmedBy(confirmation) } }))

/** The same for requests of the sign-in itself, which never wait for it. */
export const postSignIn = async <P extends Path<"POST">>(path: P, ...[body]: Sent<"POST", P>): Promise<Answer<"POST", P>> =>
  read(await send("POST", path, { body: body ?? {} }))

/** The message of a failure. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : "Something went wrong.")
/** The messages of a failure by field. */
export const fieldsOf = (error: unknown): Readonly<Record<string, string>> => (error instanceof ApiProblem ? error.fields : {})
