/**
 * `custody verify`: checks that the events of an entity, or the statements of a vault, are complete. It only uses the
 * public API, so an auditor can run it. C-3, C-9.
 */
import * as fs from "node:fs"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { Console, Effect, Option } from "effect"
import type { CustodyClient, StatementsOptions } from "../../client/index.ts"
import { printable } from "../terminal/text.ts"
import { NotComplete, NotVerified, Usage } from "./exit.ts"
import { api, apiKey, baseUrl, key } from "./remote.ts"

const optional = <A>(option: Options.Options<A>, description: string) =>
  option.pipe(Options.withDescription(description), Options.optional, Options.map(Option.getOrUndefined))

const options = {
  api,
  key: key("webhook:read and without an allowlist for events, vault:read for statements"),
  entity: optional(Options.text("entity"), "entity whose events are verified"),
  since: optional(Options.file("since", { exists: "yes" }), "with --entity: stored checkpoint as JSON; default: the oldest one in the log"),
  vault: optional(Options.text("vault"), "vault whose statements are verified"),
  until: optional(Options.text("until"), "with --vault: the day, as YYYY-MM-DD, that statements must reach"),
  hash: optional(Options.text("hash"), "with --vault: stored hash that the chain of statements must contain"),
  keys: optional(
    Options.file("keys", { exists: "yes" }),
    "stored JSON Web Key Set of the keys to trust; default: those that the service publishes"
  )
}

const stored = (file: string | undefined) => (file === undefined ? undefined : JSON.parse(fs.readFileSync(file, "utf8")))
const complete = (count: number, what: string) => `complete: ${count.toLocaleString("en-US")} ${what}`

/** What was found: a difference, or lines that say what is complete. */
type Found = { readonly difference: string } | { readonly lines: ReadonlyArray<string> }

const verifyEntity = async (
  custody: CustodyClient,
  entity: string,
  since: string | undefined,
  keys: string | undefined
): Promise<Found> => {
  const { verifyEvents } = await import("../../client/index.ts")
  const found = await verifyEvents(custody, entity, stored(since), { keys: stored(keys) })
  if (!found.complete) return found
  const { events, from, to } = found
  const start =
    from === null
      ? "from the first event on"
      : `from the checkpoint of ${from.at} on, which counts ${from.count.toLocaleString("en-US")} earlier events`
  const limit = `${start}; an earlier state is not covered without a stored checkpoint (--since)`
  return { lines: [complete(events, `events up to ${to.at}`), ...(since === undefined ? [limit] : [])] }
}

const verifyVault = async (custody: CustodyClient, vault: string, options: StatementsOptions, keys: string | undefined): Promise<Found> => {
  const { verifyStatements } = await import("../../client/index.ts")
  const found = await verifyStatements(custody, vault, { ...options, keys: stored(keys) })
  if (!found.valid) return found
  const { hash, statements } = found
  return { lines: [complete(statements, "statements"), ...(hash === null ? [] : [`the last hash is ${hash}; store it for --hash`])] }
}

export const verify = Command.make("verify", options, ({ api, entity, hash, key, keys, since, until, vault }) =>
  Effect.gen(function* () {
    if (vault === undefined ? until !== undefined || hash !== undefined : since !== undefined)
      return yield* new Usage({ message: "--since belongs to --entity; --until and --hash belong to --vault." })
    const client = { baseUrl: yield* baseUrl(api), apiKey: yield* apiKey(key) }
    const checked = (check: (custody: CustodyClient) => Promise<Found>) =>
      Effect.tryPromise({
        try: async () => check((await import("../../client/index.ts")).createClient(client)),
        catch: (error) =>
          new NotVerified({ message: printable(`could not be checked: ${error instanceof Error ? error.message : String(error)}`) })
      })
    let found: Found
    if (entity !== undefined && vault === undefined) found = yield* checked((custody) => verifyEntity(custody, entity, since, keys))
    else if (vault !== undefined && entity === undefined)
      found = yield* checked((custody) => verifyVault(custody, vault, { until, hash }, keys))
    else return yield* new Usage({ message: "Give either --entity, to verify events, or --vault, to verify statements." })
    if ("difference" in found) return yield* new NotComplete({ message: printable(`differs: ${found.difference}`) })
    for (const line of found.lines) yield* Console.log(printable(line))
  })
).pipe(
  Command.withDescription(
    "Verify that the events of an entity, or the statements of a vault, are complete, against the service's signatures."
  )
)
