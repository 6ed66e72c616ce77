/**
 * `bun run test [files]`: starts the real servers once, runs every test against them, and ends with a line
 * `N passed, N failed`. Servers and folders are gone afterwards, also when it is interrupted.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { POSTGRES, startServers, TEMPORAL, TEMPORAL_UI } from "./support/servers.ts"

const report = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "custody-report-")), "junit.xml")
const servers = await startServers()
const files = process.argv.slice(2)
const child = Bun.spawn([process.execPath, "test", "--timeout", "60000", "--reporter=junit", `--reporter-outfile=${report}`, ...files], {
  cwd: path.resolve(import.meta.dir, ".."),
  // A group of its own, so that what tests started can be ended with them.
  detached: true,
  stdio: ["ignore", "inherit", "inherit"],
  env: { ...process.env, [POSTGRES]: servers.postgres, [TEMPORAL]: servers.temporal, [TEMPORAL_UI]: servers.temporalUi }
})
const end = (signal: NodeJS.Signals) => {
  try {
    process.kill(-child.pid, signal)
  } catch {
    // Nobody of the group is left.
  }
}
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => end(signal))
const code = await child.exited
end("SIGTERM")
await servers.close()

const count = (name: string) => {
  try {
    return Number(new RegExp(`<testsuites[^>]*\\b${name}="(\\d+)"`).exec(fs.readFileSync(report, "utf8"))?.[1] ?? 0)
  } catch {
    return 0
  }
}
const [tests, failures, skipped] = [count("tests"), count("failures"), count("skipped")]
fs.rmSync(path.dirname(report), { recursive: true, force: true })
// A run that broke before it could report is a failure, whatever the report says.
const failed = failures === 0 && code !== 0 ? 1 : failures
if (skipped > 0) console.log(`${skipped} skipped`)
console.log(`${tests - failures - skipped} passed, ${failed} failed`)
process.exit(code === 0 && failed === 0 ? 0 : 1)
