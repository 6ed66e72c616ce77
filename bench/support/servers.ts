/** The servers and processes that a benchmark runs against, in a data folder of its own, ended when it ends. */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import pg from "pg"
import { baseEnv } from "../../test/support/app.ts"

const root = path.resolve(import.meta.dir, "../..")
const children: Array<ChildProcess> = []

/** A folder for this run, removed afterwards. */
export const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-bench-"))

/** Environment of a process of the service: free ports, no rate limit, quiet logs, and no database settings of the shell. */
export const environment = (extra: Record<string, string> = {}): Record<string, string> => ({
  ...baseEnv(),
  DATA_DIR: path.join(folder, "data"),
  PORT: "0",
  PLATFORM_PORT: "0",
  EMBEDDED_POSTGRES_PORT: "0",
  EMBEDDED_TEMPORAL_PORT: "0",
  EMBEDDED_TEMPORAL_UI_PORT: "0",
  RATE_LIMIT: "off",
  LOG_LEVEL: "info",
  ...extra
})

/** Runs the program's CLI to its end and returns what it printed. */
export const custody = async (args: ReadonlyArray<string>, env: Record<string, string>): Promise<string> => {
  const child = Bun.spawn([process.execPath, "src/main.ts", ...args], { cwd: root, env, stderr: "pipe" })
  const [output, errors, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  if (code !== 0) throw new Error(`custody ${args.join(" ")} ended with ${code}: ${errors}`)
  return output
}

/**
 * Starts a process and waits for the first line of its output that `ready` takes. Returns what `ready` made of it.
 * `bunArgs` are options of the runtime itself.
 */
export const start = <A>(
  script: string,
  args: ReadonlyArray<string>,
  env: Record<string, string>,
  ready: (line: string) => A | undefined,
  bunArgs: ReadonlyArray<string> = []
): Promise<A & { readonly process: ChildProcess }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...bunArgs, script, ...args], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] })
    children.push(child)
    let rest = "",
      all = ""
    const read = (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) {
        all = `${all}${line}\n`.slice(-4_000)
        const value = ready(line)
        if (value !== undefined) resolve({ ...value, process: child })
      }
    }
    child.stdout?.on("data", read)
    child.stderr?.on("data", read)
    child.on("exit", (code) => reject(new Error(`${script} ended with ${code}:\n${all}`)))
  })

/** The ports that a `custody start` announces once it is ready; 0 for listeners that its roles do not have. */
export const announced = (line: string): { readonly port: number; readonly platformPort: number } | undefined => {
  if (!line.startsWith("{") || !line.includes('"message":"ready"')) return undefined
  const { api, platform }: { readonly api?: string; readonly platform?: string } = JSON.parse(line)
  const portOf = (url: string | undefined) => (url === undefined ? 0 : Number(new URL(url).port))
  return { port: portOf(api), platformPort: portOf(platform) }
}

/** Where the embedded servers of a data directory in this run's folder are; `data` is that of `environment()`. */
export const embedded = (directory = "data"): { readonly databaseUrl: string; readonly temporalAddress: string } =>
  JSON.parse(fs.readFileSync(path.join(folder, directory, "run", "servers.json"), "utf8"))

/** A client of the database of a data directory. */
export const database = async (directory = "data"): Promise<pg.Client> => {
  const { databaseUrl } = embedded(directory)
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  return client
}

/** Runs the load generator in a separate process. Fails if a request does, unless `mayFail`. */
export const load = async (ask: Record<string, unknown>) => {
  const child = Bun.spawn([process.execPath, path.join(import.meta.dir, "load.ts"), JSON.stringify(ask)], { stderr: "inherit" })
  const result: { requests: number; failed: number; perSecond: number; p50Ms: number; p99Ms: number } = JSON.parse(
    await new Response(child.stdout).text()
  )
  if (result.failed > 0 && ask["mayFail"] !== true) throw new Error(`${result.failed} of ${result.requests} requests failed`)
  return result
}

/** Ends a process that was started here. */
export const stop = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    // The service stops by itself within its grace period; a floor does not.
    const hard = setTimeout(() => child.kill("SIGKILL"), 20_000)
    child.once("exit", () => {
      clearTimeout(hard)
      resolve()
    })
    child.kill("SIGTERM")
  })

const closers: Array<() => Promise<void>> = []
/** Runs this at the end, after the processes have ended. */
export const atEnd = (close: () => Promise<void>): void => {
  closers.push(close)
}

const endAll = async (): Promise<void> => {
  await Promise.all(children.map(stop))
  for (const close of closers.reverse()) await close()
  fs.rmSync(folder, { recursive: true, force: true })
}

let ending: Promise<void> | undefined
/** Ends every process that was started here, and removes the folder. */
export const end = (): Promise<void> => {
  ending ??= endAll()
  return ending
}
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143]
] as const)
  process.once(signal, () => void end().finally(() => process.exit(code)))

/** The middle value; of an even number of values the mean of the two in the middle. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const [low = 0, high = 0] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]]
  return (low + high) / 2
}
