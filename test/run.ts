/**
 * `bun run test [files]`: starts the real servers once, runs every test against them, several files at a time, and ends
 * with a line `N passed, N failed`. Servers and folders are gone afterwards, also when it is interrupted.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect } from "effect"
import * as Process from "../src/runtime/embedded/Process.ts"
import { helm } from "../tools/helm.ts"
import { buildProgram, PROGRAM } from "./support/program.ts"
import { POSTGRES, prepareTemplate, type Servers, startServers, TEMPORAL, TEMPORAL_UI } from "./support/servers.ts"
import { concurrency, type Group, groupsOf } from "./support/testFiles.ts"
import { failuresIn, type Report, readReport, sumOf } from "./support/testReport.ts"

const MEMORY = "/dev/shm"
/** Minimum of free shared memory, and of free memory in all, for a run's folder in memory. A run takes at most 1.2 GB. */
const SHARED_BYTES = 8 * 2 ** 30,
  FREE_BYTES = 14 * 2 ** 30
/** When a test or a hook that hangs is ended, in ms. */
const TIMEOUT_MS = 300_000
/** One more group begins when more than this share of the CPU was idle for this many ms: on a slow machine fewer run at once. */
const IDLE = 0.1,
  MEASURED_MS = 5_000
/** How long test processes may take to end after a signal. */
const GRACE_MS = 15_000

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
/** The long forms run the program as it ships. */
const long = ["CUSTODY_FAULTS", "CUSTODY_SOAK", "CUSTODY_KILLS"].some((name) => process.env[name] !== undefined)
/** Memory in use before a program collects garbage for the first time, in bytes: after most have ended, instead of as they start. */
const laterCollection = { BUN_JSC_largeHeapSize: String(128 * 2 ** 20) }
/** Most programs of a run live for seconds, and the optimizing compiler would take a sixth of the run's CPU for them. */
const notOptimized = { BUN_JSC_useDFGJIT: "0" }

/** The process groups of the tests that run. */
const groups = new Set<number>()
/** Sends a signal to a group and returns whether any of its processes is left. */
const signal = (group: number, name: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(-group, name)
  } catch {
    return false
  }
}
const signalAll = (name: NodeJS.Signals) => {
  for (const group of groups) signal(group, name)
}
const interruption = new AbortController()
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => {
    interruption.abort()
    signalAll(name)
    // A browser's driver takes the signal for its browser only, and the tests would go on.
    setTimeout(() => signalAll("SIGKILL"), GRACE_MS).unref()
  })
}

/** What was printed about each failed test, for the end of the run's output: a log may keep only that. */
const reasons: Array<string> = []

