/** Options of commands that use a deployment's public API: its address and a key. They need no database and no settings. */
import * as Options from "@effect/cli/Options"
import { Config, Effect, Option, Redacted } from "effect"
import { Usage } from "./exit.ts"

/** `--api`. */
export const api = Options.text("api").pipe(
  Options.withDescription("URL of the service, such as https://custody.example.com; default: CUSTODY_URL"),
  Options.optional
)

/** `--key`, with the access that the key needs. */
export const key = (needs: string) =>
  Options.redacted("key").pipe(Options.withDescription(`API key with ${needs}; default: CUSTODY_API_KEY`), Options.optional)

/** The given text, or that of a variable of the environment; `missing` if there is neither. */
const orIn = (given: Option.Option<string>, name: string, missing: string) =>
  Effect.gen(function* () {
    if (Option.isSome(given)) return given.value
    const set = yield* Effect.orDie(Config.withDefault(Config.string(name), ""))
    return set === "" ? yield* new Usage({ message: missing }) : set
  })

/** The given key, or the one in `CUSTODY_API_KEY`. */
export const apiKey = (given: Option.Option<Redacted.Redacted>) =>
  orIn(Option.map(given, Redacted.value), "CUSTODY_API_KEY", "Give an API key with --key or in CUSTODY_API_KEY.")

/** The checked address of the service: the given one, or the one in `CUSTODY_URL`. */
export const baseUrl = (given: Option.Option<string>) =>
  Effect.flatMap(orIn(given, "CUSTODY_URL", "Give the URL of the service with --api or in CUSTODY_URL."), (url) =>
    URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
      ? Effect.succeed(url.replace(/\/+$/, ""))
      : new Usage({ message: `--api or CUSTODY_URL is “${url}”, expected a URL such as https://custody.example.com.` })
  )
