/**
 * @effect/cli colors its text wherever it is printed, and lists commands in one column as wide as the longest. Here it has
 * colors only on a terminal, wraps at its edge, and the description of a listed command has its own line.
 */
import { stripVTControlCharacters } from "node:util"
import { Effect } from "effect"

const PADDING = /(?<=^ {2}- .*\S) {2,}(?=\S)/gm

const readable = ({ columns, isTTY }: NodeJS.WriteStream, text: unknown): string => {
  const narrow = String(text).trimEnd().replaceAll(PADDING, "\n      ")
  const wrapped = isTTY ? Bun.wrapAnsi(narrow, columns, { trim: false }) : narrow
  return isTTY && process.env.NO_COLOR === undefined ? wrapped : stripVTControlCharacters(wrapped)
}

/** Runs the effect with a console for the text of @effect/cli. */
export const withReadableText = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.consoleWith((console) =>
    Effect.withConsole(effect, {
      ...console,
      log: (text) => console.log(readable(process.stdout, text)),
      error: (text) => console.error(readable(process.stderr, text))
    })
  )
