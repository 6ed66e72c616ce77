/**
 * `bun run test [files]`: starts the real servers once, runs every test against them, and ends with a line
 * `N passed, N failed`. Servers and folders are gone afterwards, also when it is interrupted.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect } from "effect"
import * as Process from "../src/embedded/Process.ts"
import { POSTGRES, startServers, TEMPORAL, TEMPORAL_UI } from "./support/servers.ts"

/** How long those that were told to end may take. */
const GRACE_MS = 15_000

// Every folder of the run is in this one, which Postgres passes through as another user.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-run-"))
fs.chmodSync(folder, 0o711)
process.env["TMPDIR"] = folder
const report = path.join(folder, "junit.xml")

let child: ReturnType<typeof Bun.spawn> | undefined
/** Signals what tests started, and says whether anybody was there. */
const signal = (name: NodeJS.Signals | 0): boolean => {
  try {
    return child !== undefined && process.kill(-child.pid, name)
  } catch {
    // Nobody of the group is left.
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

/** Ends the group of the tests, by force where it does not end by itself. */
const endGroup = async () => {
  signal("SIGTERM")
  for (const end = Date.now() + GRACE_MS; signal(0) && Date.now() < end; ) await Bun.sleep(50)
  signal("SIGKILL")
}

/** Ends servers that tests left, which run in sessions of their own: whatever a pid file names that runs in the folder. */
const sweep = async () => {
  const pidFiles = [...new Bun.Glob("**/run/*.pid").scanSync({ cwd: folder, absolute: true, dot: true })]
  await Promise.all(
    pidFiles.map(async (pidFile) => {
      const pid = Process.livePid(pidFile, folder)
      if (pid !== undefined) await Effect.runPromiseExit(Process.stop({ pidFile, stopSignal: "SIGINT" }, pid))
    })
  )
}

/** The exit code of the tests; undefined when they were interrupted before they began. */
const run = async (): Promise<number | undefined> => {
  const servers = await startServers(interruption.signal).catch((error) => {
    if (!interruption.signal.aborted) throw error
  })
  if (servers === undefined) return undefined
  try {
    if (interruption.signal.aborted) return undefined
    child = Bun.spawn(
      [process.execPath, "test", "--timeout", "60000", "--reporter=junit", `--reporter-outfile=${report}`, ...process.argv.slice(2)],
      {
        cwd: path.resolve(import.meta.dir, ".."),
        // A group of its own, so that what tests started can be ended with them.
        detached: true,
        stdio: ["ignore", "inherit", "inherit"],
        env: { ...process.env, [POSTGRES]: servers.postgres, [TEMPORAL]: servers.temporal, [TEMPORAL_UI]: servers.temporalUi }
      }
    )
    return await child.exited
  } finally {
    await endGroup()
    await servers.close()
  }
}

/** Runs the tests and says how they went; the exit code. */
const main = async (): Promise<number> => {
  const code = await run()
  const [tests, failures, skipped] = [count("tests"), count("failures"), count("skipped")]
  // A run that broke before it could report is a failure, whatever the report says.
  const failed = failures === 0 && code !== 0 ? 1 : failures
  if (skipped > 0) console.log(`${skipped} skipped`)
  console.log(`${tests - failures - skipped} passed, ${failed} failed`)
  return code === 0 && failed === 0 ? 0 : 1
}

const count = (name: string) => {
  try {
    return Number(new RegExp(`<testsuites[^>]*\\b${name}="(\\d+)"`).exec(fs.readFileSync(report, "utf8"))?.[1] ?? 0)
  } catch {
    return 0
  }
}
let code = 1
try {
  code = await main()
} finally {
  await sweep()
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}
process.exit(code)
