/** `custody statements`: seal statements that are due. The result is JSON on standard output. C-6. */
import * as Command from "@effect/cli/Command"
import { Effect } from "effect"
import { base } from "./base.ts"

const seal = Command.make("seal", {}, () =>
  Effect.flatMap(
    Effect.promise(() => import("./run/statements.ts")),
    ({ seal }) => seal
  )
).pipe(
  Command.withDescription("Seal the statements that are due, and new revisions of days that late records changed."),
  Command.provide(base)
)

/** The command. */
export const statements = Command.make("statements").pipe(
  Command.withDescription("Seal the daily statements that are due."),
  Command.withSubcommands([seal])
)
