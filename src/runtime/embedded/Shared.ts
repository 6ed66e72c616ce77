/**
 * Ownership of embedded servers. Among the processes of one `DATA_DIR`, the one that started a server stops it; the
 * others only use it. The owner is recorded in a file; if it was killed, the next process takes over the server, which is
 * still running.
 */

import * as fs from "node:fs"
import { Effect } from "effect"
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

/** Owner files of servers that a scope of this process stops; other scopes only use them. */
const held = new Set<string>()

/** The running server, or a new one; its owner stops it when the scope closes. */
export const shared = Effect.fn("Shared.shared")(function* <A, E, R>(ask: Ask<A, E, R>) {
  const dataDir = yield* DataDir
  const ownerFile = dataDir.at("run", `${ask.name}.owner`)
  const live = () => Process.livePid(ask.pidFile, ask.marker)

  const take = Effect.gen(function* () {
    const found = yield* ask.running
    const owner = Process.livePid(ownerFile)
    if (found !== undefined && (held.has(ownerFile) || (owner !== undefined && owner !== process.pid)))
      return { owned: false, value: found }
    // A server that does not respond (stopping or broken) is replaced.
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

  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { owned, value } = yield* restore(dataDir.exclusively(take))
      if (owned) yield* Effect.addFinalizer(() => release)
      return value
    })
  )
})
