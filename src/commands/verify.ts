/**
 * `custody verify`: whether the events that a deployment gives for an entity are all that it recorded. It asks the public
 * API and nothing else, so that an auditor can run it. C-3.
 */
import * as fs from "node:fs"
import { Command, Options } from "@effect/cli"
import { Console, Effect, Option } from "effect"
import { NotComplete, NotVerified } from "./exit.ts"
import { api, apiKey, baseUrl, key } from "./remote.ts"

const entity = Options.text("entity").pipe(Options.withDescription("The entity whose events are verified"))
const since = Options.file("since", { exists: "yes" }).pipe(
  Options.withDescription("A checkpoint that was kept, as JSON; the oldest one in the log when absent"),
  Options.optional
)

export const verify = Command.make(
  "verify",
  { api, key: key("webhook:read and without an allowlist"), entity, since },
  ({ api, entity, key, since }) =>
    Effect.gen(function* () {
      const client = { baseUrl: yield* baseUrl(api), apiKey: yield* apiKey(key) }
      const found = yield* Effect.tryPromise({
        try: async () => {
          const { createClient, verifyEvents } = await import("../client/index.ts")
          const kept = Option.isSome(since) ? JSON.parse(fs.readFileSync(since.value, "utf8")) : undefined
          return await verifyEvents(createClient(client), entity, kept)
        },
        catch: (error) => new NotVerified({ message: `could not be checked: ${error instanceof Error ? error.message : String(error)}` })
      })
      if (!found.complete) return yield* new NotComplete({ message: `differs: ${found.difference}` })
      yield* Console.log(`complete: ${found.events.toLocaleString("en-US")} events`)
    })
).pipe(Command.withDescription("Checks that the events of an entity are complete, by what the service signed."))
