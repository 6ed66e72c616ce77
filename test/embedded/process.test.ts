/** The error of an embedded server that does not start. */
import { expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect } from "effect"
import { start } from "../../src/embedded/Process.ts"

test("a server that crashes at its start is reported with the crash's reason, not with the end of its stack traces", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-process-"))
  try {
    const server = (script: string) => ({
      name: "server",
      command: "sh",
      args: ["-c", script],
      logFile: path.join(folder, "server.log"),
      pidFile: path.join(folder, "server.pid"),
      marker: folder,
      ready: Effect.succeed(false),
      stopSignal: "SIGTERM" as const
    })
    const traces = "for n in $(seq 200); do echo goroutine $n; done; exit 2"
    const crash = await Effect.runPromise(Effect.flip(start(server(`echo starting; echo 'panic: address already in use'; ${traces}`))))
    expect(crash.message).toContain("(exit code 2)")
    expect(crash.message).toContain("panic: address already in use\ngoroutine 1\n")
    expect(crash.message).not.toContain("goroutine 100")
    // The log still has the earlier crash.
    const other = await Effect.runPromise(Effect.flip(start(server(traces))))
    expect(other.message).toContain("goroutine 200")
    expect(other.message).not.toContain("panic")
    expect(other.message).not.toContain("goroutine 100\n")
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
})
