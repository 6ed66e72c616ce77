/**
 * `custody verify`: checks that the events of an entity are complete. It only uses the public API, so an auditor can run
 * it. C-3.
 */
import * as fs from "node:fs"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { Console, Effect, Option } from "effect"
import { NotComplete, NotVerified } from "./exit.ts"
import { api, apiKey, baseUrl, key } from "./remote.ts"

const entity = Options.text("entity").pipe(Options.withDescription("entity whose events are verified"))
const since = Options.file("since", { exists: "yes" }).pipe(
  Options.withDescription("stored checkpoint as JSON; default: the oldest one in the log"),
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
          const { createClient, verifyEvents } = await import("../../client/index.ts")
          const kept = Option.isSome(since) ? JSON.parse(fs.readFileSync(since.value, "utf8")) : undefined
          return await verifyEvents(createClient(client), entity, kept)
        },
        catch: (error) => new NotVerified({ message: `could not be checked: ${error instanceof Error ? error.message : String(error)}` })
      })
      if (!found.complete) return yield* new NotComplete({ message: `differs: ${found.difference}` })
      yield* Console.log(`complete: ${found.events.toLocaleString("en-US")} events`)
    })
).pipe(Command.withDescription("Verify that the events of an entity are complete, against the service's signed checkpoints."))
