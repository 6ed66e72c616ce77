/** One HTTP call: request, retries, and its result or error. */

import type { OnceOptions } from "./call.ts"
import { CustodyError, NoAnswerError } from "./errors.ts"
import type { Route } from "./route.ts"

/** Options of a client. */
export interface ClientOptions {
  /** URL of the service, such as `https://custody.example.com`. */
  readonly baseUrl: string
  /** `cds_…` */
  readonly apiKey: string
  /** Timeout per attempt, and per part of a download, in milliseconds; default 30,000. */
  readonly timeout?: number | undefined
  /** Retries of calls that can be repeated safely; default 2. */
  readonly retries?: number | undefined
  /** Replaces the platform's `fetch`. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined
}

/** A call to send. */
export interface Call {
  readonly route: Route
  readonly path: string
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
  readonly options: OnceOptions
}

/** Longest wait before a retry, in milliseconds. */
const LONGEST_WAIT = 30_000

/** A query string including `?`; absent values are left out. Throws for an empty list, which would request everything. */
export const queryOf = (query: Readonly<Record<string, unknown>>): string => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value) && value.length === 0) throw new TypeError(`${name} is an empty list: leave it out to request everything`)
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined && one !== null) parameters.append(name, String(one))
  }
  const text = parameters.toString()
  return text === "" ? "" : `?${text}`
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

/** Seconds of a `Retry-After`: a number of them, or an HTTP date. */
const retryAfterOf = (header: string | null): number | undefined => {
  if (header === null) return undefined
  if (/^\d{1,9}$/.test(header)) return Number(header)
  const at = header.endsWith("GMT") ? Date.parse(header) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, (at - Date.now()) / 1_000)
}

/** A member that is text, if there is one. */
const textIn = (problem: Readonly<Record<string, unknown>>, name: string): string | undefined =>
  typeof problem[name] === "string" ? problem[name] : undefined

/** The value of JSON text. Refuses numbers beyond a double's range: as text, `Infinity` is `null`, so both would have the same hash. */
export const parseJson = (text: string): unknown =>
  JSON.parse(text, (_, value) => {
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) throw new SyntaxError("JSON has a number out of range")
    return value
  })

/** JSON text; undefined if it is something else. */
const parsed = (text: string): unknown => {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

/** Content types of the API's files. */
const FILES = /^(text\/csv|application\/x-ndjson)\b/i

/** Whether this can be the result of an operation, and not a proxy's JSON: an object, and for a list one with a page. */
const isResultOf = (route: Route, result: unknown): boolean =>
  isRecord(result) && !Array.isArray(result) && (!route.pages || (Array.isArray(result["data"]) && isPagination(result["pagination"])))

const isPagination = (given: unknown): boolean =>
  isRecord(given) && (given["nextCursor"] === null || typeof given["nextCursor"] === "string")

/** The error of a response. */
export const errorOf = (response: Response, text: string): Error => {
  // Browsers hide the status and the location of a redirect that is not followed.
  if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
    const location = response.headers.get("location")
    const message = `${response.url} answered with a redirect${location === null ? "" : ` to ${location}`}. It is not followed, because the API key would be sent there: set baseUrl to the address of the service itself.`
    return new NoAnswerError("unexpected_answer", message, { status: response.status })
  }
  const problem = parsed(text)
  if (!isRecord(problem) || typeof problem["code"] !== "string" || typeof problem["requestId"] !== "string") {
    const message = `${response.url} answered ${response.status} with a response that is not the API's`
    return new NoAnswerError("unexpected_answer", message, { status: response.status })
  }
  return new CustodyError(
    {
      code: problem["code"],
      status: response.status,
      title: textOf(problem["title"]),
      detail: textOf(problem["detail"]),
      requestId: problem["requestId"],
      errors: Array.isArray(problem["errors"]) ? problem["errors"] : [],
      oldestCursor: textIn(problem, "oldestCursor"),
      firstDate: textIn(problem, "firstDate")
    },
    retryAfterOf(response.headers.get("retry-after"))
  )
}

/** Whether a proxy, which knows nothing of this API, asks for another attempt. */
export const isBusyProxy = ({ status = 0 }: NoAnswerError): boolean => status === 429 || status >= 502

