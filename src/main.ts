/** The program: `bun run custody <command>`. Commands are declared in commands/, composed in App.ts, and end here. */
import { CliConfig, Command } from "@effect/cli"
import { BunContext } from "@effect/platform-bun"
import { Effect, type Exit, Fiber, Layer } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { base } from "./App.ts"
import { ending } from "./commands/exit.ts"
import { keys } from "./commands/keys.ts"
import { load } from "./commands/load.ts"
import { migrate, start } from "./commands/service.ts"

const custody = Command.make("custody").pipe(
  Command.withDescription("Read-only custody data with signed webhooks."),
  Command.withSubcommands([start, migrate, load, keys])
)

const run = Command.run(custody, { name: "custody", version: packageJson.version })

const program = run(process.argv).pipe(
  Effect.provide(base),
  Effect.provide(Layer.merge(BunContext.layer, CliConfig.layer({ showBuiltIns: false })))
)

const fiber = Effect.runFork(program)
let asked = false
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    // The first signal ends in order; a second one does not wait.
    if (asked) process.exit(130)
    asked = true
    Effect.runFork(Fiber.interruptFork(fiber))
  })
}
fiber.addObserver((exit: Exit.Exit<unknown, unknown>) => {
  const { code, message } = ending(exit)
  if (message !== "") process.stderr.write(`${message}\n`)
  process.exit(asked && code === 130 ? 0 : code)
})
