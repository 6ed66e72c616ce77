/** A connection pooler between the service and Postgres is refused at the start, and one before a replica is not used, with the reason. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect } from "effect"
import { cli, useApp } from "../../support/app.ts"
import { freePort } from "../../support/freePort.ts"
import { PostgresServer } from "../../support/postgres.ts"
import { until } from "../../support/receiver.ts"
import { Replica } from "../../support/replica.ts"

const program = Bun.which("pgbouncer")
const skipped = program === null ? " (skipped: pgbouncer is not installed)" : ""
const app = useApp([])
const primary = new PostgresServer()
const replica = new Replica(primary)
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-pgbouncer-"))
const children: Array<Bun.Subprocess> = []

/** How PgBouncer treats connections: as installed, and told to drop what it does not know. */
const modes: Readonly<Record<string, string>> = {
  "session mode": "pool_mode = session",
  "session mode that ignores options": "pool_mode = session\nignore_startup_parameters = options,extra_float_digits",
  "transaction mode that ignores options": "pool_mode = transaction\nignore_startup_parameters = options,extra_float_digits"
}

/** Starts PgBouncer before a server and returns its URL. */
const bouncing = async (to: string, settings: string): Promise<string> => {
  const { hostname, password, port, username } = new URL(to)
  const listen = await Effect.runPromise(freePort)
  const file = path.join(folder, `${listen}.ini`)
  fs.writeFileSync(
    file,
    `[databases]
* = host=${hostname} port=${port} user=${username}${password === "" ? "" : ` password=${decodeURIComponent(password)}`}
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
  children.push(
    Bun.spawn([program ?? "", ...(process.getuid?.() === 0 ? ["-u", "nobody"] : []), file], { stdout: "ignore", stderr: "ignore" })
  )
  const url = new URL(to)
  url.hostname = "127.0.0.1"
  url.port = String(listen)
  return url.toString()
}

beforeAll(() => fs.chmodSync(folder, 0o755))
afterAll(async () => {
  for (const child of children) child.kill()
  fs.rmSync(folder, { recursive: true })
  await replica.stop()
  await primary.close()
})

/** What the doctor says of a dependency. */
const findingOf = async (name: string, env: typeof app.env) => {
  const { code, stdout } = await cli(["doctor", "--json"], env)
  return [code, JSON.parse(stdout).findings.find(({ subject }: { subject: string }) => subject === name)?.says]
}

test.skipIf(program === null)(`PgBouncer in any mode is refused at the start${skipped}`, async () => {
  for (const [name, settings] of Object.entries(modes)) {
    const env = { ...app.env, DATABASE_URL: await bouncing(app.databaseUrl, settings) }
    for (const command of [["start", "--roles", "api"], ["migrate"]]) {
      const { code, stderr } = await until("PgBouncer", async () => {
        const ended = await cli(command, env)
        return !ended.stderr.includes("ECONNREFUSED") && ended
      })
      expect([name, command, code, stderr]).toEqual([name, command, 3, expect.stringContaining("expected that of Postgres itself")])
    }
    expect([name, ...(await findingOf("Postgres", env))]).toEqual([name, 3, "It is behind a connection pooler."])
  }
})

test.skipIf(program === null)(`a replica behind PgBouncer in any mode is not used${skipped}`, async () => {
  await primary.start()
  expect((await cli(["migrate"], { ...app.env, DATABASE_URL: primary.url })).code).toBe(0)
  await replica.start()
  for (const [name, settings] of Object.entries(modes)) {
    const env = { ...app.env, DATABASE_URL: primary.url, DATABASE_READ_URL: await bouncing(replica.url, settings) }
    const started = await app.start(["api"], env)
    const { replica: says } = await until("an answer of PgBouncer", async () => {
      const { dependencies } = (await (await fetch(`${started.platformUrl}/health/ready`)).json()) as {
        readonly dependencies: { readonly replica: string }
      }
      return /not responded|cannot be reached/.test(dependencies.replica) ? undefined : dependencies
    })
    expect([name, says]).toEqual([name, "The read replica is not used. It is behind a connection pooler"])
    expect([name, ...(await findingOf("Read replica", env))]).toEqual([name, 3, "It is behind a connection pooler, so it is not used."])
    await started.end()
  }
})
