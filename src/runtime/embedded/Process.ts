/**
 * An embedded server process. It runs in its own session, so that Ctrl-C reaches only the program, which stops its
 * servers last. Its output goes to a log file, its process id to a pid file. If the program is killed, the server
 * survives, and the next start uses it.
 */

import { type SpawnOptions, spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { Data, Duration, Effect, Exit, Schedule } from "effect"

/** An embedded server did not start; `message` says why and what to do. */
export class EmbeddedServerError extends Data.TaggedError("EmbeddedServerError")<{ readonly message: string }> {}

/** What to run, and how to know that it is ready. */
export interface Server {
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly options?: SpawnOptions
  readonly logFile: string
  readonly pidFile: string
  /** Text in the command line that identifies this server among processes with the same id. */
  readonly marker: string
  readonly ready: Effect.Effect<boolean>
  readonly stopSignal: NodeJS.Signals
}

/** Whether a process with this id exists. */
export const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

const isZombie = (pid: number): boolean => {
  try {
    return /^\d+ \(.*\) Z/s.test(fs.readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

/**
 * The process id in a pid file, where that process still exists. With `marker`, its command line must contain that text:
 * after a reboot the id may belong to another process.
 */
export const livePid = (pidFile: string, marker = ""): number | undefined => {
  try {
    const pid = Number.parseInt(fs.readFileSync(pidFile, "utf8"), 10)
    return Number.isInteger(pid) && pid > 0 && alive(pid) && commandLine(pid).includes(marker) ? pid : undefined
  } catch {
    return undefined
  }
}

const commandLine = (pid: number): string => {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")
  } catch {
    return spawnSync("ps", ["-p", String(pid), "-o", "args="], { encoding: "utf8" }).stdout ?? ""
  }
}

/**
 * Why a server ended, from its log since this byte: where a Go program reports a crash, the lines from there on, and
 * otherwise the last lines.
 */
export const reasonIn = (file: string, since = 0, count = 12): string => {
  try {
    const lines = fs.readFileSync(file).subarray(since).toString().trimEnd().split("\n")
    // Hundreds of lines of stack traces follow the reason.
    const crash = lines.findIndex((line) => /^(panic|fatal error|SIG[A-Z]+):/.test(line))
    return (crash === -1 ? lines.slice(-count) : lines.slice(crash, crash + count)).join("\n")
  } catch {
    return ""
  }
}

/** Starts a server and waits up to 60 s until it is ready. The process is not tied to the caller's scope: {@link stop} ends it. */
export const start = Effect.fn("Process.start")(function* (server: Server) {
  fs.mkdirSync(path.dirname(server.logFile), { recursive: true })
  const log = fs.openSync(server.logFile, "a")
  // Earlier starts wrote to the same file.
  const { size } = fs.fstatSync(log)
  const child = spawn(server.command, [...server.args], { ...server.options, detached: true, stdio: ["ignore", log, log] })
  fs.closeSync(log)
  let exited: string | undefined
  child.on("error", (error) => {
    exited = error.message
  })
  child.on("exit", (code, signal) => {
    exited = signal === null ? `exit code ${code}` : `signal ${signal}`
  })
  child.unref()
  const failed = () =>
    new EmbeddedServerError({
      message: `The embedded ${server.name} did not start (${exited ?? "not ready after 60 s"}). Its log, ${server.logFile}, says:\n${reasonIn(server.logFile, size)}`
    })
  const recorded = Effect.try({
    try: () => fs.writeFileSync(server.pidFile, `${child.pid}\n`),
    catch: (error) => new EmbeddedServerError({ message: `The embedded ${server.name} was not started: ${String(error)}` })
  })
  yield* Effect.suspend(() => (exited === undefined ? server.ready : Effect.fail(failed()))).pipe(
    Effect.repeat({ until: (ready) => ready, schedule: Schedule.spaced("50 millis") }),
    Effect.timeoutFail({ duration: Duration.seconds(60), onTimeout: failed }),
    (ready) => (child.pid === undefined ? ready : Effect.zipRight(recorded, ready)),
    Effect.onExit((exit) => (Exit.isSuccess(exit) || child.pid === undefined ? Effect.void : stop(server, child.pid)))
  )
})

/** Stops a server with its stop signal, after 15 s with SIGKILL, and removes its pid file. */
export const stop = Effect.fn("Process.stop")(function* (server: Pick<Server, "stopSignal" | "pidFile">, pid: number) {
  const signal = (name: NodeJS.Signals) =>
    Effect.sync(() => {
      if (alive(pid)) process.kill(pid, name)
    })
  yield* signal(server.stopSignal)
  // At the end of a program, a timeout would not interrupt the wait.
  yield* Effect.sync(() => alive(pid)).pipe(
    Effect.repeat({ while: (still) => still, schedule: Schedule.upTo(Schedule.spaced("25 millis"), Duration.seconds(15)) })
  )
  yield* signal("SIGKILL")
  yield* Effect.sync(() => fs.rmSync(server.pidFile, { force: true }))
})

/** Why listening on the port fails, such as `EADDRINUSE` or `EACCES`; undefined if it works. */
export const listenFault = (port: number, host = "127.0.0.1"): Effect.Effect<string | undefined> =>
  Effect.async((resume) => {
    const probe = net.createServer()
    probe.once("error", (error) => resume(Effect.succeed("code" in error ? String(error.code) : error.message)))
    probe.listen(port, host, () => probe.close(() => resume(Effect.succeed(undefined))))
  })

/** Whether something listens on the port of the address already. */
export const portInUse = (port: number, host?: string): Effect.Effect<boolean> =>
  Effect.map(listenFault(port, host), (code) => code === "EADDRINUSE")

/** The given port, or a free one for 0. If it is in use, fails with a message that names the port and the setting. */
export const choosePort = Effect.fn("Process.choosePort")(function* (setting: string, port: number) {
  if (port === 0) return yield* freePort
  if (yield* portInUse(port)) {
    return yield* new EmbeddedServerError({
      message: `Port ${port} is in use by another program. Free it, or set ${setting} to another port (0 for any free port).`
    })
  }
  return port
})

/** Whether a server did not start because another program took its port after that was found free. A new start may choose another. */
export const isPortTaken = ({ message }: EmbeddedServerError): boolean => /address already in use/i.test(message)

/** A free loopback port. */
export const freePort: Effect.Effect<number> = Effect.async((resume) => {
  const probe = net.createServer()
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address()
    probe.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})
