/**
 * Logs: one line per event on standard error, so that standard output has only results. JSON for machines, colored text
 * on a terminal. Secrets are `Redacted` values and print as such. Settings: LOG_FORMAT, LOG_LEVEL.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Cause, Effect, HashMap, Inspectable, Layer, List, Logger, LogLevel, Metric } from "effect"
import { Settings } from "../settings/Settings.ts"

const levels = { debug: LogLevel.Debug, info: LogLevel.Info, warning: LogLevel.Warning, error: LogLevel.Error } as const

const text = (value: unknown): string => (typeof value === "string" ? value : Inspectable.toStringUnknown(value, 0))

const describeCause = (cause: Cause.Cause<unknown>): string | undefined =>
  Cause.isEmptyType(cause) ? undefined : Cause.pretty(cause, { renderErrorCause: true })

/** Masks text with the form of a secret: a client may put one in the wrong place, such as a path. */
export const masked = (line: string): string => line.replaceAll(/\b(cds|whsec)_[0-9A-Za-z+/=%_-]{16,}/g, "$1_***")

const toStandardError = (line: string): void => {
  process.stderr.write(`${line}\n`)
}
let write = toStandardError

/** Writes a line that is not a log record of the program, such as native code's, to the log. */
export const writeLine = (line: string): void => write(masked(line))

/** Sends the log to a file while the scope is open, for a command that draws on the screen. */
export const toFile = (file: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      fs.mkdirSync(path.dirname(file), { recursive: true })
      const descriptor = fs.openSync(file, "a")
      write = (line) => {
        fs.writeSync(descriptor, `${line}\n`)
      }
      return descriptor
    }),
    (descriptor) =>
      Effect.sync(() => {
        write = toStandardError
        fs.closeSync(descriptor)
      })
  )

/** `{ time, level, message, …annotations, cause? }` as one line of JSON. */
const json = Logger.make(({ annotations, cause, date, logLevel, message, spans }) => {
  const parts = Array.isArray(message) ? message : [message]
  const failures = parts.filter((part) => part instanceof Error).map((part) => part.stack ?? String(part))
  const line: Record<string, unknown> = {
    time: date.toISOString(),
    level: logLevel.label.toLowerCase(),
    message: parts
      .filter((part) => !(part instanceof Error))
      .map(text)
      .join(" ")
  }
  for (const [key, value] of HashMap.toEntries(annotations)) line[key] = value
  for (const span of List.toArray(spans)) line[`${span.label}Ms`] = date.getTime() - span.startTime
  const why = describeCause(cause) ?? failures[0]
  if (why !== undefined) line.cause = why
  writeLine(JSON.stringify(line))
})

/** Pretty lines, also on standard error. */
const pretty = Logger.make((options) => {
  const { annotations, cause, date, logLevel, message } = options
  const parts = Array.isArray(message) ? message : [message]
  const color = logLevel.ordinal >= LogLevel.Error.ordinal ? 31 : logLevel.ordinal >= LogLevel.Warning.ordinal ? 33 : 32
  const extras = HashMap.toEntries(annotations)
    .map(([key, value]) => `${key}=${text(value)}`)
    .join(" ")
  const why = describeCause(cause)
  writeLine(
    `\u001b[90m${date.toISOString().slice(11, 23)}\u001b[0m \u001b[${color}m${logLevel.label.padEnd(5)}\u001b[0m ` +
      `${parts.map((part) => (part instanceof Error ? (part.stack ?? String(part)) : text(part))).join(" ")}` +
      `${extras === "" ? "" : ` \u001b[90m${extras}\u001b[0m`}${why === undefined ? "" : `\n${why}`}`
  )
})

const errors = Metric.counter("custody_log_errors_total", { description: "Errors in the log, each of which an operator should read" })
// An increase is visible only in a metric that was there before.
errors.unsafeUpdate(0, [])
const count = () => errors.unsafeUpdate(1, [])
const counting = Logger.make(({ logLevel }) => {
  if (logLevel.ordinal >= LogLevel.Error.ordinal) count()
})

/** Writes an error that is not a log record of the program. */
export const writeError = (line: string): void => {
  count()
  writeLine(line)
}

/** The program's logger, as configured. */
export const layer = Layer.unwrapEffect(
  Effect.map(Settings, ({ logFormat, logLevel }) => {
    const format = logFormat ?? (process.stderr.isTTY ? "pretty" : "json")
    return Layer.mergeAll(
      Logger.replace(Logger.defaultLogger, format === "pretty" ? pretty : json),
      Logger.add(counting),
      Logger.minimumLogLevel(levels[logLevel])
    )
  })
)
