/** A separate Postgres server, to crash, to fill, to give another clock, and to restart at the same address. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import { DataDir } from "../../src/runtime/embedded/DataDir.ts"
import * as EmbeddedPostgres from "../../src/runtime/embedded/Postgres.ts"
import { alive } from "../../src/runtime/embedded/Process.ts"
import { until } from "./receiver.ts"
import { settingsOf } from "./servers.ts"

/** Processes by their parents. Linux only. */
const childrenOf = (pid: number): ReadonlyArray<number> =>
  fs.readdirSync("/proc").flatMap((entry) => {
    try {
      const stat = fs.readFileSync(`/proc/${entry}/stat`, "utf8")
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === pid ? [Number(entry)] : []
    } catch {
      return []
    }
  })

export class PostgresServer {
  /** `DATA_DIR` of the server; its cluster is in `postgres` below. */
  readonly folder: string
  #scope: Scope.CloseableScope | undefined
  #port = "0"
  url = ""

  constructor(folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-postgres-"))) {
    this.folder = folder
  }

  get cluster(): string {
    return path.join(this.folder, "postgres")
  }

  /** Starts it and waits until it responds; `env` is added to its environment. */
  async start(env: { readonly [name: string]: string } = {}): Promise<void> {
    const scope = await Effect.runPromise(Scope.make())
    this.#scope = scope
    // The server inherits this process's environment.
    Object.assign(process.env, env)
    try {
      const url = await Effect.runPromise(
        EmbeddedPostgres.acquire.pipe(
          Effect.provide(Layer.provideMerge(DataDir.layer, settingsOf(this.folder, [["EMBEDDED_POSTGRES_PORT", this.#port]]))),
          Scope.extend(scope)
        )
      )
      this.url = Redacted.value(url)
      this.#port = new URL(this.url).port
    } finally {
      for (const name of Object.keys(env)) delete process.env[name]
    }
  }

  /** The process id of its postmaster. */
  get pid(): number {
    return Number(fs.readFileSync(path.join(this.folder, "run", "postgres.pid"), "utf8"))
  }

  /** Whether its first process is there. */
  get runs(): boolean {
    try {
      return alive(this.pid)
    } catch {
      return false
    }
  }

  /** Stops it without a checkpoint, as `pg_ctl stop -m immediate` does: the next start recovers. */
  async crash(): Promise<void> {
    const pid = this.pid
    process.kill(pid, "SIGQUIT")
    await until("the end of Postgres", () => !alive(pid))
    await this.stop()
  }

  /** Kills all of its processes, as a power failure does. */
  async kill(): Promise<void> {
    const pid = this.pid
    for (const one of [pid, ...childrenOf(pid)]) {
      try {
        process.kill(one, "SIGKILL")
      } catch {
        // It exited on its own.
      }
    }
    await until("the end of Postgres", () => !alive(pid))
    await this.stop()
  }

  /** Stops it gracefully; does nothing if it has exited. */
  async stop(): Promise<void> {
    if (this.#scope !== undefined) await Effect.runPromise(Scope.close(this.#scope, Exit.void))
    this.#scope = undefined
  }

  async close(): Promise<void> {
    await this.stop()
    fs.rmSync(this.folder, { recursive: true, force: true })
  }
}
