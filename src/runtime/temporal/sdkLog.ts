/**
 * The SDK's log. Its native core has a logger of its own; only errors matter, and they go to the program's log.
 *
 * The SDK merges the core's lines with the workers': it buffers every line of a worker, whatever its level, a dozen per
 * delivery, and looks at the buffer ten times a second even when nothing happens. No option separates the two or changes the
 * interval, so its collector is replaced by one that passes workers' lines on at once.
 */
import { createRequire } from "node:module"
import { DefaultLogger, type Logger } from "@temporalio/worker/lib/logger"
import { Runtime } from "@temporalio/worker/lib/runtime"
import type { NativeLogCollector } from "@temporalio/worker/lib/runtime-logger"
import { writeLine } from "../telemetry/Log.ts"

/** Interval at which the core's log is flushed, in ms. New lines flush earlier ones; only the last waits this long. */
const FLUSH_EVERY_MS = 5_000

const collectors: { NativeLogCollector: typeof NativeLogCollector } = createRequire(import.meta.url)(
  "@temporalio/worker/lib/runtime-logger"
)

class CoreErrors extends collectors.NativeLogCollector {
  override readonly logger: Logger

  constructor(log: Logger) {
    super(log)
    this.logger = log
    clearInterval(this.flushIntervalTimer)
    this.flushIntervalTimer = setInterval(() => this["flushMatured"](), FLUSH_EVERY_MS).unref()
  }
}

const describe = (meta: Readonly<Record<string, unknown>> | undefined) => (meta?.error instanceof Error ? { cause: meta.error.stack } : {})

/** Installs the SDK's runtime with this log. Call it once, before the first connection. */
export const installRuntime = (): void => {
  collectors.NativeLogCollector = CoreErrors
  Runtime.install({
    logger: new DefaultLogger("ERROR", ({ message, meta }) => {
      writeLine(JSON.stringify({ time: new Date().toISOString(), level: "error", message: `temporal: ${message}`, ...describe(meta) }))
    }),
    telemetryOptions: { logging: { filter: { core: "ERROR", other: "ERROR" }, forward: {} } },
    // The program handles its own signals.
    shutdownSignals: []
  })
}
