#!/usr/bin/env bun
/** The program: `bun run custody <command>`. It runs a command of commands/, handles signals and sets the exit code. */
import * as CliConfig from "@effect/cli/CliConfig"
import * as Command from "@effect/cli/Command"
import * as HelpDoc from "@effect/cli/HelpDoc"
import * as BunContext from "@effect/platform-bun/BunContext"
import { Effect, type Exit, Fiber, Layer } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { withReadableText } from "./cli/commands/console.ts"
import { demo } from "./cli/commands/demo.ts"
import { doctor } from "./cli/commands/doctor.ts"
import { type EndingSignal, ending, exitCodes, interrupted } from "./cli/commands/exit.ts"
import { keys } from "./cli/commands/keys.ts"
import { listen } from "./cli/commands/listen.ts"
import { load } from "./cli/commands/load.ts"
import { organizations } from "./cli/commands/organizations.ts"
import { secrets } from "./cli/commands/reencrypt.ts"
import { migrate, start } from "./cli/commands/start.ts"
import { statements } from "./cli/commands/statements.ts"
import { users } from "./cli/commands/users.ts"
import { verify } from "./cli/commands/verify.ts"
import { printable } from "./cli/terminal/text.ts"

const footer = HelpDoc.blocks([
  HelpDoc.h1("EXIT CODES"),
  ...Object.entries(exitCodes).map(([code, meaning]) => HelpDoc.p(`${code}: ${meaning}`)),
  HelpDoc.h1("MORE"),
  HelpDoc.p("custody <command> --help describes a command and its options."),
  HelpDoc.p("custody doctor shows and checks the settings, which are environment variables."),
  HelpDoc.p("custody --completions bash, zsh or fish prints completions for that shell.")
])

const main = Effect.consoleWith((console) => {
  const custody = Command.make("custody").pipe(
    Command.withDescription("Read-only custody data with signed webhooks."),
    Command.withSubcommands([start, migrate, load, keys, secrets, users, organizations, statements, demo, listen, verify, doctor]),
    Command.transformHandler(Effect.withConsole(console))
  )
  return withReadableText(Command.run(custody, { name: "custody", version: packageJson.version, footer })(process.argv))
}).pipe(Effect.provide(Layer.merge(BunContext.layer, CliConfig.layer({ showBuiltIns: false }))))

// Files that the program and its servers create are accessible to their owner only.
process.umask(0o077)
const fiber = Effect.runFork(main)
let askedAt: number | undefined, asked: EndingSignal | undefined
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    // Ctrl-C reaches the whole process group, and package runners forward it again: an immediate second signal is the
    // same one.
    const now = performance.now()
    if (askedAt !== undefined && now - askedAt < 1_000) return
    // The first signal shuts down gracefully; another one terminates immediately.
    if (askedAt !== undefined) process.exit(interrupted(signal))
    askedAt = now
    asked = signal
    Effect.runFork(Fiber.interruptFork(fiber))
  })
}
fiber.addObserver(async (exit: Exit.Exit<unknown, unknown>) => {
  const { code, message } = await ending(exit, asked)
  if (message !== "") process.stderr.write(`${message.split("\n").map(printable).join("\n")}\n`)
  process.exit(code)
})
