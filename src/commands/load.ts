/**
 * `custody load`: feeds a file or standard input of custody records through the ledger, a batch at a time, so that
 * a file of any size needs the memory of one batch. A record that does not fit stops the load with the file's line;
 * the batches before it stay, and since records are idempotent the corrected file can simply be loaded again.
 */

import * as fs from "node:fs"
import { createInterface } from "node:readline"
import { Args, Command, Options } from "@effect/cli"
import { Console, Effect, Layer, Stream } from "effect"
import { commandDatabase } from "../App.ts"
import { type Applied, Ledger, type Line, MAX_RECORDS } from "../ledger/Ledger.ts"
import { idOf } from "../ledger/platformApp.ts"
import { readLine } from "../ledger/Record.ts"
import { InvalidInput } from "./exit.ts"

const file = Args.text({ name: "file" }).pipe(Args.withDescription("an NDJSON file, or - for standard input"))
const noEvents = Options.boolean("no-events").pipe(Options.withDescription("record no events: for history that predates the service"))

/** The lines of the input with their numbers, blank ones left out. */
const linesOf = (path: string) => {
  const input = path === "-" ? process.stdin : fs.createReadStream(path)
  const decoder = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  let number = 0
  const failed = (error: unknown) =>
    new InvalidInput({ message: `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}.` })
  return Stream.fromAsyncIterable(untilError(input, decoder), failed).pipe(
    Stream.map((source) => ({ source, line: ++number })),
    Stream.filter(({ source }) => source.trim() !== "")
  )
}

/** readline ends silently when its input fails; this ends with the input's error. */
async function* untilError(input: NodeJS.ReadableStream, lines: AsyncIterable<string>) {
  let error: unknown
  input.on("error", (reason) => {
    error = reason
  })
  yield* lines
  if (error !== undefined) throw error
}

const toLine = ({ line, source }: { readonly source: string; readonly line: number }): Line => {
  const read = readLine(source, line)
  return read._tag === "Right" ? { line, read } : { line, read, id: idOf(() => JSON.parse(source)) }
}

const sizeOf = (path: string): number => {
  try {
    return path === "-" ? 0 : fs.statSync(path).size
  } catch {
    return 0
  }
}

/** A bar on a terminal; nothing otherwise. */
const progress = (total: number) => {
  const startedAt = Date.now()
  return (bytes: number, applied: Applied, done = false) =>
    Effect.sync(() => {
      if (!process.stderr.isTTY) return
      const rate = Math.round(applied.received / Math.max(0.001, (Date.now() - startedAt) / 1000))
      const share = total === 0 ? 0 : Math.min(1, bytes / total)
      const bar =
        total === 0 ? "" : `[${"█".repeat(Math.round(share * 30)).padEnd(30, "·")}] ${String(Math.round(share * 100)).padStart(3)}%  `
      process.stderr.write(`\r${bar}${applied.received} records, ${applied.changed} changed, ${rate}/s\u001b[K${done ? "\n" : ""}`)
    })
}

const add = (a: Applied, b: Applied): Applied => ({
  received: a.received + b.received,
  changed: a.changed + b.changed,
  unchanged: a.unchanged + b.unchanged,
  events: a.events + b.events
})

export const load = Command.make("load", { file, noEvents }, (given) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const show = progress(sizeOf(given.file))
    let total: Applied = { received: 0, changed: 0, unchanged: 0, events: 0 }
    let bytes = 0
    yield* linesOf(given.file).pipe(
      Stream.grouped(MAX_RECORDS),
      Stream.runForEach((chunk) =>
        Effect.gen(function* () {
          const sources = [...chunk]
          const applied = yield* ledger.apply(sources.map(toLine), { events: !given.noEvents })
          total = add(total, applied)
          bytes += sources.reduce((sum, { source }) => sum + Buffer.byteLength(source) + 1, 0)
          yield* show(bytes, total)
        })
      ),
      Effect.ensuring(Effect.suspend(() => Effect.zipRight(show(bytes, total, true), Console.log(JSON.stringify(total)))))
    )
  }).pipe(Effect.provide(Layer.provide(Ledger.layer, commandDatabase)), Effect.scoped)
).pipe(Command.withDescription("Feed custody records through the ledger; prints counts as JSON."))