/** Whether a failure is temporary and the call can be repeated safely. */
const isTransient = (error: unknown): boolean =>
  error instanceof CustodyError
    ? error.status === 429 || error.status === 503 || error.code === "idempotency_in_progress"
    : error instanceof NoAnswerError && (error.reason === "network" || error.reason === "timeout" || isBusyProxy(error))

const waitBefore = (attempt: number, error: unknown): number => {
  const asked = error instanceof CustodyError ? error.retryAfter : undefined
  return asked === undefined ? Math.random() * 250 * 2 ** attempt : asked * 1_000
}

/** Waits; rejects if the caller aborts first. */
export const pause = (millis: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(new NoAnswerError("aborted", "The call was aborted.", { cause: signal?.reason }))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop)
      resolve()
    }, millis)
    if (signal?.aborted === true) stop()
    else signal?.addEventListener("abort", stop, { once: true })
  })

/** A download that rejects when its next part does not come in time. The time that the reader takes does not count. */
const downloadOf = (body: ReadableStream<Uint8Array>, timeout: number): ReadableStream<Uint8Array> => {
  const reader = body.getReader()
  const pull = async (download: ReadableStreamDefaultController<Uint8Array>) => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new NoAnswerError("timeout", `The file is incomplete: nothing came for ${timeout} ms.`)), timeout)
    })
    try {
      const { done, value } = await Promise.race([reader.read(), late])
      if (done) download.close()
      else download.enqueue(value)
    } catch (error) {
      void reader.cancel().catch(() => {})
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
  return new ReadableStream({ pull, cancel: (reason) => reader.cancel(reason) }, { highWaterMark: 0 })
}

/** Sends calls with a client's options. Resolves with the API's response; rejects with one of the errors of errors.ts. */
export const caller = ({ apiKey, baseUrl, fetch: send = (request) => fetch(request), retries = 2, timeout = 30_000 }: ClientOptions) => {
  const origin = baseUrl.replace(/\/+$/, "")

  const once = async ({ body, options, path, query, route }: Call, idempotencyKey: string | undefined): Promise<unknown> => {
    const url = `${origin}${path}${queryOf(query)}`
    const late = new AbortController()
    const deadline = late.signal
    // A call may ask the service to wait for something to return.
    const patience = timeout + (typeof query["wait"] === "number" ? query["wait"] * 1_000 : 0)
    const timer = setTimeout(() => late.abort(), patience)
    const request = new Request(url, {
      method: route.method,
      redirect: "manual",
      headers: {
        accept: `application/json, application/problem+json${route.file ? ", */*" : ""}`,
        authorization: `Bearer ${apiKey}`,
        ...(route.body ? { "content-type": "application/json" } : {}),
        ...(options.requestId === undefined ? {} : { "x-request-id": options.requestId }),
        ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey })
      },
      ...(route.body ? { body: JSON.stringify(body) } : {}),
      signal: options.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline])
    })
    let response: Response, text: string
    try {
      response = await send(request)
      if (route.file && FILES.test(response.headers.get("content-type") ?? "") && response.ok && response.body !== null)
        return downloadOf(response.body, timeout)
      text = await response.text()
    } catch (cause) {
      if (options.signal?.aborted === true) throw new NoAnswerError("aborted", "The call was aborted.", { cause })
      if (deadline.aborted) throw new NoAnswerError("timeout", `No response within ${patience} ms.`, { cause })
      throw new NoAnswerError("network", `${origin} cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`, {
        cause
      })
    } finally {
      clearTimeout(timer)
    }
    if (route.empty === true && response.status === 204) return undefined
    const result = parsed(text)
    if (!response.ok || route.file || route.empty === true || !isResultOf(route, result)) throw errorOf(response, text)
    return result
  }

  return async (call: Call): Promise<unknown> => {
    const key = call.route.once ? (call.options.idempotencyKey ?? crypto.randomUUID()) : undefined
    // Each ping sends a request, and a patch or delete may have been carried out: repeating them is up to the caller.
    const again = call.route.method === "GET" || key !== undefined
    for (let attempt = 0; ; attempt++) {
      try {
        return await once(call, key)
      } catch (error) {
        const limited = error instanceof CustodyError && error.status === 429
        const wait = waitBefore(attempt, error)
        if (attempt >= retries || !isTransient(error) || !(again || limited) || wait > LONGEST_WAIT) throw error
        await pause(wait, call.options.signal)
      }
    }
  }
}
