/** The service on a machine without Postgres and Temporal: it starts its own, keeps their data, and leaves nothing behind. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { lockAlone } from "../../../src/runtime/embedded/fileLock.ts"
import { alive } from "../../../src/runtime/embedded/Process.ts"
import { baseEnv, cli, type Process, startProcess } from "../../support/app.ts"
import { processesOf } from "../../support/processes.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction } from "../../support/records.ts"
import { cache } from "../../support/servers.ts"

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-embedded-"))
const env = {
  DATA_DIR: folder,
  PORT: "0",
  PLATFORM_PORT: "0",
  EMBEDDED_POSTGRES_PORT: "0",
  EMBEDDED_TEMPORAL_PORT: "0",
  EMBEDDED_TEMPORAL_UI_PORT: "0"
}
const started: Array<Process> = []

beforeAll(() => {
  // Without `temporal` on PATH, the one built for the other tests is used.
  const built = path.join(cache, "bin", "temporal")
  fs.mkdirSync(path.join(folder, "bin"))
  // As in a copy that other users can read.
  fs.mkdirSync(path.join(folder, "log"), { mode: 0o755 })
  fs.writeFileSync(path.join(folder, "log", "temporal.log"), "", { mode: 0o644 })
  fs.chmodSync(folder, 0o755)
  if (fs.existsSync(built)) fs.symlinkSync(built, path.join(folder, "bin", "temporal"))
})

afterAll(async () => {
  for (const one of started) if (one.child.exitCode === null && one.child.signalCode === null) await one.end()
  fs.rmSync(folder, { recursive: true, force: true })
})

const start = async (more: { readonly [name: string]: string } = {}, args: ReadonlyArray<string> = []) => {
  const one = await startProcess(args, { ...env, ...more })
  started.push(one)
  return one
}
const run = (...parts: ReadonlyArray<string>) => path.join(folder, "run", ...parts)
const json = (file: string) => JSON.parse(fs.readFileSync(file, "utf8"))
const pid = (name: string) => Number(fs.readFileSync(run(`${name}.pid`), "utf8"))

const left = () => processesOf(folder)

/** The addresses on which a process listens for TCP connections, from /proc. */
const listenersOf = (process: number): ReadonlyArray<string> => {
  const sockets = fs.readdirSync(`/proc/${process}/fd`).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(fs.readlinkSync(`/proc/${process}/fd/${fd}`))?.[1] ?? []
    } catch {
      // Closed meanwhile.
      return []
    }
  })
  const rows = ["tcp", "tcp6"].flatMap((table) => fs.readFileSync(`/proc/${process}/net/${table}`, "utf8").trim().split("\n").slice(1))
  return rows.flatMap((row) => {
    const [, local = "", , state = "", , , , , , inode = ""] = row.trim().split(/\s+/)
    if (state !== "0A" || !sockets.includes(inode)) return []
    const address = local.split(":")[0] ?? ""
    // IPv4 is one number in the machine's byte order; IPv6 is printed as it is.
    return address.length === 8 ? [[...Buffer.from(address, "hex")].reverse().join(".")] : [address]
  })
}

const feed = (process: Process, records: ReadonlyArray<unknown>) =>
  fetch(`${process.platformUrl}/platform/v1/records`, {
    method: "POST",
    body: JSON.stringify(records),
    headers: {
      authorization: `Bearer ${fs.readFileSync(path.join(folder, "platform-token"), "utf8").trim()}`,
      "content-type": "application/json"
    }
  })
/** A page, requested again while a busy machine answers 503. */
const get = (process: Process, target: string, secret: string) =>
  until("a page", async () => {
    const answer = await fetch(`${process.baseUrl}${target}`, { headers: { authorization: `Bearer ${secret}` } })
    return (
      answer.status !== 503 &&
      (answer.json() as Promise<{ data: ReadonlyArray<{ hash: string }>; pagination: { nextCursor: string | null } }>)
    )
  })
const list = "/v1/vaults/vault_a/transactions?limit=1"

/** Steps that run in order, each from where the previous one stopped. */
let service: Process
let secret = ""
let cursor: string | null = ""