/** Ends a group of the tests, by force where it does not end by itself. */
const endGroup = async (group: number) => {
  signal(group, "SIGTERM")
  for (const end = Date.now() + GRACE_MS; signal(group, 0) && Date.now() < end; ) await Bun.sleep(50)
  signal(group, "SIGKILL")
  groups.delete(group)
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

/** Runs `bun test` in a separate process group; if others run beside it, its output is held back until it ends. */
const runGroup = async ({ args, optimized }: Group, name: string, servers: Servers, alone: boolean): Promise<Report> => {
  const report = path.join(folder, `${name}.xml`)
  const output = path.join(folder, `${name}.txt`)
  const out = alone ? "inherit" : fs.openSync(output, "w")
  const child = Bun.spawn(
    [process.execPath, "test", "--timeout", String(TIMEOUT_MS), "--reporter=junit", `--reporter-outfile=${report}`, ...args],
    {
      cwd: path.resolve(import.meta.dir, ".."),
      // A separate group, so that everything that the tests started can be ended with them.
      detached: true,
      stdio: ["ignore", out, out],
      env: {
        ...process.env,
        ...(long ? {} : laterCollection),
        ...(long || optimized ? {} : notOptimized),
        [POSTGRES]: servers.postgres,
        [TEMPORAL]: servers.temporal,
        [TEMPORAL_UI]: servers.temporalUi
      }
    }
  )
  groups.add(child.pid)
  try {
    const code = await child.exited
    const read = readReport(report, Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6)
    // A process that crashed before it could report is a failure, whatever its report says.
    return code === 0 || read.failures > 0 ? read : { ...read, failures: 1, failed: [`${args.join(" ")}: ended with ${code}`] }
  } finally {
    await endGroup(child.pid)
    if (typeof out === "number") {
      fs.closeSync(out)
      const text = fs.readFileSync(output, "utf8")
      process.stdout.write(text)
      reasons.push(...failuresIn(text))
    }
  }
}

/** The share of CPU time that is idle during the next seconds. */
const idleShare = async (): Promise<number> => {
  const idle = () => os.cpus().reduce((sum, { times }) => sum + times.idle, 0)
  const [before, startedAt] = [idle(), performance.now()]
  await Bun.sleep(MEASURED_MS)
  return (idle() - before) / (performance.now() - startedAt) / os.cpus().length
}

/** Runs every group, a few at a time; undefined when the run was interrupted before it began. */
const run = async (): Promise<ReadonlyArray<Report> | undefined> => {
  const { busy, last, waiting } = groupsOf(process.argv.slice(2))
  const alone = busy.length + waiting.length + last.length === 1
  process.env[PROGRAM] = await buildProgram(path.join(folder, "program"))
  const servers = await startServers(interruption.signal).catch((error) => {
    if (!interruption.signal.aborted) throw error
  })
  if (servers === undefined) return undefined
  try {
    if (!alone) await prepareTemplate(servers.postgres)
    // Compiling takes all cores for minutes, once: not beside tests that measure times. A failure is the tests' to report.
    if (busy.some(({ args }) => args.some((file) => file.endsWith("helm.test.ts")))) await helm().catch(() => undefined)
    const reports: Array<Report> = []
    const queue = [...busy]
    let begun = 0
    const runOne = async (group: Group) => {
      reports.push(await runGroup(group, `group-${++begun}`, servers, alone))
    }
    const runAll = async () => {
      for (let next = queue.shift(); next !== undefined && !interruption.signal.aborted; next = queue.shift()) await runOne(next)
    }
    const all = Promise.all([...waiting.map(runOne), ...Array.from({ length: concurrency }, runAll)])
    const more: Array<Promise<void>> = []
    while (queue.length > 0 && !interruption.signal.aborted) {
      const idle = await Promise.race([idleShare(), all.then(() => 0)])
      // What idles now may be busy later: at most as many again.
      const next = idle > IDLE && groups.size < waiting.length + 2 * concurrency ? queue.shift() : undefined
      if (next !== undefined) more.push(runOne(next))
    }
    await Promise.all([all, ...more])
    for (const group of last) if (!interruption.signal.aborted) await runOne(group)
    reasons.unshift(...servers.lost())
    return interruption.signal.aborted && reports.length === 0 ? undefined : reports
  } finally {
    await servers.close()
  }
}

/** Runs the tests and prints the result; returns the exit code. */
const main = async (): Promise<number> => {
  const reports = await run()
  const { failed, failures: known, files, skipped, tests } = sumOf(reports ?? [])
  // A run that was interrupted is a failure, whatever its reports say.
  const failures = known === 0 && interruption.signal.aborted ? 1 : known
  if (files.length > 10) {
    console.log("\nslowest files:")
    for (const { cpuSeconds, file, seconds } of files.slice(0, 10))
      console.log(`${seconds.toFixed(1).padStart(7)} s, ${cpuSeconds.toFixed(1).padStart(5)} s of CPU  ${file}`)
  }
  if (failed.length > 0) console.log(`\nfailed:\n${[...reasons, ...failed.map((name) => `  ${name}`)].join("\n")}`)
  if (skipped > 0) console.log(`${skipped} skipped`)
  console.log(`${Math.max(0, tests - failures - skipped)} passed, ${failures} failed`)
  return reports !== undefined && failures === 0 ? 0 : 1
}

let code = 1
try {
  code = await main()
} finally {
  await sweep()
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}
process.exit(code)
