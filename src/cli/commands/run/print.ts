/** What a command prints once and nothing can show again, such as a secret. */
import * as fs from "node:fs"
import { Data, Effect } from "effect"

/** Standard output could not be written. */
export class NotPrinted extends Data.TaggedError("NotPrinted")<{ readonly message: string }> {}

/** Writes JSON to standard output before it returns, and fails if it cannot: `lost` says what to do then. */
export const printOnce = (value: unknown, lost: string) =>
  Effect.try({
    try: () => fs.writeFileSync(1, `${JSON.stringify(value, null, 2)}\n`),
    catch: (cause) =>
      new NotPrinted({ message: `Standard output cannot be written (${cause instanceof Error ? cause.message : cause}). ${lost}` })
  })
