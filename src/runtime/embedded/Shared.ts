/**
 * Ownership of embedded servers. Among the processes of one `DATA_DIR`, the one that started a server stops it; the
 * others only use it. The owner is recorded in a file; if it was killed, the next process takes over the server, which is
 * still running. The server of a running owner is never stopped by others, even if it does not respond to them: they may be in
 * another container or network namespace.
 */

import * as fs from "node:fs"
import { Duration, Effect, Schedule } from "effect"
import { DataDir } from "./DataDir.ts"
import * as Process from "./Process.ts"

interface Ask<A, E, R> {
  readonly name: string
  readonly pidFile: string
  readonly marker: string
  readonly stopSignal: NodeJS.Signals
  /** The server's value if it is running and responds, undefined if it must be started. */
  readonly running: Effect.Effect<A | undefined, E, R>
  readonly start: Effect.Effect<A, E, R>
}

/** How long a server of a running owner may take to respond or to end: more than {@link Process.stop} takes. */
const PATIENCE = Duration.seconds(20)

/** How often a server is looked at. */
const LOOK = Duration.seconds(2)

/** Owner files of servers that a scope of this process stops; other scopes only use them. */
const held = new Set<string>()

/** The running server, or a new one; its owner stops it when the scope closes. */
export const shared = Effect.fn("Shared.shared")(function* <A, E, R>(ask: Ask<A, E, R>) {
  const dataDir = yield* DataDir
  const ownerFile = dataDir.at("run", `${ask.name}.owner`)
  const live = () => Process.livePid(ask.pidFile, ask.marker)

  /** Another process that owns the server. */
  const otherOwner = () => {
    const pid = Process.livePid(ownerFile)
    return pid === process.pid ? undefined : pid
  }
  const outOfReach = () =>
    new Process.EmbeddedServerError({
      message:
        `The embedded ${ask.name} server belongs to process ${otherOwner()} and does not respond: it is in another container or network ` +
        "namespace than this command, or it hangs. Run the command where that process runs, or stop that process."
    })
  /** The server's value if it responds; undefined once it has ended, or has no running owner. */
  const running = Effect.gen(function* () {
    for (;;) {
      const found = yield* ask.running
      if (found !== undefined || live() === undefined || otherOwner() === undefined) return found
      yield* Effect.sleep("250 millis")
    }
  }).pipe(Effect.timeoutFail({ duration: PATIENCE, onTimeout: outOfReach }))

  const take = Effect.gen(function* () {
    const found = yield* running
    if (found !== undefined && (held.has(ownerFile) || otherOwner() !== undefined)) return { owned: false, value: found }
    // A server without an owner that does not respond is replaced.
    const stuck = found === undefined ? live() : undefined
    if (stuck !== undefined) yield* Process.stop(ask, stuck)
    const value = found ?? (yield* ask.start)
    fs.writeFileSync(ownerFile, `${process.pid}\n`)
    held.add(ownerFile)
    return { owned: true, value }
  })

  const release = Effect.gen(function* () {
    const pid = live()
    held.delete(ownerFile)
    if (Process.livePid(ownerFile) !== process.pid) return
    if (pid !== undefined) yield* Process.stop(ask, pid)
    fs.rmSync(ownerFile, { force: true })
  })

  /** Logs that the server ended although nobody stopped it here: only a start of the program starts it again. */
  const watch = Effect.sync(live).pipe(
    Effect.repeat({ while: (pid) => pid !== undefined, schedule: Schedule.spaced(LOOK) }),
    Effect.zipRight(
      Effect.logFatal(
        `The embedded ${ask.name} server has ended: restart this program. Its log is ${dataDir.at("log", `${ask.name}.log`)}.`
      )
    )
  )

  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { owned, value } = yield* restore(dataDir.exclusively(take))
      if (owned) yield* Effect.addFinalizer(() => release)
      // Ends with the scope, before the server is stopped.
      yield* Effect.forkScoped(Effect.interruptible(watch))
      return value
    })
  )
})
