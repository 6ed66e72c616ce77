/** A connection pooler between the service and Postgres is refused at the start, with the reason. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect } from "effect"
import { cli, useApp } from "../../support/app.ts"
import { freePort } from "../../support/freePort.ts"
import { until } from "../../support/receiver.ts"

const program = Bun.which("pgbouncer")
const app = useApp([])
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-pgbouncer-"))
const ports = new Map<string, number>()
const children: Array<Bun.Subprocess> = []

/** How PgBouncer treats connections: as installed, and told to drop what it does not know. */
const modes: Readonly<Record<string, string>> = {
  "session mode": "pool_mode = session",
  "session mode that ignores options": "pool_mode = session\nignore_startup_parameters = options,extra_float_digits",
  "transaction mode that ignores options": "pool_mode = transaction\nignore_startup_parameters = options,extra_float_digits"
}

beforeAll(async () => {
  if (program === null) return
  fs.chmodSync(folder, 0o755)
  const { hostname, password, port, username } = new URL(app.databaseUrl)
  for (const [name, settings] of Object.entries(modes)) {
    const listen = await Effect.runPromise(freePort)
    const file = path.join(folder, `${listen}.ini`)
    fs.writeFileSync(
      file,
      `[databases]
* = host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listen}
unix_socket_dir =
auth_type = any
${settings}
`
    )
    fs.chmodSync(file, 0o644)
    // It refuses to run as root.
    children.push(Bun.spawn([program, ...(process.getuid?.() === 0 ? ["-u", "nobody"] : []), file], { stdout: "ignore", stderr: "ignore" }))
    ports.set(name, listen)
  }
})
afterAll(() => {
  for (const child of children) child.kill()
  fs.rmSync(folder, { recursive: true })
})

test.skipIf(program === null)(
  `PgBouncer in any mode is refused at the start${program === null ? " (skipped: pgbouncer is not installed)" : ""}`,
  async () => {
    for (const [name, port] of ports) {
      const url = new URL(app.databaseUrl)
      url.hostname = "127.0.0.1"
      url.port = String(port)
      for (const command of [["start", "--roles", "api"], ["migrate"]]) {
        const { code, stderr } = await until("PgBouncer", async () => {
          const ended = await cli(command, { ...app.env, DATABASE_URL: url.toString() })
          return !ended.stderr.includes("ECONNREFUSED") && ended
        })
        expect([name, command, code, stderr]).toEqual([name, command, 3, expect.stringContaining("expected that of Postgres itself")])
      }
    }
  }
)
