/**
 * The real program as a separate process, on free ports and with its own database, driven through HTTP. Stops with the
 * test file.
 */
import { afterAll, beforeAll } from "bun:test"
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect, Layer, ManagedRuntime, Redacted } from "effect"
import pg from "pg"
import { type ApiKey, ApiKeys, type Choice } from "../../src/access/keys/ApiKeys.ts"
import * as Database from "../../src/runtime/database/Database.ts"
import { dropDatabase, freshDatabase, servers } from "./servers.ts"

const root = path.resolve(import.meta.dir, "../..")

/** A record of the custody feed. */
export type Record = { readonly type: string; readonly [field: string]: unknown }

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // Tests read responses field by field; a missing field fails the expectation.
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the test is about
  readonly json: any
}

interface Options {
  readonly key?: string
  readonly body?: unknown
  readonly headers?: { readonly [name: string]: string }
  readonly raw?: string | Uint8Array<ArrayBuffer>
}

/** The origin of an API without a port (api.ts). */
export const ORIGIN = "http://localhost"

/** How to reach a running service. */
export interface Listening {
  /** Sends a request to the public API or to the platform listener. `target` is path and query. */
  readonly send: (to: "api" | "platform", target: string, init?: RequestInit) => Promise<Response>
  readonly end: () => Promise<unknown>
}

/** A running process of the program. */
export interface Process {
  readonly baseUrl: string
  readonly platformUrl: string
  readonly child: ChildProcess
  /** Its output so far. */
  readonly output: () => string
  /** Stops it with a signal and returns its exit code (null if the signal itself killed it). */
  readonly end: (signal?: NodeJS.Signals) => Promise<number | null>
}

/** The file of the program as the tests run it. */
export const PROGRAM = path.join(root, "test/support/testProgram.ts")
/** The file of the program, or of another version of it whose sources are in `cwd`. */
const programIn = (cwd: string): string => (cwd === root ? PROGRAM : "src/main.ts")

/**
 * Starts `custody start` and waits until it is ready; fails with its output if it exits before. With `COLLECT` in the
 * environment its memory can be measured (collect.ts). `cwd` is the root of another version's sources.
 */
export const startProcess = (args: ReadonlyArray<string>, env: { readonly [name: string]: string }, cwd = root): Promise<Process> =>
  new Promise((resolve, reject) => {
    const preload = env["COLLECT"] === undefined ? [] : ["--preload", "./test/support/collect.ts"]
    const child = spawn(process.execPath, [...preload, programIn(cwd), "start", ...args], {
      cwd,
      env: { ...baseEnv(), ...env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let output = "",
      ready = false
    const exited = new Promise<number | null>((done) => child.once("exit", (code) => done(code)))
    const end = (signal: NodeJS.Signals = "SIGTERM") => {
      child.kill(signal)
      return exited
    }
    const read = (chunk: Buffer) => {
      output += chunk.toString()
      if (ready) return
      const line = output.split("\n").find((one) => one.startsWith("{") && one.includes('"message":"ready"'))
      if (line === undefined) return
      ready = true
      const { api = "", platform = "" } = JSON.parse(line)
      resolve({ baseUrl: api, platformUrl: platform, child, output: () => output, end })
    }
    child.stdout?.on("data", read)
    child.stderr?.on("data", read)
    exited.then((code) => {
      if (!ready) reject(new Error(`the program ended with ${code} before it was ready:\n${output}`))
    })
  })

/** The environment without any setting of the program, so that a developer's shell has no influence. */
export const baseEnv = (): { readonly [name: string]: string } => {
  const kept = ["PATH", "HOME", "TMPDIR", "LANG", "USER", "GOPATH", "GOCACHE", "GOFLAGS", "GOPROXY"]
  const runtime = Object.keys(process.env).filter((name) => name.startsWith("BUN_JSC_"))
  return {
    ...Object.fromEntries(
      [...kept, ...runtime].flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name] ?? ""]]))
    ),
    LOG_FORMAT: "json"
  }
}

/** Runs a command of the CLI to its end. `cwd` is the root of another version's sources. */
export const cli = async (args: ReadonlyArray<string>, env: { readonly [name: string]: string }, input?: string, cwd = root) => {
  const child = Bun.spawn([process.execPath, programIn(cwd), ...args], {
    cwd,
    env: { ...baseEnv(), ...env },
    stdin: input === undefined ? "ignore" : new Blob([input]),
    stdout: "pipe",
    stderr: "pipe"
  })
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  return { code, stdout, stderr }
}

/** Repeats a request that is answered with 503, for up to 30 s. */
export const patiently = async <A extends { readonly status: number }>(send: () => Promise<A>): Promise<A> => {
  for (const end = Date.now() + 30_000; ; await Bun.sleep(100)) {
    const answer = await send()
    if (answer.status !== 503 || Date.now() > end) return answer
  }
}

