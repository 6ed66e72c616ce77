/** Options of commands that use a deployment's public API: its address and a key. They need no database and no settings. */
import * as Options from "@effect/cli/Options"
import { Config, Effect, Option, Redacted } from "effect"
import { Usage } from "./exit.ts"

/** `--api`. */
export const api = Options.text("api").pipe(Options.withDescription("URL of the service, such as https://custody.example.com"))

/** `--key`, with the access that the key needs. */
export const key = (needs: string) =>
  Options.redacted("key").pipe(Options.withDescription(`API key with ${needs}; default: CUSTODY_KEY`), Options.optional)

/** The given key, or the one in `CUSTODY_KEY`. */
export const apiKey = (given: Option.Option<Redacted.Redacted>) =>
  Effect.gen(function* () {
    if (Option.isSome(given)) return Redacted.value(given.value)
    const set = yield* Effect.orDie(Config.option(Config.redacted("CUSTODY_KEY")))
    if (Option.isSome(set) && Redacted.value(set.value) !== "") return Redacted.value(set.value)
    return yield* new Usage({ message: "Give an API key with --key or in CUSTODY_KEY." })
  })

/** The checked address of the service. */
export const baseUrl = (given: string) =>
  URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)
    ? Effect.succeed(given.replace(/\/+$/, ""))
    : Effect.fail(new Usage({ message: `--api is “${given}”, expected a URL such as https://custody.example.com.` }))
