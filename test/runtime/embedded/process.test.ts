/** An embedded server that does not start: its error, and another start where its port was taken; and who may stop one. */
import { expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect, Exit, Fiber, Layer, Scope, TestClock, TestContext } from "effect"
import { DataDir } from "../../../src/runtime/embedded/DataDir.ts"
import { alive, start, stop } from "../../../src/runtime/embedded/Process.ts"
import { shared } from "../../../src/runtime/embedded/Shared.ts"
import * as EmbeddedTemporal from "../../../src/runtime/embedded/Temporal.ts"
import { until } from "../../support/receiver.ts"
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

test("a server that ignores its stop signal is killed, also when a program ends", async () => {
  const server = Bun.spawn(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"], { stdout: "pipe" })
  for await (const _ of server.stdout) break
  const stopping = Effect.gen(function* () {
    const fiber = yield* Effect.fork(Effect.uninterruptible(stop({ stopSignal: "SIGTERM", pidFile: "/nonexistent" }, server.pid)))
    yield* Effect.repeat(TestClock.adjust("1 second"), { until: () => fiber.unsafePoll() !== null })
  })
  await Effect.runPromise(Effect.provide(stopping, TestContext.TestContext))
  expect(await server.exited).toBe(137)
})

test("a server is started again only after the process that used it has stopped it", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-process-"))
  const server = Bun.spawn(["sleep", "600"])
  const pidFile = path.join(folder, "Postgres.pid")
  let looks = 0
  const running = Effect.sync(() => void looks++)
  const ask = { name: "Postgres", pidFile, stopSignal: "SIGTERM" as const, running }
  const start = Effect.sync(() => {
    fs.writeFileSync(pidFile, `${server.pid}\n`)
    return true
  })
  const user = await Effect.runPromise(Scope.make())
  // As in another container, the process id names none for the next user.
  const next = Effect.scoped(shared({ ...ask, marker: "none", start: Effect.sync(() => alive(server.pid)) }))
  try {
    const wasAlive = Effect.gen(function* () {
      yield* Scope.extend(shared({ ...ask, marker: "sleep", start }), user)
      const waiting = yield* Effect.fork(next)
      yield* Effect.promise(() => until("a look of the next user", () => looks > 2))
      expect(waiting.unsafePoll()).toBeNull()
      yield* Scope.close(user, Exit.void)
      return yield* Fiber.join(waiting)
    }).pipe(Effect.provide(Layer.provide(DataDir.layer, settingsOf(folder, []))))
    expect(await Effect.runPromise(wasAlive)).toBe(false)
  } finally {
    server.kill("SIGKILL")
    fs.rmSync(folder, { recursive: true, force: true })
  }
})

test("a server that another process uses is not stopped by one that cannot reach it", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-process-"))
  const locks = path.resolve(import.meta.dir, "../../../src/runtime/embedded/fileLock.ts")
  const hold = `globalThis.held = require(${JSON.stringify(locks)}).lockTogether(process.argv.at(-1)); console.log("held"); setInterval(() => {}, 1e6)`
  fs.mkdirSync(path.join(folder, "run"))
  const server = Bun.spawn(["sleep", "600"])
  const user = Bun.spawn([process.execPath, "-e", hold, path.join(folder, "run", "Postgres.users")], { stdout: "pipe" })
  const ask = {
    name: "Postgres",
    pidFile: path.join(folder, "run", "Postgres.pid"),
    marker: "sleep",
    stopSignal: "SIGTERM" as const,
    // As from another network namespace.
    running: Effect.succeed(undefined),
    start: Effect.succeed("another server")
  }
  const acquire = Effect.scoped(shared(ask)).pipe(Effect.provide(Layer.provide(DataDir.layer, settingsOf(folder, []))))
  try {
    for await (const _ of user.stdout) break
    // In another container, the server's process id names none.
    for (const pid of [2 ** 30, server.pid]) {
      fs.writeFileSync(ask.pidFile, `${pid}\n`)
      const refused = await Effect.runPromise(
        Effect.gen(function* () {
          const fiber = yield* Effect.fork(Effect.flip(acquire))
          yield* Effect.repeat(TestClock.adjust("1 second"), { until: () => fiber.unsafePoll() !== null })
          return yield* Fiber.join(fiber)
        }).pipe(Effect.provide(TestContext.TestContext))
      )
      expect(refused.message).toContain("The embedded Postgres server is used by another process and does not respond")
      expect(alive(server.pid)).toBe(true)
    }
    // Once nobody uses it, it is a leftover.
    user.kill("SIGKILL")
    await user.exited
    expect(await Effect.runPromise(acquire)).toBe("another server")
    expect(alive(server.pid)).toBe(false)
  } finally {
    for (const one of [server, user]) one.kill("SIGKILL")
    fs.rmSync(folder, { recursive: true, force: true })
  }
})
