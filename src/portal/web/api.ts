/**
 * How pages talk to the service: JSON over the portal's own paths. A refusal is an {@link ApiProblem} with the code, the
 * sentence and the fields at fault that the service answered with.
 */

const ROOT = "/portal/api"
/** Input in the last minute means that somebody is in front of the page. */
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

/** A refusal, or no answer at all (`status` 0). */
export class ApiProblem extends Error {
  readonly status: number
  readonly code: string
  /** Sentences by field. */
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

/** Longest wait for an answer; what takes longer counts as unreachable. */
const ANSWER_MS = 20_000

const UNREACHABLE = "The service cannot be reached. Check your connection and try again."

const refusal = async (response: Response): Promise<ApiProblem> => {
  // What is not the service's own envelope (a proxy's page) has none of its fields.
  const body = (await response.json().catch(() => ({}))) as ProblemBody
  const { code = "unknown", detail = "The service did not say why.", errors = [] } = body
  const said =
    code === "not_found"
      ? "It does not exist, or you cannot see it."
      : code === "invalid_body" && errors.length > 0
        ? "Check the marked fields."
        : detail
  return new ApiProblem(response.status, code, said, Object.fromEntries(errors.map((one) => [one.field, sentence(one.detail)])))
}

/** Codes with which the service says that the session is not, or not yet, a complete one. */
export const sessionEnded = (error: unknown): boolean =>
  error instanceof ApiProblem &&
  (error.code === "signed_out" || (error.code === "second_factor_required" && error.fields["code"] === undefined))

let signInAgain: (() => Promise<void>) | undefined
/** Names what a change waits for when its session has ended; undefined where nobody was signed in before. */
export const onSessionEnd = (wait: (() => Promise<void>) | undefined): void => {
  signInAgain = wait
}

const send = async (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) => {
  const response = await fetch(`${ROOT}${path}`, {
    method,
    signal: AbortSignal.timeout(ANSWER_MS),
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
  if (!response.ok) throw await refusal(response)
  return response
}

/** A change whose session has ended waits for the next sign-in and is then sent once more: nothing that was filled in is lost. */
const ask = async (...request: Parameters<typeof send>) => {
  try {
    return await send(...request)
  } catch (error) {
    if (request[0] === "GET" || request[0] === "HEAD" || signInAgain === undefined || !sessionEnded(error)) throw error
    await signInAgain()
    return send(...request)
  }
}

// What the service answers has the shape that its contract says; the caller names it.
const read = async <A>(response: Response) => (response.status === 204 ? undefined : await response.json()) as A

/** The header in which an act of the API's is confirmed by the second factor. */
const confirmedBy = (confirmation: unknown): Readonly<Record<string, string>> =>
  confirmation === undefined ? {} : { "x-portal-confirmation": JSON.stringify(confirmation) }

export const get = async <A>(path: string): Promise<A> => read(await ask("GET", path))
/** The text of an answer as it is, of a type that is asked for where there are several. */
export const getText = async (path: string, accept = "application/json"): Promise<string> =>
  (await ask("GET", path, undefined, { accept })).text()
/** Whether a file would be answered; rejects as its download would. */
export const getHead = async (path: string): Promise<void> => void (await ask("HEAD", path))
/** Where the browser itself loads what the service answers under a path. */
export const addressOf = (path: string): string => `${ROOT}${path}`
export const post = async <A>(path: string, body: unknown = {}): Promise<A> => read(await ask("POST", path, body))
export const patch = async <A>(path: string, body: unknown, confirmation?: unknown): Promise<A> =>
  read(await ask("PATCH", path, body, confirmedBy(confirmation)))
export const remove = async (path: string): Promise<void> => read(await ask("DELETE", path))
/** A change that happens once however often its answer is lost: asked again with the same `key`, it answers the same. */
export const postOnce = async <A>(path: string, key: string, body?: unknown, confirmation?: unknown): Promise<A> =>
  read(await ask("POST", path, body, { "idempotency-key": key, ...confirmedBy(confirmation) }))

/** The same for what signing in itself asks: it waits for nobody. */
export const postSignIn = async <A>(path: string, body: unknown = {}): Promise<A> => read(await send("POST", path, body))

/** The sentence of a failure. */
export const saidOf = (error: unknown): string => (error instanceof Error ? error.message : "Something went wrong.")
/** What a failure says of single fields. */
export const fieldsOf = (error: unknown): Readonly<Record<string, string>> => (error instanceof ApiProblem ? error.fields : {})
