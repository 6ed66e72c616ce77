/**
 * @effect/cli colors help and messages wherever they are printed, with titles in white. Here they are plain without a
 * terminal, and bold in the terminal's own color with one.
 */
import { stripVTControlCharacters } from "node:util"
import { Effect } from "effect"

const WHITE = "\u001b[0;37;1m",
  BOLD = "\u001b[1m"

const fitting = (stream: NodeJS.WriteStream, text: unknown): string => {
  const plain = String(text).trimEnd()
  return stream.isTTY && process.env.NO_COLOR === undefined ? plain.replaceAll(WHITE, BOLD) : stripVTControlCharacters(plain)
}

/** Runs the effect with a console whose colors match the output. */
export const plainly = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.console, (console) =>
    Effect.withConsole(effect, {
      ...console,
      log: (...parts) => console.log(...parts.map((part) => fitting(process.stdout, part))),
      error: (...parts) => console.error(...parts.map((part) => fitting(process.stderr, part)))
    })
  )
