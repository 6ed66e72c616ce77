/**
 * `DATA_DIR`: the data directory of the embedded servers. `run/` describes what is running: a pid file per process and
 * role, and `servers.json` with the addresses of the embedded servers. Generated keys are beside it. Everything is
 * readable by its owner only: the program runs with a umask of 077 (main.ts).
 */
import type { Database } from "bun:sqlite"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { Duration, Effect, Redacted, Schema } from "effect"
import { InvalidSettings, Settings } from "../settings/Settings.ts"
import { lockAlone } from "./fileLock.ts"

/** `DATA_DIR/run/servers.json`. */
export const Servers = Schema.Struct({
  databaseUrl: Schema.optional(Schema.String),
  temporalAddress: Schema.optional(Schema.String),
  temporalUi: Schema.optional(Schema.String)
})
export type Servers = typeof Servers.Type

/** How often the lock of a start is looked at, and after how many looks the wait is logged. */
const LOOK = Duration.millis(50),
  LOOKS = 200

export class DataDir extends Effect.Service<DataDir>()("custody/DataDir", {
  effect: Effect.map(Settings, ({ dataDir }) => {
    const root = path.resolve(dataDir)
    const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
    const run = at("run")

    let tightened = false
    /** Only the owner may change a file's mode: a mounted volume may belong to somebody else. */
    const isOurs = ({ uid }: fs.Stats): boolean => [undefined, 0, uid].includes(process.getuid?.())
    /** Removes other users' permissions from what is already there, such as a copy. Postgres protects its own directory. */
    const tighten = () => {
      tightened = true
      for (const folder of [root, run, at("log"), at("bin")]) {
        if (!fs.existsSync(folder)) continue
        for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
          const file = path.join(folder, entry.name)
          if (!entry.isFile()) continue
          const stat = fs.statSync(file)
          if ((stat.mode & 0o077) !== 0 && isOurs(stat)) fs.chmodSync(file, stat.mode & 0o700)
        }
        const stat = fs.statSync(folder)
        // The embedded Postgres may run as another user, which must be able to pass through the root.
        if (isOurs(stat)) fs.chmodSync(folder, folder === root ? (stat.mode & 0o711) | 0o700 : 0o700)
      }
    }

    /** Writes to the folder. Throws {@link InvalidSettings} if that does not work, such as on a full disk. */
    const writing = (write: () => void): void => {
      try {
        write()
      } catch (error) {
        const reason = error instanceof Error && "code" in error ? String(error.code) : String(error)
        throw new InvalidSettings({ faults: [`DATA_DIR: read “${dataDir}”, expected a folder that can be written (${reason}).`] })
      }
    }

    const make = () => {
      writing(() => {
        fs.mkdirSync(run, { recursive: true, mode: 0o700 })
        fs.accessSync(run, fs.constants.W_OK)
      })
      if (!tightened) tighten()
      // The embedded Postgres runs as another user, which must be able to pass through; secret files have their own mode.
      if (process.getuid?.() === 0) fs.chmodSync(root, fs.statSync(root).mode | 0o011)
    }

    const servers = (): Servers => {
      try {
        return Schema.decodeUnknownSync(Schema.parseJson(Servers))(fs.readFileSync(path.join(run, "servers.json"), "utf8"))
      } catch {
        return {}
      }
    }

    const waiting = Effect.logWarning(
      "Another process starts or stops the embedded servers of this DATA_DIR. Waiting for it: if it hangs, end it."
    )
    /** Polled with this wait, so that waiting does not block the process. */
    const startLock = (wait: Effect.Effect<void>, looks = 0): Effect.Effect<Database> =>
      Effect.suspend(() => {
        const lock = lockAlone(path.join(run, "start.lock"))
        if (lock !== undefined) return Effect.succeed(lock)
        return Effect.zipRight(looks === LOOKS ? waiting : wait, startLock(wait, looks + 1))
      })

    return {
      root,
      at,
      make,
      servers,
      /** Updates `servers.json` atomically. */
      writeServers: (change: Servers) => {
        const file = path.join(run, "servers.json")
        writing(() => {
          fs.writeFileSync(`${file}.${process.pid}`, `${JSON.stringify({ ...servers(), ...change }, null, 2)}\n`, { mode: 0o600 })
          fs.renameSync(`${file}.${process.pid}`, file)
        })
      },
      /** Runs the effect under a lock on this `DATA_DIR`; the lock of a process that dies is released. */
      exclusively: <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
        // A start can be interrupted while it waits, but not the release of a server at the end of a program that was interrupted.
        Effect.uninterruptibleMask((restore) =>
          Effect.acquireUseRelease(
            Effect.zipRight(Effect.sync(make), startLock(restore(Effect.sleep(LOOK)))),
            () => restore(effect),
            (lock) => Effect.sync(() => lock.close())
          )
        ),
      /** A secret in its own file, created by `generate` if missing. */
      secret: (name: string, generate: () => string): Redacted.Redacted => {
        make()
        const file = at(name)
        if (!fs.existsSync(file))
          writing(() => {
            try {
              fs.writeFileSync(`${file}.${process.pid}`, `${generate()}\n`, { mode: 0o600 })
              // link never replaces a file: if two processes start together, one key wins and both read it.
              fs.linkSync(`${file}.${process.pid}`, file)
            } catch (error) {
              if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error
            } finally {
              fs.rmSync(`${file}.${process.pid}`, { force: true })
            }
          })
        return Redacted.make(fs.readFileSync(file, "utf8").trim())
      },
      /** A pid file for as long as the scope is open. */
      pidFile: (name: string) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            make()
            writing(() => fs.writeFileSync(path.join(run, `${name}.pid`), `${process.pid}\n`))
          }),
          () =>
            Effect.sync(() => {
              const file = path.join(run, `${name}.pid`)
              if (fs.existsSync(file) && fs.readFileSync(file, "utf8").trim() === String(process.pid)) fs.rmSync(file)
            })
        )
    }
  })
}) {
  static readonly layer = this.Default
}

/** 32 random bytes in base64: the form of `MASTER_KEY`. */
export const generateKey = () => randomBytes(32).toString("base64")
