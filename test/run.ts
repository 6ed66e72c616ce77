/**
 * `bun run test [files] [--option=value]`: starts the real servers once, runs the tests against them with `bun test`, several files at a time,
 * and ends with a line `N passed, N failed`. Tests that measure durations, in test/measured, run afterwards, one file at a
 * time. Servers and folders are gone afterwards, also when it is interrupted.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect } from "effect"
import * as Process from "../src/runtime/embedded/Process.ts"
import { helm } from "../tools/helm.ts"
import { POSTGRES, prepareTemplate, type Servers, startServers, TEMPORAL, TEMPORAL_UI } from "./support/servers.ts"
import { failuresIn, type Report, readReport, sumOf } from "./support/testReport.ts"

const root = path.resolve(import.meta.dir, "..")
const MEMORY = "/dev/shm"
/** Minimum of free shared memory, and of free memory in all, for a run's folder in memory. A run takes at most 1.2 GB. */
const SHARED_BYTES = 8 * 2 ** 30,
  FREE_BYTES = 14 * 2 ** 30
/** When a test or a hook that hangs is ended, in ms. */
const TIMEOUT_MS = 300_000
/** How long test processes may take to end after a signal. */
const GRACE_MS = 15_000
/** Whether the long forms of the tests run: each needs the machine for itself. */
const long = ["CUSTODY_FAULTS", "CUSTODY_SOAK", "CUSTODY_KILLS"].some((name) => process.env[name] !== undefined)
/** Files that run at once: most wait part of the time. */
const PARALLEL = long ? 1 : Math.min(6, os.availableParallelism() * 2)

/**
 * Where the run's folder is made: in memory, if there is plenty and programs may run from it. Every test makes a database of
 * hundreds of files, and a disk that is slow for seconds holds up all services at once.
 */
const base = (): string => {
  try {
    const { bavail, bsize } = fs.statfsSync(MEMORY)
    const mount = fs
      .readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .find((line) => line.split(" ")[1] === MEMORY)
    if (bavail * bsize >= SHARED_BYTES && os.freemem() >= FREE_BYTES && mount?.includes("noexec") === false) return MEMORY
  } catch {
    // Another operating system.
  }
  return os.tmpdir()
}

// Every folder of the run is in this one, which Postgres passes through as another user.
const folder = fs.mkdtempSync(path.join(base(), "custody-run-"))
fs.chmodSync(folder, 0o711)
// Otherwise the disk may still be writing what was just installed, which holds up the first services.
if (!folder.startsWith(MEMORY)) Bun.spawnSync(["sync"])
process.env["TMPDIR"] = folder

/** The process group of the tests that run. */
let group: number | undefined
/** Sends a signal to it and returns whether any of its processes is left. */
const signal = (name: NodeJS.Signals | 0): boolean => {
  try {
    return group !== undefined && process.kill(-group, name)
  } catch {
    return false
  }
}
const interruption = new AbortController()
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => {
    interruption.abort()
    signal(name)
    // A browser's driver takes the signal for its browser only, and the tests would go on.
    setTimeout(() => signal("SIGKILL"), GRACE_MS).unref()
  })
}

/** Ends what the tests started, by force where it does not end by itself. */
const endGroup = async () => {
  signal("SIGTERM")
  for (const end = Date.now() + GRACE_MS; signal(0) && Date.now() < end; ) await Bun.sleep(50)
  signal("SIGKILL")
  group = undefined
}

/** Ends servers that tests left running in sessions of their own: those named by a pid file in the run's folder. */
const sweep = async () => {
  const pidFiles = [...new Bun.Glob("**/run/*.pid").scanSync({ cwd: folder, absolute: true, dot: true })]
  await Promise.all(
    pidFiles.map(async (pidFile) => {
      const pid = Process.livePid(pidFile, folder)
      if (pid !== undefined) await Effect.runPromiseExit(Process.stop({ pidFile, stopSignal: "SIGINT" }, pid))
    })
  )
}

/** What was printed about each failed test, for the end of the run's output: a log may keep only that. */
const reasons: Array<string> = []

