/** Follows the feed for `custody listen`: prints each event, posts it, and explains why it ends. C-1. */
import { setTimeout } from "node:timers/promises"
import type { Redacted } from "effect"
import { Config, Effect, Option } from "effect"
import {
  type ClientOptions,
  type CustodyClient,
  CustodyError,
  createClient,
  type FollowOptions,
  followEvents,
  isCustodyError,
  NoAnswerError,
  type WebhookEvent
} from "../../../client/index.ts"
import { isKind, type Kind, names } from "../../../events/log/Kind.ts"
import { sampleEvent } from "../../../events/log/sampleEvent.ts"
import * as Id from "../../../values/Id.ts"
import { NotFollowed, Usage } from "../exit.ts"
import { apiKey, baseUrl } from "../remote.ts"
import { type Forwarded, forwarder, isAccepted } from "./forward.ts"
import { type ListenScreen, listenScreen, type Shown } from "./listenScreen.ts"
import { keptSecret, readSecret } from "./listenSecret.ts"
import { type Redelivery, watchRedeliveries } from "./redeliveries.ts"

/** Waits before a failed post is repeated, in ms. C-12. */
const REPEATS = [500, 1_000, 2_000, 4_000, 8_000]

/** Pages of assets whose symbols are looked up; others are shown by their ids. */
const PAGES = 4

/** The options of the command line. */
export interface ListenOptions {
  readonly api: Option.Option<string>
  readonly key: Option.Option<Redacted.Redacted>
  readonly forwardTo: Option.Option<string>
  readonly kinds: ReadonlyArray<string>
  readonly vaults: ReadonlyArray<string>
  readonly from: string
  readonly secret: Option.Option<string>
  readonly sample: Option.Option<string>
  readonly json: boolean
  readonly allowPublic: boolean
}

interface ForwardTo {
  readonly url: string
  readonly secret: string
  readonly allowPublic: boolean
}

interface Listening {
  readonly client: ClientOptions
  readonly follow: FollowOptions
  readonly forwardTo: ForwardTo | undefined
  readonly json: boolean
}

/** The symbols of assets, if the key may read them. */
const readSymbols = async (custody: CustodyClient, symbols: Map<string, string>): Promise<void> => {
  let read = 0
  for await (const { data } of custody.listAssets({ limit: 500 }).pages()) {
    for (const { id, symbol } of data) symbols.set(id, symbol)
    if (++read === PAGES) return
  }
}

const notes = (screen: ListenScreen) => {
  let connected = false,
    lost = false
  return {
    onConnected: () => {
      if (!connected) {
        screen.note("Listening. Press Ctrl-C to stop.")
        screen.head()
      } else if (lost) screen.note("Connected again. No event was missed.")
      connected = true
      lost = false
    },
    onLost: (reason: Error) => {
      if (!lost) screen.note(`${reason.message} Connecting again …`)
      lost = true
    }
  }
}

const run = async ({ client, follow, forwardTo, json }: Listening, signal: AbortSignal): Promise<void> => {
  const prepare = forwardTo && (await forwarder(forwardTo.url, forwardTo.secret, forwardTo.allowPublic))
  const symbols = new Map<string, string>()
  const screen = listenScreen(json, forwardTo !== undefined, symbols)
  screen.fact("Service", client.baseUrl)
  if (forwardTo !== undefined) {
    screen.fact("Forward to", forwardTo.url)
    screen.fact("Secret", forwardTo.secret)
  }
  // A key may lack the scope for this: assets are then shown by their ids.
  if (!json) await readSymbols(createClient({ ...client, retries: 0, timeout: 5_000 }), symbols).catch(() => {})
  const ended = new AbortController()
  const over = AbortSignal.any([signal, ended.signal])
  const repeat = async (shown: Shown, attempt: (number: number) => Promise<Forwarded>) => {
    for (const [index, wait] of REPEATS.entries()) {
      await setTimeout(wait, undefined, { signal: over })
      const forwarded = await attempt(index + 2)
      screen.event(shown, forwarded)
      if (isAccepted(forwarded)) return
    }
  }
  /** Posts and shows an event; a failed post is repeated while other events follow. */
  const take = async (shown: Shown & { readonly event: WebhookEvent }) => {
    const attempt = prepare?.(shown.event)
    const forwarded = await attempt?.(1)
    screen.event(shown, forwarded)
    if (attempt !== undefined && forwarded !== undefined && !isAccepted(forwarded)) void repeat(shown, attempt).catch(() => {})
  }
  const isFollowed = ({ kind, vaultIds }: WebhookEvent) =>
    (follow.kind?.includes(kind) ?? true) && (follow.vaultId?.some((vaultId) => vaultIds?.includes(vaultId)) ?? true)
  const again = async ({ deliveryId, event }: Redelivery) => {
    if (isFollowed(event)) await take({ event, redeliveredAs: deliveryId })
  }
  void watchRedeliveries(createClient(client), again, over)
  try {
    for await (const followed of followEvents(client, { ...follow, ...notes(screen), signal })) await take(followed)
  } finally {
    ended.abort()
  }
}

