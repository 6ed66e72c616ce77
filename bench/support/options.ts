/** Options of `bun run bench`. Each benchmark reads its own; an unknown option ends the run with status 1. */
import { parseArgs } from "node:util"

const parse = () => {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        /** Fewer rounds and less load: shows that a benchmark works, and a rough result. */
        quick: { type: "boolean", default: false },
        /** `reads`, `feed-read`, `filters`, `across`: 10 million rows; `recover`: until all are delivered. */
        large: { type: "boolean", default: false },
        /** `events`, `feed-read`, `reads`: a burst, or pages, under Bun's CPU profiler, and nothing else. */
        profile: { type: "boolean", default: false },
        /** `fairness`: a Temporal server without fairness keys. */
        "without-fairness": { type: "boolean", default: false },
        /** `fairness`, `feed-read`: only this part of it. */
        part: { type: "string" }
      }
    })
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exit(1)
  }
}
const { positionals, values } = parse()

/** Names of the requested benchmarks; empty means all. */
export const asked: ReadonlyArray<string> = positionals

/** The given options, with defaults. */
export const options = values
