#!/usr/bin/env bun
/** The program: `bun run custody <command>`. It runs a command of commands/, handles signals and sets the exit code. */
import * as CliConfig from "@effect/cli/CliConfig"
import * as Command from "@effect/cli/Command"
import * as BunContext from "@effect/platform-bun/BunContext"
import { Console, Effect, type Exit, Fiber, Layer } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { plainly } from "./cli/commands/console.ts"
import { demo } from "./cli/commands/demo.ts"
import { doctor } from "./cli/commands/doctor.ts"
import { ending } from "./cli/commands/exit.ts"
import { asksForHelp, helpText, program } from "./cli/commands/help.ts"
import { keys } from "./cli/commands/keys.ts"
import { listen } from "./cli/commands/listen.ts"
import { load } from "./cli/commands/load.ts"
import { organizations } from "./cli/commands/organizations.ts"
import { secrets } from "./cli/commands/reencrypt.ts"
import { migrate, start } from "./cli/commands/start.ts"
import { statements } from "./cli/commands/statements.ts"
import { users } from "./cli/commands/users.ts"
import { verify } from "./cli/commands/verify.ts"

// A command loads its implementation when it runs, so that --help and commands that only use the database start fast.
// Only the command that runs reads the settings, so that --help and doctor work even if some are invalid.
const base = Layer.unwrapEffect(
  Effect.map(
    Effect.promise(() => import("./app/Base.ts")),
    ({ base }) => base
  )
)
const commands = [
  Command.provide(start, base),
  Command.provide(migrate, base),
  Command.provide(load, base),
  Command.provide(keys, base),
  Command.provide(secrets, base),
  Command.provide(users, base),
  Command.provide(organizations, base),
  Command.provide(statements, base),
  Command.provide(demo, base),
  listen,
  verify,
  // The doctor reads the settings itself, because it reports invalid ones.
  doctor
] as const
const DESCRIPTION = "Read-only custody data with signed webhooks."
const custody = Command.make("custody").pipe(Command.withDescription(DESCRIPTION), Command.withSubcommands(commands))
const shown = program(
  DESCRIPTION,
  commands.map(({ descriptor }) => descriptor)
)

const run = Command.run(custody, { name: "custody", version: packageJson.version })
const words = process.argv.slice(2)

const help = Effect.sync(() => {
  const { columns = 100, isTTY = false } = process.stdout
  return helpText(shown, words, { columns: Math.min(columns, 100), coloured: isTTY && process.env.NO_COLOR === undefined })
})

const main = (asksForHelp(shown, words) ? Effect.flatMap(help, Console.log) : run(process.argv)).pipe(
  plainly,
  Effect.provide(Layer.merge(BunContext.layer, CliConfig.layer({ showBuiltIns: false, showTypes: false })))
)

// Files that the program and its servers create are accessible to their owner only.
process.umask(0o077)
const fiber = Effect.runFork(main)
let askedAt: number | undefined
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    // Ctrl-C reaches the whole process group, and package runners forward it again: an immediate second signal is the
    // same one.
    const now = performance.now()
    if (askedAt !== undefined && now - askedAt < 1_000) return
    // The first signal shuts down gracefully; another one terminates immediately.
    if (askedAt !== undefined) process.exit(130)
    askedAt = now
    Effect.runFork(Fiber.interruptFork(fiber))
  })
}
fiber.addObserver(async (exit: Exit.Exit<unknown, unknown>) => {
  const { code, message } = await ending(exit)
  if (message !== "") process.stderr.write(`${message}\n`)
  process.exit(askedAt !== undefined && code === 130 ? 0 : code)
})
