/** `custody demo`. */
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { Effect } from "effect"
import { base } from "./base.ts"
import { untilInterrupted } from "./exit.ts"

export const demo = Command.make(
  "demo",
  {
    once: Options.boolean("once").pipe(
      Options.withDescription("exit with code 0 when every delivery of the run is DELIVERED; without it the demo runs until Ctrl-C")
    )
  },
  ({ once }) =>
    Effect.flatMap(
      Effect.promise(() => import("../demo/Demo.ts")),
      ({ run }) => (once ? run(true) : untilInterrupted(run(false)))
    )
).pipe(
  Command.withDescription("Run the whole service on this machine with real data and watch signed deliveries arrive."),
  Command.provide(base)
)
