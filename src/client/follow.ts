/**
 * Follows the event feed: its stream of server-sent events, across lost connections and restarts of the service. Each
 * connection resumes from the last cursor of the previous one, so no event is missed or repeated. C-1.
 */
import { CustodyError, NoAnswerError } from "./errors.ts"
import type { WebhookEvent } from "./generated/webhooks.ts"
import { type ClientOptions, errorOf, isBusyProxy, parseJson, pause, queryOf } from "./request.ts"

/** Where to start, and what to follow. */
export interface FollowOptions {
  /** A `resumeCursor`: only events recorded after it. Absent: the whole log. */
  readonly after?: string | undefined
  /** `now`: only events recorded from now on. Not together with `after`. */
  readonly from?: "now" | undefined
  readonly kind?: ReadonlyArray<string> | undefined
  readonly vaultId?: ReadonlyArray<string> | undefined
  readonly entityId?: ReadonlyArray<string> | undefined
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined
  /** Called with each cursor to resume from: after every event, and every 15 s without one. */
  readonly onPlace?: ((resumeCursor: string) => void) | undefined
  /** Called when a connection is open and its cursor known, and with the reason when it is lost and reconnects. */
  readonly onConnected?: (() => void) | undefined
  readonly onLost?: ((reason: Error) => void) | undefined
}

/** An event with the cursor after it. */
export interface FollowedEvent {
  readonly event: WebhookEvent
  /** Store it together with the effect of the event, and pass it as `after` to resume. */
  readonly resumeCursor: string
}

/** A stream is never silent for longer than 15 s; after this silence, in ms, it counts as lost. */
const SILENCE = 45_000
/** Shortest and longest wait before reconnecting, in ms. */
const SOON = 250,
  LATE = 5_000
/** Longest message of a stream, in characters: far more than an event has. */
const LONGEST = 4 * 1_048_576
/** Longest wait before reconnecting that the service, or whatever answers for it, can ask for, in seconds. A timer has a limit, too. */
const LONGEST_ASKED = 300

/** A message of a stream. */
interface Message {
  readonly cursor: string
  /** Absent in a comment. */
  readonly data: string | undefined
}

const messageOf = (block: string): Message | undefined => {
  let cursor: string | undefined, data: string | undefined
  for (const line of block.split("\n")) {
    if (line.startsWith(": at ")) cursor = line.slice(5)
    else if (line.startsWith("id: ")) cursor = line.slice(4)
    else if (line.startsWith("data: ")) data = data === undefined ? line.slice(6) : `${data}\n${line.slice(6)}`
  }
  return cursor === undefined ? undefined : { cursor, data }
}

/** The messages of a connection, until it ends. */
async function* messages(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<Message> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ""
  const stop = () => void reader.cancel().catch(() => {})
  signal.addEventListener("abort", stop, { once: true })
  try {
    for (;;) {
      const timer = setTimeout(stop, SILENCE)
      const { done, value } = await reader.read().finally(() => clearTimeout(timer))
      if (done) return
      const blocks = (text + decoder.decode(value, { stream: true })).split("\n\n")
      text = blocks.pop() ?? ""
      if (text.length > LONGEST) throw new NoAnswerError("unexpected_answer", "The stream sent a message that does not end.")
      for (const block of blocks) {
        const message = messageOf(block)
        if (message !== undefined) yield message
      }
    }
  } finally {
    signal.removeEventListener("abort", stop)
    stop()
  }
}

/** Whether a failure is temporary. */
const isTransient = (error: unknown): boolean =>
  error instanceof CustodyError
    ? error.status === 429 || error.status >= 500
    : error instanceof NoAnswerError && (error.reason === "network" || isBusyProxy(error))

const lost = (cause: unknown, origin: string): Error =>
  cause instanceof CustodyError || cause instanceof NoAnswerError
    ? cause
    : new NoAnswerError("network", `The connection to ${origin} was lost${cause instanceof Error ? `: ${cause.message}` : ""}.`, { cause })

/**
 * Every event that the key can see from a cursor on, oldest first, each once, until the iteration stops or `signal` is
 * aborted. A lost connection is restored, however long that takes. Rejects with a {@link CustodyError} if the service
 * rejects the request (an invalid or revoked key, a cursor that is invalid or older than the log), and with a
 * {@link NoAnswerError} if the first connection fails.
 */
export async function* followEvents(client: ClientOptions, options: FollowOptions = {}): AsyncGenerator<FollowedEvent, void> {
  const { after, from, onConnected, onLost, onPlace, signal, ...filters } = options
  const { apiKey, baseUrl, fetch: send = (request) => fetch(request), timeout = 30_000 } = client
  const origin = baseUrl.replace(/\/+$/, "")
  const gone = signal ?? new AbortController().signal
  const resumed = queryOf(filters),
    first = queryOf({ ...filters, from })
  let place = after,
    began = false,
    wait = SOON

  const connect = async (ended: AbortController): Promise<ReadableStream<Uint8Array>> => {
    const late = setTimeout(() => ended.abort(), timeout)
    try {
      const response = await send(
        new Request(`${origin}/v1/event-feed/stream${place === undefined ? first : resumed}`, {
          redirect: "manual",
          headers: {
            accept: "text/event-stream, application/problem+json",
            authorization: `Bearer ${apiKey}`,
            ...(place === undefined ? {} : { "last-event-id": place })
          },
          signal: ended.signal
        })
      )
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true
      if (!response.ok || !isStream || response.body === null) throw errorOf(response, await response.text())
      return response.body
    } catch (cause) {
      if (cause instanceof CustodyError || cause instanceof NoAnswerError) throw cause
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new NoAnswerError("network", `${origin} cannot be reached: ${why}`, { cause })
    } finally {
      clearTimeout(late)
    }
  }

  while (!gone.aborted) {
    const ended = new AbortController()
    const end = () => ended.abort()
    gone.addEventListener("abort", end, { once: true })
    let failure: unknown
    try {
      const body = await connect(ended)
      let silent = true
      for await (const { cursor, data } of messages(body, ended.signal)) {
        if (gone.aborted) return
        // A stream's first message is its cursor: from then on, the position is known.
        if (silent) onConnected?.()
        silent = false
        began = true
        wait = SOON
        if (data !== undefined) {
          // The stream's data is an event, as the API's contract guarantees.
          const event = parseJson(data) as WebhookEvent
          place = cursor
          yield { event, resumeCursor: cursor }
        }
        place = cursor
        onPlace?.(cursor)
      }
    } catch (error) {
      failure = error
      // An exception of the consumer is thrown into the iteration and is not caught here.
      if (!gone.aborted && (error instanceof CustodyError || error instanceof NoAnswerError)) {
        if (!isTransient(error) || (!began && error instanceof NoAnswerError)) throw error
      }
    } finally {
      gone.removeEventListener("abort", end)
      ended.abort()
    }
    if (gone.aborted) return
    const reason = lost(failure, origin)
    onLost?.(reason)
    const asked = reason instanceof CustodyError ? Math.min(reason.retryAfter ?? 0, LONGEST_ASKED) * 1_000 : 0
    await pause(Math.max(asked, wait * (0.5 + Math.random() / 2)), gone).catch(() => {})
    wait = Math.min(LATE, wait * 2)
  }
}
