/**
 * Patches of what the Temporal SDK does on Bun, and of what it has no option for, each with its reason; remove one when a version
 * of the SDK or of Bun makes it superfluous.
 */
import { createRequire } from "node:module"
import { createInterface } from "node:readline"
import v8 from "node:v8"
import threads from "node:worker_threads"
import type { Logger } from "@temporalio/worker/lib/logger"
import type { NativeLogCollector } from "@temporalio/worker/lib/runtime-logger"
import { writeLine } from "../telemetry/Log.ts"

/** Printed by every thread: on Bun the SDK collects no stack traces of workflows, which is harmless. */
const KNOWN = "v8.promiseHooks.createHook is not available"
/** Interval at which the native core's log is flushed, in ms. New lines flush earlier ones; only the last waits this long. */
const FLUSH_EVERY_MS = 5_000

/**
 * The SDK runs workflow code in threads whose output goes to the console, into the middle of the log or a screen. They get an
 * error stream of their own, whose content is logged.
 */
class LoggedWorker extends threads.Worker {
  constructor(file: string | URL, options: threads.WorkerOptions = {}) {
    super(file, { ...options, stderr: true })
    createInterface({ input: this.stderr }).on("line", (line) => {
      if (line.startsWith(KNOWN)) return
      writeLine(JSON.stringify({ time: new Date().toISOString(), level: "warn", message: `temporal: ${line}` }))
    })
  }
}

/**
 * The SDK reads the heap's statistics for each worker, to derive a default that is not used and a limit that does not change. On
 * Bun each read walks the whole heap: 25 ms and more, in which the process does nothing else. They are read once.
 */
const readHeapStatisticsOnce = (): void => {
  const read = v8.getHeapStatistics
  let statistics: v8.HeapInfo | undefined
  v8.getHeapStatistics = () => {
    statistics ??= read()
    return statistics
  }
}

const collectors: { NativeLogCollector: typeof NativeLogCollector } = createRequire(import.meta.url)(
  "@temporalio/worker/lib/runtime-logger"
)

/**
 * The SDK merges the native core's log with the workers': it buffers every line of a worker, whatever its level, a dozen per
 * delivery, and looks at the buffer ten times a second even when nothing happens. This collector passes workers' lines on at once.
 */
class CoreErrors extends collectors.NativeLogCollector {
  override readonly logger: Logger

  constructor(log: Logger) {
    super(log)
    this.logger = log
    clearInterval(this.flushIntervalTimer)
    this.flushIntervalTimer = setInterval(() => this["flushMatured"](), FLUSH_EVERY_MS).unref()
  }
}

/** Applies the patches. Call it once, before the SDK's runtime is installed. */
export const patchSdk = (): void => {
  threads.Worker = LoggedWorker
  readHeapStatisticsOnce()
  collectors.NativeLogCollector = CoreErrors
}
