/** The SDK's log. Its native core has a logger of its own; only errors matter, and they go to the program's log. */
import { DefaultLogger } from "@temporalio/worker/lib/logger"
import { Runtime } from "@temporalio/worker/lib/runtime"
import { writeError } from "../telemetry/Log.ts"

const describe = (meta: Readonly<Record<string, unknown>> | undefined) => (meta?.error instanceof Error ? { cause: meta.error.stack } : {})

/** Installs the SDK's runtime with this log. Call it once, before the first connection. */
export const installRuntime = (): void => {
  Runtime.install({
    logger: new DefaultLogger("ERROR", ({ message, meta }) => {
      writeError(JSON.stringify({ time: new Date().toISOString(), level: "error", message: `temporal: ${message}`, ...describe(meta) }))
    }),
    telemetryOptions: { logging: { filter: { core: "ERROR", other: "ERROR" }, forward: {} } },
    // The program handles its own signals.
    shutdownSignals: []
  })
}
