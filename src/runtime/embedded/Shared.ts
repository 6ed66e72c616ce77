/**
 * Sharing of embedded servers. Among the processes of one `DATA_DIR`, the first that needs a server starts it, and the last
 * that uses it stops it. Each has a shared lock on a file while it uses the server. If all were killed, the server still runs, and
 * the next process uses it. A server that another process uses is never stopped or started again, even if it does not respond and
 * has no process here: that process may be in another container or namespace.
 */

import { Data, Duration, Effect, identity, Schedule } from "effect"
import { DataDir } from "./DataDir.ts"
import { isLocked, lockTogether } from "./fileLock.ts"
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

/** How long a server that another process uses may take to respond or to end: more than {@link Process.stop} takes. */
const PATIENCE = Duration.seconds(20)

/** How often a server is looked at, and how long a look may take. */
const LOOK = Duration.seconds(2),
  LONGEST_LOOK = Duration.seconds(5)

/** Another process uses the server, which does not respond. */
class OutOfReach extends Data.TaggedError("OutOfReach") {}

/** The running server, or a new one, which is used until the scope closes. */
export const shared = Effect.fn("Shared.shared")(function* <A, E, R>(ask: Ask<A, E, R>) {
  const dataDir = yield* DataDir
  const users = dataDir.at("run", `${ask.name}.users`)
  const live = () => Process.livePid(ask.pidFile, ask.marker)

  const outOfReach = () =>
    new Process.EmbeddedServerError({
      message:
        `The embedded ${ask.name} server is used by another process and does not respond: it is in another container or namespace ` +
        "than this command, it hangs, or it has ended. Run the command where that process runs, or stop that process."
    })

  const stopUnused = Effect.suspend(() => {
    const pid = live()
    return pid === undefined || isLocked(users) ? Effect.void : Process.stop(ask, pid)
  })

  const take = Effect.gen(function* () {
    // A server that hangs must not keep this process in the lock.
    const found = yield* Effect.timeoutTo(ask.running, { duration: LONGEST_LOOK, onSuccess: identity, onTimeout: () => undefined })
    if (found === undefined && isLocked(users)) return yield* new OutOfReach()
    // A server that nobody uses and that does not respond is replaced.
    const stuck = found === undefined ? live() : undefined
    if (stuck !== undefined) yield* Process.stop(ask, stuck)
    const value = found ?? (yield* ask.start)
    return { value, use: lockTogether(users) }
  })

  /** Logs that the server ended although it was used: only a start of the program starts it again. */
  const watch = Effect.sync(live).pipe(
    Effect.repeat({ while: (pid) => pid !== undefined, schedule: Schedule.spaced(LOOK) }),
    Effect.zipRight(
      Effect.logFatal(
        `The embedded ${ask.name} server has ended: restart all programs of this DATA_DIR. Its log is ${dataDir.at("log", `${ask.name}.log`)}.`
      )
    )
  )

  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { use, value } = yield* restore(
        // Between two looks, the process that uses the server can stop it.
        dataDir.exclusively(Effect.onError(take, () => stopUnused)).pipe(
          Effect.retry({
            while: (error) => error instanceof OutOfReach,
            schedule: Schedule.upTo(Schedule.spaced("250 millis"), PATIENCE)
          }),
          Effect.mapError((error) => (error instanceof OutOfReach ? outOfReach() : error))
        )
      )
      yield* Effect.addFinalizer(() =>
        dataDir.exclusively(
          Effect.zipRight(
            Effect.sync(() => use.close()),
            stopUnused
          )
        )
      )
      // Ends with the scope, before the server is stopped. A server in another container has no process here.
      if (live() !== undefined) yield* Effect.forkScoped(Effect.interruptible(watch))
      return value
    })
  )
})
