/**
 * Postgres notifications on a separate connection. They are hints: one may be lost while the connection is
 * re-established, so listeners also poll. `listen` of `@effect/sql-pg` does not notice that its connection broke
 * (https://github.com/Effect-TS/effect/pull/8215); this one reconnects. It connects when the first listener starts.
 */
import { Context, Duration, Effect, Layer, Queue, Redacted, Schedule } from "effect"
import pg from "pg"
import { LIFETIME } from "./Database.ts"

/** Wait before reconnecting, and timeout of connecting. */
const AGAIN = Duration.seconds(1),
  CONNECT = Duration.seconds(5)

/** A listener of a channel. */
export interface ChannelListener {
  /** Waits for the next notification; several at once count as one, and so does a reconnect. */
  readonly next: Effect.Effect<void>
  /** Ends the wait immediately. */
  readonly now: () => void
}

export class Notifications extends Context.Tag("custody/Notifications")<
  Notifications,
  {
    /** Listens to a channel from now on; `heard` is called with the payload of each notification. */
    readonly on: (channel: string, heard?: (payload: string) => void) => Effect.Effect<ChannelListener>
  }
>() {}

/** Notifications of the database at this URL, while the scope is open. */
export const layer = (url: Redacted.Redacted) =>
  Layer.scoped(
    Notifications,
    Effect.gen(function* () {
      const waiting = new Map<string, Array<Queue.Queue<void>>>()
      const hearing = new Map<string, Array<(payload: string) => void>>()
      let connected: pg.Client | undefined
      /** The last LISTEN of the connection: the driver takes one statement at a time. */
      let last: Promise<unknown> = Promise.resolve()

      const listen = Effect.async<void>((resume) => {
        const client = new pg.Client({
          connectionString: Redacted.value(url),
          application_name: "custody-notifications",
          keepAlive: true,
          connectionTimeoutMillis: Duration.toMillis(CONNECT)
        })
        client.on("notification", ({ channel, payload = "" }) => {
          for (const heard of hearing.get(channel) ?? []) heard(payload)
          for (const queue of waiting.get(channel) ?? []) Queue.unsafeOffer(queue, undefined)
        })
        const ended = () => resume(Effect.void)
        client.on("error", ended)
        client.on("end", ended)
        client
          .connect()
          .then(async () => {
            for (const channel of waiting.keys()) await client.query(`LISTEN ${client.escapeIdentifier(channel)}`)
            connected = client
            // Earlier notifications were lost.
            for (const queue of [...waiting.values()].flat()) Queue.unsafeOffer(queue, undefined)
          })
          .catch(ended)
        return Effect.sync(() => {
          connected = undefined
          client.end().catch(() => {})
        })
      })
      // Releases a connection whether it broke or was closed here.
      const session = Effect.raceFirst(listen, Effect.sleep(LIFETIME))
      const asked = yield* Effect.makeLatch()
      yield* Effect.forkScoped(asked.whenOpen(session.pipe(Effect.repeat(Schedule.spaced(AGAIN)))))

      return {
        on: (channel, heard) =>
          Effect.tap(
            Effect.map(Queue.sliding<void>(1), (queue) => {
              waiting.set(channel, [...(waiting.get(channel) ?? []), queue])
              if (heard !== undefined) hearing.set(channel, [...(hearing.get(channel) ?? []), heard])
              const client = connected
              if (client !== undefined) last = last.then(() => client.query(`LISTEN ${client.escapeIdentifier(channel)}`)).catch(() => {})
              return { next: Queue.take(queue), now: () => void Queue.unsafeOffer(queue, undefined) }
            }),
            asked.open
          )
      }
    })
  )
