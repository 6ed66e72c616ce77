/**
 * The SDK runs workflow code in threads whose output goes to the console, into the middle of the log or a screen, without
 * an option to change it. So the threads get their own error stream, whose content is logged. Call it once, before the
 * first worker is created.
 */
import { createInterface } from "node:readline"
import threads from "node:worker_threads"
import { writeLine } from "../telemetry/Log.ts"

/** Printed by every thread: on Bun the SDK collects no stack traces of workflows, which is harmless. */
const KNOWN = "v8.promiseHooks.createHook is not available"

class LoggedWorker extends threads.Worker {
  constructor(file: string | URL, options: threads.WorkerOptions = {}) {
    super(file, { ...options, stderr: true })
    createInterface({ input: this.stderr }).on("line", (line) => {
      if (line.startsWith(KNOWN)) return
      writeLine(JSON.stringify({ time: new Date().toISOString(), level: "warn", message: `temporal: ${line}` }))
    })
  }
}

/** Redirects the output of threads to the log. */
export const logThreads = (): void => {
  threads.Worker = LoggedWorker
}
