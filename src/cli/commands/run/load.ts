/**
 * `custody load`: applies records from a file or standard input through the ledger, in batches, so that memory use does
 * not depend on the size of the file. An invalid record stops the load with its line number; earlier batches stay
 * applied, and the corrected file is loaded from the next line.
 */
import * as fs from "node:fs"
import { Cause, Console, Effect, Layer, Schedule, Stream } from "effect"
import { commandDatabase } from "../../../app/Base.ts"
import { MAX_BYTES } from "../../../app/platform/platformApp.ts"
import { idOf } from "../../../app/platform/recordFeed.ts"
import { type Applied, InvalidRecords, type Line, NAMED } from "../../../custody/ledger/groupCommit.ts"
import { Ledger, MAX_RECORDS } from "../../../custody/ledger/Ledger.ts"
import { readLine } from "../../../custody/ledger/Record.ts"
import { InvalidInput } from "../exit.ts"

interface Source {
  readonly line: number
  readonly source: string
}

const LF = 0x0a

/** A row of an export that is not a custody record. */
const isRow = ({ source }: Source): boolean => source.startsWith('{"table":')

const unreadable = (path: string, why: string) => new InvalidInput({ message: `${path} cannot be read: ${why}.` })

/** The numbered lines of the input, without blank ones. */
const linesOf = (path: string) => {
  const failed = (error: unknown) =>
    error instanceof InvalidInput ? error : unreadable(path, error instanceof Error ? error.message : String(error))
  return Stream.fromAsyncIterable(split(path), failed).pipe(Stream.filter(({ source }) => source.trim() !== ""))
}

/** Splits a file or standard input at line feeds. Throws {@link InvalidInput} if a line is not UTF-8 or too long. */
async function* split(path: string): AsyncGenerator<Source> {
  const input: AsyncIterable<Uint8Array> = path === "-" ? process.stdin : fs.createReadStream(path)
  const decoder = new TextDecoder("utf-8", { fatal: true })
  let rest: Uint8Array = new Uint8Array(),
    line = 0
  const next = (bytes: Uint8Array): Source => {
    line++
    try {
      return { line, source: decoder.decode(bytes) }
    } catch {
      throw unreadable(path, `line ${line} is not UTF-8`)
    }
  }
  for await (const chunk of input) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let from = 0
    for (let end = bytes.indexOf(LF); end >= 0; end = bytes.indexOf(LF, from)) {
      yield next(bytes.subarray(from, end))
      from = end + 1
    }
    rest = bytes.subarray(from)
    if (rest.length > MAX_BYTES) throw unreadable(path, `line ${line + 1} is longer than ${MAX_BYTES} bytes`)
  }
  if (rest.length > 0) yield next(rest)
}

const toLine = ({ line, source }: Source): Line => {
  const read = readLine(source, line)
  return read._tag === "Right" ? { line, read } : { line, read, id: idOf(() => JSON.parse(source)) }
}

/** Whether the record is of a kind that is compared by its time, and has none. */
const isUndated = ({ read }: Line): boolean =>
  read._tag === "Right" && ["transaction", "vault", "balance"].includes(read.right.type) && read.right.occurredAt === undefined

const sizeOf = (path: string): number => {
  try {
    return path === "-" ? 0 : fs.statSync(path).size
  } catch {
    return 0
  }
}

/** How often the last applied line is printed without a terminal, so that a killed load can be resumed near its end. */
const PRINTED = "10 seconds"

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
  stale: a.stale + b.stale,
  staleLines: [...a.staleLines, ...b.staleLines].slice(0, NAMED),
  events: a.events + b.events
})

/** Applies the file's records from a line on, and prints counts. */
export const load = (given: { readonly file: string; readonly from: number; readonly noEvents: boolean }) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const show = progress(sizeOf(given.file))
    let total: Applied = { received: 0, changed: 0, unchanged: 0, stale: 0, staleLines: [], events: 0 }
    let bytes = 0,
      rows = 0,
      undated = 0,
      applied = given.from - 1,
      printed = applied
    const print = Effect.suspend(() => {
      if (process.stderr.isTTY || applied === printed) return Effect.void
      printed = applied
      return Console.error(`Applied up to line ${applied} so far.`)
    })
    yield* Effect.forkScoped(Effect.schedule(print, Schedule.spaced(PRINTED)))
    yield* linesOf(given.file).pipe(
      Stream.filter(({ line }) => line >= given.from),
      Stream.filter((source) => {
        if (isRow(source)) rows++
        return !isRow(source)
      }),
      Stream.grouped(MAX_RECORDS),
      Stream.runForEach((chunk) =>
        Effect.gen(function* () {
          const sources = [...chunk],
            lines = sources.map(toLine)
          const last = sources.at(-1)?.line ?? applied
          // An applied batch is counted even if it is the last one because of Ctrl-C.
          const applying = Effect.map(ledger.apply(lines, { events: !given.noEvents }), (did) => {
            total = add(total, did)
            applied = last
            undated += lines.filter(isUndated).length
          })
          yield* Effect.uninterruptible(applying).pipe(
            Effect.tapErrorCause((cause) =>
              Cause.squash(cause) instanceof InvalidRecords
                ? Effect.void
                : Console.error(`It is unknown whether lines ${applied + 1} to ${last} were applied.`)
            )
          )
          bytes += sources.reduce((sum, { source }) => sum + Buffer.byteLength(source) + 1, 0)
          yield* show(bytes, total)
        })
      ),
      Effect.ensuring(
        Effect.suspend(() =>
          given.noEvents && undated > 0
            ? Console.error(
                `${undated} transactions, vaults and balances have no occurredAt and are dated now: an earlier change that is sent later, with its time, counts as old news.`
              )
            : Effect.void
        )
      ),
      Effect.ensuring(
        Effect.suspend(() => (rows === 0 ? Effect.void : Console.error(`Skipped ${rows} rows of an export that are not custody records.`)))
      ),
      Effect.ensuring(Effect.suspend(() => Effect.zipRight(show(bytes, total, true), Console.log(JSON.stringify(total))))),
      Effect.onError(() =>
        applied < given.from ? Effect.void : Console.error(`Applied up to line ${applied}. Resume with --from ${applied + 1}.`)
      )
    )
  }).pipe(Effect.provide(Layer.provide(Ledger.layer, commandDatabase)), Effect.scoped)
