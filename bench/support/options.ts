/** Options of `bun run bench`. Each benchmark reads those that concern it; an unknown one ends the run with status 1. */
import { parseArgs } from "node:util"

const parse = () => {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        /** Fewer rounds and less load: shows that a benchmark works, and roughly where it is. */
        quick: { type: "boolean", default: false },
        /** `reads`: 10 million rows as well. */
        large: { type: "boolean", default: false },
        /** `events`: a burst under Bun's CPU profiler, and nothing else. */
        profile: { type: "boolean", default: false },
        /** `events`: `WEBHOOK_FIRST_ATTEMPTS` of the service under test; its default when absent. */
        "first-attempts": { type: "string" },
        /** `fairness`: only this part of it. */
        part: { type: "string" }
      }
    })
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exit(1)
  }
}
const { positionals, values } = parse()

/** Names of the benchmarks that were asked for; empty means all of them. */
export const asked: ReadonlyArray<string> = positionals

/** The options as they were given, defaults included. */
export const options = values

const modes = ["each", "burst", "grouped"]
const mode = values["first-attempts"]
if (mode !== undefined && !modes.includes(mode)) {
  console.error(`--first-attempts is one of ${modes.join(", ")}, not ${mode}`)
  process.exit(1)
}

/** Settings of the service under test that the options choose. */
export const optionEnv: Record<string, string> = mode === undefined ? {} : { WEBHOOK_FIRST_ATTEMPTS: mode }
