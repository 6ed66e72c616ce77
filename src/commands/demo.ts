/** `custody demo`. */
import { Command, Options } from "@effect/cli"
import { run } from "../demo/Demo.ts"

export const demo = Command.make(
  "demo",
  {
    once: Options.boolean("once").pipe(
      Options.withDescription("end with exit code 0 when every delivery of the run is DELIVERED; otherwise it stays up until Ctrl-C")
    )
  },
  ({ once }) => run(once)
).pipe(Command.withDescription("Run the whole service on this machine with real data and watch signed deliveries arrive."))