describe.skipIf(process.platform !== "linux")("embedded mode", () => {
  test("starts after a start that was killed at any moment", async () => {
    for (const after of [300, 700, 1_400]) {
      const child = Bun.spawn([process.execPath, "src/main.ts", "start"], {
        cwd: path.resolve(import.meta.dir, "../../.."),
        env: { ...baseEnv(), ...env },
        stdio: ["ignore", "ignore", "ignore"]
      })
      await Bun.sleep(after)
      child.kill("SIGKILL")
      await child.exited
    }
    service = await start()
  })

  test("writes where its servers run, and makes secrets readable by their owner only", async () => {
    expect(json(run("servers.json"))).toEqual({
      databaseUrl: expect.stringMatching(/^postgres:\/\/custody:\w+@127\.0\.0\.1:\d+\/custody$/),
      temporalAddress: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      temporalUi: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/)
    })
    for (const role of ["api", "worker", "dispatcher"]) expect(pid(role)).toBe(service.child.pid ?? 0)
    for (const server of ["postgres", "temporal"]) expect(fs.existsSync(`/proc/${pid(server)}`)).toBe(true)
    for (const file of ["master-key", "platform-token", "postgres-password", "run/servers.json"]) {
      expect([file, (fs.statSync(path.join(folder, file)).mode & 0o077).toString(8)]).toEqual([file, "0"])
    }
    // No process of the folder, the embedded servers included, has a secret on its command line.
    expect(left().length).toBeGreaterThan(1)
    for (const file of ["master-key", "platform-token", "postgres-password"]) {
      const secret = fs.readFileSync(path.join(folder, file), "utf8").trim()
      expect(left().filter((line) => line.includes(secret))).toEqual([])
    }
  })

  test("keeps DATA_DIR unreadable for other users, including files that were readable before the start", () => {
    const open: Array<string> = []
    const look = (at: string) => {
      for (const entry of fs.readdirSync(at, { withFileTypes: true })) {
        const file = path.join(at, entry.name)
        if (entry.isSymbolicLink()) continue
        if ((fs.statSync(file).mode & 0o077) !== 0) open.push(file)
        // Postgres protects its own directory by that directory's mode.
        if (entry.isDirectory() && entry.name !== "postgres") look(file)
      }
    }
    look(folder)
    expect(open).toEqual([])
    // Other users can at most traverse to Postgres.
    expect(fs.statSync(folder).mode & 0o066).toBe(0)
    expect(fs.existsSync(path.join(folder, "temporal.db"))).toBe(true)
  })

  test("binds Temporal, which has no authentication, to loopback only, and the doctor reports it", async () => {
    const listening = listenersOf(pid("temporal"))
    expect(listening.length).toBeGreaterThanOrEqual(2)
    expect(listening.filter((address) => address !== "127.0.0.1")).toEqual([])
    const { stdout } = await cli(["doctor", "--json"], env)
    const found = JSON.parse(stdout).findings.find(({ subject }: { subject: string }) => subject === "Embedded Temporal")
    expect(found).toMatchObject({ state: "well", says: expect.stringContaining("loopback only") })
  })

  test("shares its database with the command line through DATA_DIR", async () => {
    expect((await feed(service, [...smallest(), transaction("vault_a", 1), transaction("vault_a", 2)])).status).toBe(200)
    const made = await cli(["keys", "create", "--user", "user_a", "--scopes", "vault:read", "--all-vaults"], env)
    expect([made.code, made.stderr]).toEqual([0, ""])
    secret = JSON.parse(made.stdout).secret
    const page = await get(service, list, secret)
    expect(page.data).toHaveLength(1)
    cursor = page.pagination.nextCursor
  })

  test("reports the port in use to a second service and keeps the first running", async () => {
    const taken = new URL(service.baseUrl).port
    const second = await cli(["start"], { ...env, PORT: taken })
    expect(second.code).toBe(5)
    expect(second.stderr).toContain(`Port ${taken}`)
    expect((await get(service, list, secret)).data).toHaveLength(1)
  })

  test("takes over the servers after kill -9, and leaves no process after a graceful stop", async () => {
    const servers = { postgres: pid("postgres"), temporal: pid("temporal") }
    expect(await service.end("SIGKILL")).toBeNull()
    for (const id of Object.values(servers)) expect(fs.existsSync(`/proc/${id}`)).toBe(true)

    service = await start()
    expect({ postgres: pid("postgres"), temporal: pid("temporal") }).toEqual(servers)
    expect((await get(service, list, secret)).data).toHaveLength(1)
    expect((await get(service, `${list}&cursor=${cursor}`, secret)).data).toHaveLength(1)

    expect(await service.end("SIGTERM")).toBe(0)
    expect(left()).toEqual([])
    for (const file of ["api.pid", "worker.pid", "dispatcher.pid", "postgres.pid", "temporal.pid"]) {
      expect([file, fs.existsSync(run(file))]).toEqual([file, false])
    }
  })

  test("names the setting of an embedded server's port that is in use", async () => {
    const holder = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } })
    try {
      const ends = []
      for (const setting of ["EMBEDDED_POSTGRES_PORT", "EMBEDDED_TEMPORAL_UI_PORT"]) {
        ends.push([setting, await cli(["start"], { ...env, [setting]: String(holder.port) })] as const)
      }
      for (const [setting, { code, stderr }] of ends) {
        expect([setting, code]).toEqual([setting, 5])
        expect(stderr).toContain(`Port ${holder.port} is in use by another program. Free it, or set ${setting} to another port`)
      }
      expect(left()).toEqual([])
    } finally {
      holder.stop(true)
    }
  })

  test("stops a server that is ready if its start fails afterwards", async () => {
    fs.rmSync(run("servers.json"))
    fs.mkdirSync(run("servers.json"))
    const { code, stderr } = await cli(["start"], env)
    fs.rmdirSync(run("servers.json"))
    expect([code, stderr]).toEqual([3, expect.stringContaining("expected a folder that can be written (EISDIR)")])
    expect(left()).toEqual([])
  })

  test("replaces a Postgres whose start was killed before its process id was recorded", async () => {
    service = await start()
    const unrecorded = pid("postgres")
    for (const file of ["postgres.pid", "servers.json"]) fs.rmSync(run(file))
    await service.end("SIGKILL")
    expect(alive(unrecorded)).toBe(true)
    service = await start()
    expect(alive(unrecorded)).toBe(false)
    expect(await service.end("SIGTERM")).toBe(0)
    expect(left()).toEqual([])
  })

  test("keeps servers that a process uses when others end", async () => {
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      service = await start()
      const other = await start({}, ["--roles", "api"])
      const servers = { postgres: pid("postgres"), temporal: pid("temporal") }
      expect(await service.end(signal)).toBe(signal === "SIGKILL" ? null : 0)
      expect((await cli(["keys", "list", "--user", "user_a"], env)).code).toBe(0)
      expect({ postgres: pid("postgres"), temporal: pid("temporal") }).toEqual(servers)
      expect((await get(other, list, secret)).data).toHaveLength(1)
      expect(other.output()).not.toContain("The embedded")
      expect(await other.end("SIGTERM")).toBe(0)
      expect(left()).toEqual([])
    }
  })

  test("stops its servers at a signal, also while another process holds the lock", async () => {
    service = await start()
    const lock = lockAlone(run("start.lock"))
    const ended = service.end("SIGTERM")
    // It waits for the lock and does not give up.
    expect(await Promise.race([ended, Bun.sleep(3_000)])).toBeUndefined()
    lock?.close()
    expect(await ended).toBe(0)
    expect(left()).toEqual([])
  })

  test("reports a server that was killed, and starts it again with the program", async () => {
    service = await start()
    await service.end("SIGKILL")
    // This one takes the servers over.
    service = await start()
    process.kill(pid("postgres"), "SIGKILL")
    await until("the report", () => service.output().includes("The embedded postgres server has ended: restart all programs"))
    expect(await service.end("SIGTERM")).toBe(0)
    service = await start()
    expect((await get(service, list, secret)).data).toHaveLength(1)
    expect(await service.end("SIGTERM")).toBe(0)
    expect(service.output()).not.toContain("The embedded")
    expect(left()).toEqual([])
  })

  test("finds all its data after everything was killed at once", async () => {
    service = await start()
    expect((await feed(service, [transaction("vault_a", 3)])).status).toBe(200)
    for (const id of [service.child.pid ?? 0, pid("postgres"), pid("temporal")]) process.kill(id, "SIGKILL")
    await until("the end of every process", () => left().length === 0)

    service = await start()
    const page = await get(service, "/v1/vaults/vault_a/transactions", secret)
    expect(page.data.map(({ hash }) => Number(hash)).sort()).toEqual([1, 2, 3])
    // The same master key and the same Temporal state, on new ports.
    expect((await get(service, `${list}&cursor=${cursor}`, secret)).data).toHaveLength(1)
    expect(await service.end("SIGINT")).toBe(0)
    expect(left()).toEqual([])
  })
})
