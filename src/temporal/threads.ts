/**
 * The SDK runs workflow code in threads, and what these say goes to the console, into the middle of the log or of a
 * screen, with no option to change it. So the threads are started with an error stream of their own, and what comes
 * out of it is logged. Set up once, before the first worker is made.
 */
import { createInterface } from "node:readline"
import threads from "node:worker_threads"
import { writeLine } from "../telemetry/Log.ts"

/** Said by every thread: on Bun the SDK collects no stack traces of workflows, which is known and harms nothing. */
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

/** From now on threads log what they say. */
export const logThreads = (): void => {
  threads.Worker = LoggedWorker
}
