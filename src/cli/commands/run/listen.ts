/** Follows the feed for `custody listen`: prints each event, posts it, and explains why it ends. C-1. */
import type { Redacted } from "effect"
import { Effect, Option } from "effect"
import {
  type ClientOptions,
  type CustodyClient,
  CustodyError,
  createClient,
  type FollowOptions,
  followEvents,
  isCustodyError,
  NoAnswerError
} from "../../../client/index.ts"
import { isKind, names } from "../../../events/log/Kind.ts"
import { NotFollowed, Usage } from "../exit.ts"
import { apiKey, baseUrl } from "../remote.ts"
import { forwarder, newSecret, readSecret } from "./forward.ts"
import { type ListenScreen, listenScreen } from "./listenScreen.ts"

/** Assets whose symbols are looked up; others are shown by their ids. */
const ASSETS = 2_000

/** The options of the command line. */
export interface ListenOptions {
  readonly api: string
  readonly key: Option.Option<Redacted.Redacted>
  readonly forwardTo: Option.Option<string>
  readonly kinds: ReadonlyArray<string>
  readonly vaults: ReadonlyArray<string>
  readonly from: string
  readonly secret: Option.Option<string>
  readonly json: boolean
  readonly allowPublic: boolean
}

interface Listening {
  readonly client: ClientOptions
  readonly follow: FollowOptions
  readonly forwardTo: { readonly url: string; readonly secret: string; readonly allowPublic: boolean } | undefined
  readonly json: boolean
}

/** The symbols of assets, if the key may read them. */
const readSymbols = async (custody: CustodyClient, symbols: Map<string, string>): Promise<void> => {
  for await (const { id, symbol } of custody.listAssets({ limit: 500 })) {
    symbols.set(id, symbol)
    if (symbols.size >= ASSETS) return
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
  const post = forwardTo && (await forwarder(forwardTo.url, forwardTo.secret, forwardTo.allowPublic))
  const symbols = new Map<string, string>()
  const screen = listenScreen(json, forwardTo !== undefined, symbols)
  screen.fact("Service", client.baseUrl)
  if (forwardTo !== undefined) {
    screen.fact("Forward to", forwardTo.url)
    screen.fact("Secret", forwardTo.secret)
  }
  // A key may lack the scope for this: assets are then shown by their ids.
  if (!json) await readSymbols(createClient({ ...client, retries: 0, timeout: 5_000 }), symbols).catch(() => {})
  for await (const followed of followEvents(client, { ...follow, ...notes(screen), signal }))
    screen.event(followed, await post?.(followed.event))
}

/** A failure as an error of the command line. */
const failureOf = (error: unknown): Usage | NotFollowed => {
  if (error instanceof Usage) return error
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
    const client = { baseUrl: yield* baseUrl(given.api), apiKey: yield* apiKey(given.key) }
    const unknown = given.kinds.find((kind) => !isKind(kind))
    if (unknown !== undefined) return yield* new Usage({ message: `--kind is “${unknown}”, expected one of ${names.join(", ")}.` })
    const follow: FollowOptions = {
      ...(given.kinds.length === 0 ? {} : { kind: given.kinds }),
      ...(given.vaults.length === 0 ? {} : { vaultId: given.vaults }),
      ...(given.from === "now" ? { from: "now" } : given.from === "oldest" ? {} : { after: given.from })
    }
    yield* Effect.tryPromise({
      try: async (signal) => {
        const secret = Option.isSome(given.secret) ? readSecret(given.secret.value) : newSecret()
        const forwardTo = Option.isSome(given.forwardTo)
          ? { url: given.forwardTo.value, secret, allowPublic: given.allowPublic }
          : undefined
        await run({ client, follow, forwardTo, json: given.json }, signal)
      },
      catch: failureOf
    })
  })