/** Runs `bun test` with these arguments in a process group of its own and reads its report. */
const bunTest = async (args: ReadonlyArray<string>, servers: Servers): Promise<Report> => {
  const report = path.join(folder, "report.xml")
  fs.rmSync(report, { force: true })
  const child = Bun.spawn(
    [process.execPath, "test", "--timeout", String(TIMEOUT_MS), "--reporter=junit", `--reporter-outfile=${report}`, ...args],
    {
      cwd: root,
      // A separate group, so that everything that the tests started can be ended with them.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, [POSTGRES]: servers.postgres, [TEMPORAL]: servers.temporal, [TEMPORAL_UI]: servers.temporalUi }
    }
  )
  group = child.pid
  let output = ""
  const print = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      process.stdout.write(chunk)
      output += decoder.decode(chunk, { stream: true })
    }
  }
  const printing = Promise.all([print(child.stdout), print(child.stderr)])
  const code = await child.exited
  await endGroup()
  await printing
  reasons.push(...failuresIn(output))
  const read = readReport(report)
  // A process that crashed before it could report is a failure, whatever its report says.
  return code === 0 || read.failures > 0 ? read : { ...read, failures: 1, failed: [`bun test ${args.join(" ")}: ended with ${code}`] }
}

/** Test files as `bun test` selects them by arguments, which are parts of paths; every file without arguments. */
const filesOf = (args: ReadonlyArray<string>): ReadonlyArray<string> =>
  [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].filter(
    (file) => args.length === 0 || args.some((arg) => file.includes(path.relative(root, path.resolve(root, arg))))
  )

/** Runs the tests; undefined when the run was interrupted before it began. */
const run = async (): Promise<ReadonlyArray<Report> | undefined> => {
  const args = process.argv.slice(2)
  const files = filesOf(args.filter((arg) => !arg.startsWith("-")))
  const { measured = [], others = [] } = Object.groupBy(files, (file) => (file.startsWith("test/measured/") ? "measured" : "others"))
  /** The options of the run, as far as this way of running takes them: only several processes at once have timings. */
  const optionsOf = (how: ReadonlyArray<string>) =>
    args.filter((arg) => arg.startsWith("-") && (how.length > 0 || arg !== "--update-timings"))
  const servers = await startServers(interruption.signal).catch((error) => {
    if (!interruption.signal.aborted) throw error
  })
  if (servers === undefined) return undefined
  try {
    await prepareTemplate(servers.postgres)
    // Compiling takes all cores for minutes, once: not beside tests that measure times. A failure is the tests' to report.
    if (others.some((file) => file.endsWith("helm.test.ts"))) await helm().catch(() => undefined)
    const reports: Array<Report> = []
    // Golden files are written by one process. A worker keeps its modules from file to file, which loads them once.
    const parallel =
      others.length === 1 || PARALLEL === 1 || process.env["UPDATE_GOLDEN"] === "1"
        ? []
        : [`--parallel=${PARALLEL}`, "--no-isolate", `--timings=${path.join(root, "test/timings.json")}`]
    for (const [some, how] of [
      [others, parallel],
      [measured, []]
    ] as const)
      if (some.length > 0 && !interruption.signal.aborted)
        reports.push(await bunTest([...how, ...optionsOf(how), ...some.map((file) => `./${file}`)], servers))
    reasons.unshift(...servers.lost())
    return reports
  } finally {
    await servers.close()
  }
}

/** Runs the tests and prints the result; returns the exit code. */
const main = async (): Promise<number> => {
  const reports = await run()
  const { failed, failures: known, files, skipped, tests } = sumOf(reports ?? [])
  // A run that was interrupted, or had no tests, is a failure, whatever its reports say.
  const failures = known === 0 && (interruption.signal.aborted || tests === 0) ? 1 : known
  if (files.length > 10) {
    console.log("\nslowest files:")
    for (const { file, seconds } of files.slice(0, 10)) console.log(`${seconds.toFixed(1).padStart(7)} s  ${file}`)
  }
  if (failed.length > 0) console.log(`\nfailed:\n${[...reasons, ...failed.map((name) => `  ${name}`)].join("\n")}`)
  if (skipped > 0) console.log(`${skipped} skipped`)
  console.log(`${Math.max(0, tests - failures - skipped)} passed, ${failures} failed`)
  return failures === 0 ? 0 : 1
}

let code = 1
try {
  code = await main()
} finally {
  await sweep()
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}
process.exit(code)