/** Where effects of tests use keys: few connections for all of them, whose name does not count as one of the program's. */
const keysOf = (databaseUrl: string) => {
  const url = new URL(databaseUrl)
  url.searchParams.set("application_name", "test")
  const database = Database.layer(Redacted.make(url.toString()), { ...Database.pools.command, connections: 8 })
  return ManagedRuntime.make(Layer.provide(ApiKeys.layer, database))
}

/** An app under test: its processes, its database, and methods to drive it. */
export class App {
  env: { readonly [name: string]: string } = {}
  databaseUrl = ""
  main: Process | undefined
  /** Whether a request that is answered with 503 is repeated for up to 30 s, as a client would: a busy machine refuses some. */
  patient = true
  /** Sends a request to the main process: to its public API or its platform listener. */
  send: Listening["send"] = (to, target, init) =>
    fetch(`${to === "api" ? this.main?.baseUrl : this.main?.platformUrl}${target}`, { redirect: "manual", ...init })
  /** `fetch` for typed clients of the public API: whatever the origin, the request goes to the main process. */
  readonly fetch = async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url)
    const { headers, method, signal } = request
    return this.send("api", `${pathname}${search}`, {
      headers,
      method,
      signal,
      ...(request.body === null ? {} : { body: await request.text() })
    })
  }
  readonly #processes: Array<Process> = []
  readonly #clients: Array<pg.Client> = []
  readonly #keys = new Map<string, ReturnType<typeof keysOf>>()
  #folder = ""
  #fresh: string | undefined

  async open(roles: ReadonlyArray<string>, env: { readonly [name: string]: string }): Promise<void> {
    const { temporal, temporalUi } = await servers()
    this.#folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-app-"))
    this.databaseUrl = this.#fresh = await freshDatabase()
    this.env = {
      DATABASE_URL: this.databaseUrl,
      TEMPORAL_ADDRESS: temporal,
      TEMPORAL_UI_URL: temporalUi,
      TEMPORAL_TASK_QUEUE: `test-${process.pid}-${path.basename(this.#folder)}`,
      MASTER_KEY: randomBytes(32).toString("base64"),
      PLATFORM_TOKEN: randomBytes(18).toString("hex"),
      DATA_DIR: this.#folder,
      PORT: "0",
      PLATFORM_PORT: "0",
      RATE_LIMIT: "off",
      // Statements, and the events that announce them, only where a test asks for them.
      STATEMENT_HISTORY: "0s",
      ...env
    }
    if (roles.length > 0) this.main = await this.start(roles)
  }

  /** One more process of the same app; `cwd` is the root of another version's sources. */
  async start(roles: ReadonlyArray<string>, env: { readonly [name: string]: string } = {}, cwd?: string): Promise<Process> {
    const started = await startProcess(["--roles", roles.join(",")], { ...this.env, ...env }, cwd)
    this.#processes.push(started)
    return started
  }

  async close(): Promise<void> {
    await Promise.all([
      ...this.#clients.map((client) => client.end().catch(() => {})),
      ...Array.from(this.#keys.values(), (keys) => keys.dispose())
    ])
    await Promise.all(this.#processes.map((one) => (one.child.exitCode === null && one.child.signalCode === null ? one.end() : null)))
    if (this.#fresh !== undefined) await dropDatabase(this.#fresh)
    fs.rmSync(this.#folder, { recursive: true, force: true })
  }

  /** A request to the public API; `body` is sent as JSON. */
  readonly request = (method: string, target: string, options: Options = {}): Promise<Answer> =>
    this.#patiently(() => this.#request(method, target, options))

  #patiently(send: () => Promise<Answer>): Promise<Answer> {
    return this.patient ? patiently(send) : send()
  }

  async #request(method: string, target: string, options: Options): Promise<Answer> {
    const response = await this.send("api", target, {
      method,
      headers: {
        ...(options.key === undefined ? {} : { authorization: `Bearer ${options.key}` }),
        ...(options.body === undefined ? {} : { "content-type": "application/json" }),
        ...options.headers
      },
      ...(options.raw !== undefined ? { body: options.raw } : options.body === undefined ? {} : { body: JSON.stringify(options.body) })
    })
    return answerOf(response)
  }

  get(target: string, key?: string, headers: { readonly [name: string]: string } = {}): Promise<Answer> {
    return this.request("GET", target, { ...(key === undefined ? {} : { key }), headers })
  }

  /** Feeds records over the platform listener, a thousand per request; fails the test if one is rejected. */
  async feed(records: ReadonlyArray<Record>, headers: { readonly [name: string]: string } = {}) {
    const total = { received: 0, changed: 0, unchanged: 0, stale: 0, events: 0 }
    for (let from = 0; from < records.length; from += 1_000) {
      const answer = await this.#patiently(() => this.records(records.slice(from, from + 1_000), headers))
      if (answer.status !== 200) throw new Error(`the feed was refused: ${answer.text}`)
      for (const name of ["received", "changed", "unchanged", "stale", "events"] as const) total[name] += answer.json[name]
    }
    return total
  }

  /** One request of records, whatever its response. */
  async records(records: ReadonlyArray<Record> | string, headers: { readonly [name: string]: string } = {}): Promise<Answer> {
    const body = typeof records === "string" ? records : records.map((record) => JSON.stringify(record)).join("\n")
    return answerOf(
      await this.send("platform", "/platform/v1/records", {
        method: "POST",
        body,
        headers: { authorization: `Bearer ${this.env.PLATFORM_TOKEN}`, "content-type": "application/x-ndjson", ...headers }
      })
    )
  }

  /** A key of a user, created by the CLI's code. Everything is allowed by default. */
  async key(userId: string, choice: Partial<Choice> = {}): Promise<{ readonly secret: string; readonly key: ApiKey }> {
    const made = await this.run(
      Effect.flatMap(ApiKeys, (keys) =>
        keys.create(userId, {
          scopes: ["vault:read", "webhook:read", "webhook:manage"],
          vaultIds: null,
          ipAllowlist: [],
          expiresAt: null,
          label: "test",
          ...choice
        })
      )
    )
    return { secret: Redacted.value(made.secret), key: made.key }
  }

  /** Runs an effect that uses keys against the app's database. */
  run<A, E>(effect: Effect.Effect<A, E, ApiKeys>): Promise<A> {
    const keys = this.#keys.get(this.databaseUrl) ?? keysOf(this.databaseUrl)
    this.#keys.set(this.databaseUrl, keys)
    return keys.runPromise(effect)
  }

  /** Runs SQL in the app's database, to inspect it or to set up what the API cannot. */
  async sql(text: string, values: ReadonlyArray<unknown> = []): Promise<ReadonlyArray<{ readonly [column: string]: unknown }>> {
    let [client] = this.#clients
    if (client === undefined) {
      const fresh = new pg.Client({ connectionString: this.databaseUrl })
      client = fresh
      // A connection that a crash of Postgres closed is replaced.
      fresh.on("error", () => {
        if (this.#clients[0] === fresh) this.#clients.shift()
      })
      await client.connect()
      this.#clients.push(client)
    }
    return (await client.query(text, [...values])).rows
  }

  /** Inserts many rows, without triggers and without checking foreign keys, which would take most of the time. */
  insert(statements: string) {
    return this.sql(`BEGIN; SET LOCAL session_replication_role = replica; ${statements}; COMMIT`)
  }

  /** Every page of a list; fails the test if one is rejected. */
  async pages(target: string, key: string, limit?: number): Promise<ReadonlyArray<Answer["json"]>> {
    const pages: Array<Answer["json"]> = []
    for (let cursor: string | null = null; ; ) {
      const query = [limit === undefined ? "" : `limit=${limit}`, cursor === null ? "" : `cursor=${cursor}`]
        .filter((part) => part !== "")
        .join("&")
      const answer = await this.get(`${target}${query === "" ? "" : `${target.includes("?") ? "&" : "?"}${query}`}`, key)
      if (answer.status !== 200) throw new Error(`${target} answered ${answer.status}: ${answer.text}`)
      pages.push(answer.json)
      cursor = answer.json.pagination.nextCursor
      if (cursor === null) return pages
    }
  }

  /** The rows of every page of a list. */
  async walk(target: string, key: string, limit?: number): Promise<ReadonlyArray<Answer["json"]>> {
    return (await this.pages(target, key, limit)).flatMap(({ data }) => data)
  }
}

const answerOf = async (response: Response): Promise<Answer> => {
  if (response.headers.get("content-type") === "text/event-stream") {
    // It does not end on its own; tests read its content.
    await response.body?.cancel()
    return { status: response.status, headers: response.headers, text: "", json: "" }
  }
  const text = await response.text()
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    json = undefined
  }
  return { status: response.status, headers: response.headers, text, json }
}

/** Settings of the program by name. */
export type Environment = { readonly [name: string]: string }

/** An app for the test file that calls this: opened before its tests, closed after them. `env` may depend on what was opened before it. */
export const useApp = (roles: ReadonlyArray<string> = ["api"], env: Environment | (() => Environment) = {}): App => {
  const app = new App()
  beforeAll(() => app.open(roles, typeof env === "function" ? env() : env))
  afterAll(() => app.close())
  return app
}
