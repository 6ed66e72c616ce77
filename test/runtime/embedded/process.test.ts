/** An embedded server that does not start: its error, and another start where its port was taken. */
import { expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect, Layer } from "effect"
import { DataDir } from "../../../src/runtime/embedded/DataDir.ts"
import { start } from "../../../src/runtime/embedded/Process.ts"
import * as EmbeddedTemporal from "../../../src/runtime/embedded/Temporal.ts"
import { keptTemporal, serverFolder, settingsOf } from "../../support/servers.ts"

test("a server that crashes at its start is reported with the crash's reason", async () => {
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

test("a server whose free port is taken is started with another one", async () => {
  const folder = serverFolder()
  const other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("other") })
  const real = fs.realpathSync(keptTemporal())
  const command = path.join(folder, "bin", "temporal")
  fs.rmSync(command, { force: true })
  fs.writeFileSync(
    command,
    `#!/bin/sh
if mkdir '${path.join(folder, "started")}' 2>/dev/null; then set -- $(echo "$@" | sed 's/--port [0-9]*/--port ${other.port}/'); fi
exec '${real}' "$@"
`,
    { mode: 0o755 }
  )
  const { PATH } = process.env
  process.env["PATH"] = `${path.dirname(command)}:${PATH}`
  try {
    const started = Effect.flatMap(EmbeddedTemporal.acquire, ({ address, ui }) =>
      Effect.promise(async () => ({ address, status: (await fetch(ui)).status }))
    )
    const { address, status } = await Effect.runPromise(
      Effect.scoped(Effect.provide(started, Layer.provideMerge(DataDir.layer, settingsOf(folder))))
    )
    expect(address).not.toBe(`127.0.0.1:${other.port}`)
    expect(status).toBe(200)
    expect(fs.readFileSync(path.join(folder, "log", "temporal.log"), "utf8")).toContain(`${other.port}: bind: address already in use`)
  } finally {
    process.env["PATH"] = PATH
    await other.stop(true)
    fs.rmSync(folder, { recursive: true, force: true })
  }
})