/** Posts one sample event and shows the response; fails if that is not 2xx. C-12. */
const sendSample = async (kind: Kind, { forwardTo, json }: Pick<Listening, "json"> & { readonly forwardTo: ForwardTo }): Promise<void> => {
  const prepare = await forwarder(forwardTo.url, forwardTo.secret, forwardTo.allowPublic)
  const id = Id.make("evt")
  const payload = JSON.parse(sampleEvent(id, kind, new Date().toISOString()))
  const event = { id, kind, vaultIds: payload.vaultIds, payload, test: true }
  const forwarded = await prepare(event)(1)
  const screen = listenScreen(json, true, new Map())
  screen.fact("Secret", forwardTo.secret)
  screen.head()
  screen.event({ event }, forwarded)
  if (!isAccepted(forwarded)) throw new NotFollowed({ code: 1, message: "The server did not accept the sample." })
}

/** A failure as an error of the command line. */
const failureOf = (error: unknown): Usage | NotFollowed => {
  if (error instanceof Usage || error instanceof NotFollowed) return error
  if (isCustodyError(error, "cursor_expired") || isCustodyError(error, "cursor_gone"))
    return new NotFollowed({
      code: 1,
      message: `${error.detail} --from ${error.oldestCursor ?? "oldest"} begins at the oldest event kept.`
    })
  if (isCustodyError(error, "invalid_cursor"))
    return new NotFollowed({
      code: 1,
      message: "--from is expected to be now, oldest, or a resumeCursor of this deployment and organization."
    })
  if (error instanceof CustodyError) return new NotFollowed({ code: 1, message: `${error.detail} (${error.code})` })
  if (error instanceof NoAnswerError) return new NotFollowed({ code: error.reason === "network" ? 5 : 1, message: error.message })
  return new NotFollowed({ code: 1, message: String(error) })
}

/** Listens until it is interrupted or the service rejects the request. */
export const listen = (given: ListenOptions): Effect.Effect<void, Usage | NotFollowed> =>
  Effect.gen(function* () {
    const configHome = yield* Effect.orDie(Config.withDefault(Config.string("XDG_CONFIG_HOME"), ""))
    const forwardTo = Effect.try({
      try: (): ForwardTo | undefined => {
        if (Option.isNone(given.forwardTo)) return undefined
        const secret = Option.isSome(given.secret) ? readSecret(given.secret.value) : keptSecret(configHome)
        return { url: given.forwardTo.value, secret, allowPublic: given.allowPublic }
      },
      catch: failureOf
    })
    if (Option.isSome(given.sample)) {
      const kind = given.sample.value
      if (!isKind(kind)) return yield* new Usage({ message: `--sample is “${kind}”, expected one of ${names.join(", ")}.` })
      const target = yield* forwardTo
      if (target === undefined) return yield* new Usage({ message: "--sample needs --forward-to." })
      return yield* Effect.tryPromise({ try: () => sendSample(kind, { forwardTo: target, json: given.json }), catch: failureOf })
    }
    const client = { baseUrl: yield* baseUrl(given.api), apiKey: yield* apiKey(given.key) }
    const unknown = given.kinds.find((kind) => !isKind(kind))
    if (unknown !== undefined) return yield* new Usage({ message: `--kind is “${unknown}”, expected one of ${names.join(", ")}.` })
    const follow: FollowOptions = {
      ...(given.kinds.length === 0 ? {} : { kind: given.kinds }),
      ...(given.vaults.length === 0 ? {} : { vaultId: given.vaults }),
      ...(given.from === "now" ? { from: "now" } : given.from === "oldest" ? {} : { after: given.from })
    }
    const target = yield* forwardTo
    yield* Effect.tryPromise({ try: (signal) => run({ client, follow, forwardTo: target, json: given.json }, signal), catch: failureOf })
  })
