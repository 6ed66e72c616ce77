/** `custody load`: records from a file or standard input. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { Effect } from "effect"
import { base } from "./base.ts"

const file = Args.text({ name: "file" }).pipe(Args.withDescription("an NDJSON file, or - for standard input"))
const noEvents = Options.boolean("no-events").pipe(
  Options.withDescription("apply records without recording events: for history that predates the service")
)
const from = Options.integer("from").pipe(Options.withDescription("first line to apply, to resume after an error"), Options.withDefault(1))

export const load = Command.make("load", { file, from, noEvents }, (given) =>
  Effect.flatMap(
    Effect.promise(() => import("./run/load.ts")),
    ({ load }) => load(given)
  )
).pipe(Command.withDescription("Apply custody records from a file; prints counts as JSON."), Command.provide(base))
