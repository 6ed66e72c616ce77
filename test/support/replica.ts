/**
 * A streaming replica of a test's Postgres server: a base backup of the running primary and a standby on it. The embedded
 * binaries have no pg_basebackup, so the backup is the low-level one that Postgres's manual describes.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { Effect } from "effect"
import pg from "pg"
import * as EmbeddedPostgres from "../../src/runtime/embedded/Postgres.ts"
import { freePort } from "./freePort.ts"
import type { PostgresServer } from "./postgres.ts"
import { until } from "./receiver.ts"

/** Runs SQL on a server with one connection. */
export const query = async (
  url: string,
  ...texts: ReadonlyArray<string>
): Promise<ReadonlyArray<{ readonly [column: string]: unknown }>> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on("error", () => {})
  await client.connect()
  try {
    let rows: Array<{ readonly [column: string]: unknown }> = []
    for (const text of texts) rows = (await client.query(text)).rows
    return rows
  } finally {
    await client.end().catch(() => {})
  }
}

export class Replica {
  readonly #primary: PostgresServer
  #port = 0
  #child: ChildProcess | undefined

  constructor(primary: PostgresServer) {
    this.#primary = primary
  }

  get folder(): string {
    return path.join(this.#primary.folder, "replica")
  }

  get url(): string {
    const url = new URL(this.#primary.url)
    url.port = String(this.#port)
    return url.toString()
  }

  /** The process id of its postmaster. */
  get pid(): number {
    return Number(fs.readFileSync(path.join(this.folder, "postmaster.pid"), "utf8").split("\n", 1)[0])
  }

  /** Copies the running primary; the copy follows it once started. */
  async #copy(): Promise<void> {
    const { cluster, url } = this.#primary
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      await client.query("SELECT pg_backup_start('replica', true)")
      // Files that disappear meanwhile are restored from the log.
      spawnSync("cp", ["-a", cluster, this.folder])
      const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop(false)")
      const owner = fs.statSync(cluster)
      const write = (name: string, content: string) => {
        fs.writeFileSync(path.join(this.folder, name), content, { flag: "a", mode: 0o600 })
        fs.chownSync(path.join(this.folder, name), owner.uid, owner.gid)
      }
      fs.rmSync(path.join(this.folder, "postmaster.pid"), { force: true })
      for (const file of fs.readdirSync(path.join(this.folder, "pg_wal"))) {
        if (/^[0-9A-F]{24}/.test(file)) fs.rmSync(path.join(this.folder, "pg_wal", file))
      }
      write("backup_label", String(rows[0]?.labelfile))
      write("standby.signal", "")
      const { hostname, password, port, username } = new URL(url)
      write(
        "postgresql.auto.conf",
        `primary_conninfo = 'host=${hostname} port=${port} user=${username} password=${password}'\nhot_standby_feedback = on\n`
      )
    } finally {
      await client.end()
    }
  }

  /** Starts it, the first time on a copy of the primary, and waits until it answers. */
  async start(): Promise<void> {
    if (!fs.existsSync(this.folder)) await this.#copy()
    this.#port ||= await Effect.runPromise(freePort)
    const bin = await Effect.runPromise(EmbeddedPostgres.binaries)
    const who = await Effect.runPromise(EmbeddedPostgres.runAs([this.#primary.folder, path.dirname(bin.postgres)]))
    // Like those of the primary; a standby refuses a smaller max_connections.
    const settings = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      max_connections: "400",
      shared_buffers: "64MB",
      jit: "off"
    }
    const { args, command, options } = EmbeddedPostgres.spawnAs(who, bin.postgres, [
      ...["-D", this.folder, "-p", String(this.#port)],
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
    ])
    const log = fs.openSync(`${this.folder}.log`, "a")
    this.#child = spawn(command, [...args], { ...options, stdio: ["ignore", log, log] })
    fs.closeSync(log)
    await until("the replica", () => query(this.url, "SELECT 1").catch(() => undefined))
  }

  /** Sends its postmaster and all of its processes a signal. */
  signal(name: NodeJS.Signals): void {
    const { pid } = this
    const children = spawnSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" }).stdout
    for (const one of [pid, ...children.split("\n").map(Number)]) {
      try {
        if (one > 0) process.kill(one, name)
      } catch {
        // It exited on its own.
      }
    }
  }

  /** Stops it at once: its connections break. */
  async stop(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once("exit", resolve))
    child.kill("SIGINT")
    await ended
  }
}
