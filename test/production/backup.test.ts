/**
 * deploy/backup.sh and deploy/restore.sh, with the tools of an installed Postgres: what a service on the restored database
 * does, its cursors, and its keys. docs/operations.md, Backing up and restoring. C-9.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { runAs, spawnAs } from "../../src/runtime/embedded/Postgres.ts"
import { cli, useApp } from "../support/app.ts"
import { temporaryFiles } from "../support/files.ts"
import { freePort } from "../support/freePort.ts"
import { outcome } from "../support/languages.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { smallest, transaction } from "../support/records.ts"
import { query } from "../support/replica.ts"
import { servers, urlOf } from "../support/servers.ts"
import { create } from "../support/webhookFixtures.ts"

const DEBIAN = "/usr/lib/postgresql"
const TOOLS = ["pg_dump", "pg_restore", "psql", "initdb", "postgres"]
/** The programs of an installed Postgres: Debian's newest, or those on the PATH. */
const bin = [
  ...(fs.existsSync(DEBIAN) ? fs.readdirSync(DEBIAN) : [])
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => path.join(DEBIAN, version, "bin")),
  path.dirname(Bun.which("postgres") ?? "/")
].find((folder) => TOOLS.every((tool) => fs.existsSync(path.join(folder, tool))))

const FEED = "/v1/event-feed"
/** With characters that a URL encodes and a shell changes. */
const PASSWORD = "p@ss\\n 100%$HOME"
const files = temporaryFiles()
const backup = path.join(files.folder, "backup.dump")
const receiver = useReceiver()
const app = useApp([], () => receiverEnv(receiver))
/** The database that is backed up is on a server of its own, and the restored one on that of the other tests. */
let server: ChildProcess | undefined, url: string, restored: string
/** Who restores: no superuser. */
const restorer = `restorer_${process.pid}`

const script = (name: string, databaseUrl: string, ...args: ReadonlyArray<string>) =>
  outcome([path.resolve(import.meta.dir, "../../deploy", name), ...args], {
    env: { DATABASE_URL: databaseUrl, PATH: `${bin}:${process.env["PATH"]}` }
  })

/** Starts Postgres in a folder and returns the URL of its server. */
const startPostgres = async (folder: string, tools: string): Promise<string> => {
  const cluster = path.join(folder, "cluster")
  fs.mkdirSync(cluster)
  const passwordFile = files.write("password", `${PASSWORD}\n`)
  const who = await Effect.runPromise(runAs([folder]))
  if (who !== undefined) for (const file of [cluster, passwordFile]) fs.chownSync(file, who.uid, who.gid)
  const options = [`--pgdata=${cluster}`, "--username=custody", "--auth=scram-sha-256", `--pwfile=${passwordFile}`]
  const made = spawnAs(who, path.join(tools, "initdb"), [...options, "--encoding=UTF8", "--locale=C"])
  const { status, stderr } = spawnSync(made.command, made.args, { ...made.options, encoding: "utf8" })
  if (status !== 0) throw new Error(stderr)
  const port = await Effect.runPromise(freePort)
  const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"].flatMap((one) => ["-c", one])
  const run = spawnAs(who, path.join(tools, "postgres"), ["-D", cluster, "-p", String(port), ...settings])
  server = spawn(run.command, run.args, { ...run.options, stdio: "ignore" })
  const address = `postgres://custody:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/postgres`
  await until("Postgres", () =>
    query(address, "SELECT 1").then(
      () => true,
      () => false
    )
  )
  return address
}

/** From now on the app's processes and requests use this database. */
const use = async (databaseUrl: string, roles: ReadonlyArray<string>) => {
  await app.main?.end()
  app.databaseUrl = databaseUrl
  app.env = { ...app.env, DATABASE_URL: databaseUrl }
  app.main = await app.start(roles)
}

const why = bin === undefined ? " (skipped: no Postgres with its tools is installed)" : ""
describe.skipIf(bin === undefined)(`the scripts that back up and restore${why}`, () => {
  let key = "",
    secret = "",
    hashes = 0
  const record = (count: number) => app.feed(Array.from({ length: count }, () => transaction("vault_a", ++hashes)))
  const read = (more: string) => app.get(`${FEED}?limit=500${more}`, key)
  const cursorNow = async (): Promise<string> => (await read("&from=now")).json.resumeCursor
  /** How many rows the tables have that are neither partitions nor about running processes. */
  const counts = async (of: string) =>
    Object.fromEntries(
      await Promise.all(
        ["transactions", "vaults", "users", "webhooks", "webhook_secrets", "api_keys", "events", "event_outbox", "audit_log"].map(
          async (table) => [table, (await query(of, `SELECT count(*)::integer AS count FROM ${table}`))[0]?.["count"]] as const
        )
      )
    )

  beforeAll(async () => {
    if (bin === undefined) return
    fs.chmodSync(files.folder, 0o755)
    const own = await startPostgres(files.folder, bin)
    await query(own, "CREATE DATABASE live")
    url = urlOf(own, "live")
    const other = (await servers()).postgres
    await query(other, `CREATE ROLE ${restorer} LOGIN PASSWORD '${restorer}'`)
    await query(other, `CREATE DATABASE restored_${process.pid} OWNER ${restorer}`)
    restored = urlOf(other, `restored_${process.pid}`)
    await use(url, ["api"])
    await app.feed(smallest(), { "x-record-events": "none" })
    key = (await app.key("user_a")).secret
    secret = (await create(app, key, { url: receiver.url("/hook") })).secret
    // No dispatcher runs: their deliveries are still to be made.
    await record(3)
  })
  afterAll(async () => {
    await app.main?.end()
    if (restored !== undefined) {
      await query((await servers()).postgres, `DROP DATABASE restored_${process.pid} WITH (FORCE)`)
      await query((await servers()).postgres, `DROP ROLE ${restorer}`)
    }
    const ended = new Promise((resolve) => (server === undefined ? resolve(0) : server.once("exit", resolve)))
    server?.kill("SIGINT")
    await ended
    files.remove()
  })

  test("a service on a restored database delivers, and refuses cursors from after the backup", async () => {
    const kept = await cursorNow()
    const written = await script("backup.sh", url, backup)
    expect(written).toMatchObject({ code: 0, error: "" })
    expect((fs.statSync(backup).mode & 0o777).toString(8)).toBe("600")
    const before = await counts(url)
    await record(5)
    const inside = (await app.get(`${FEED}?limit=2&after=${kept}`, key)).json.resumeCursor
    const atEnd = await cursorNow()

    const asRestorer = Object.assign(new URL(restored), { username: restorer, password: restorer }).toString()
    expect(await script("restore.sh", asRestorer, backup)).toMatchObject({ code: 0, error: "" })
    expect(await counts(restored)).toEqual(before)
    const doctor = async (masterKey: string) => {
      const { code, stdout } = await cli(["doctor", "--json"], { ...app.env, DATABASE_URL: restored, MASTER_KEY: masterKey })
      const findings: ReadonlyArray<{ readonly subject: string; readonly state: string }> = JSON.parse(stdout).findings
      return [code, findings.find(({ subject }) => subject === "Master key")?.state]
    }
    expect(await doctor(app.env["MASTER_KEY"] ?? "")).toEqual([0, "well"])
    expect(await doctor(randomBytes(32).toString("base64"))).toEqual([3, "fault"])

    await use(restored, ["api", "worker", "dispatcher"])
    await until("the deliveries that were still to be made", () => receiver.to("/hook").length === 3)
    for (const { body, headers } of receiver.to("/hook")) expect(() => new Webhook(secret).verify(body, headers)).not.toThrow()
    const gone = { status: 410, code: "cursor_gone" }
    for (const cursor of [inside, atEnd]) expect((await read(`&after=${cursor}`)).json).toMatchObject(gone)
    await record(7)
    for (const cursor of [inside, atEnd]) {
      const { json } = await read(`&after=${cursor}`)
      expect(json).toMatchObject(gone)
      expect((await read(`&after=${json.oldestCursor}`)).json.data).toHaveLength(3 + 7)
    }
    expect((await read(`&after=${kept}`)).json.data).toHaveLength(7)
  })

  test("a restore refuses a database that has anything in it, and leaves it unchanged", async () => {
    const before = await counts(url)
    expect(await script("restore.sh", url, backup)).toMatchObject({ code: 1, error: expect.stringContaining("is not empty") })
    expect(await counts(url)).toEqual(before)
    await query(url, "CREATE DATABASE nearly")
    const nearly = urlOf(url, "nearly")
    for (const [make, remove] of [
      ["CREATE TYPE status AS ENUM ('a')", "DROP TYPE status"],
      ["CREATE FUNCTION one() RETURNS integer LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION one"],
      ["CREATE SCHEMA other", "DROP SCHEMA other"],
      ["SELECT lo_create(1)", "SELECT lo_unlink(1)"]
    ] as const) {
      await query(nearly, make)
      expect([make, await script("restore.sh", nearly, backup)]).toMatchObject([
        make,
        { code: 1, error: expect.stringContaining("is not empty") }
      ])
      await query(nearly, remove)
    }
    expect(await script("restore.sh", nearly, backup)).toMatchObject({ code: 0 })
  })

  test("a restore that fails leaves the database empty", async () => {
    await query(url, "CREATE DATABASE empty")
    const empty = urlOf(url, "empty")
    const truncated = path.join(files.folder, "truncated.dump")
    fs.writeFileSync(truncated, fs.readFileSync(backup).subarray(0, -2_000))
    expect(await script("restore.sh", empty, truncated)).toMatchObject({ code: 1, error: expect.stringContaining("still empty") })
    const broken = files.write("broken.dump", "no backup")
    expect(await script("restore.sh", empty, broken)).toMatchObject({ code: 1, error: expect.stringContaining("not a backup") })
    expect(await query(empty, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")).toEqual([])
    // So it can be tried again.
    expect(await script("restore.sh", empty, backup)).toMatchObject({ code: 0 })
  })

  test("a backup overwrites nothing, and one that fails leaves no file", async () => {
    const content = fs.readFileSync(backup)
    expect(await script("backup.sh", url, backup)).toMatchObject({ code: 1, error: expect.stringContaining("exists") })
    expect(fs.readFileSync(backup).equals(content)).toBe(true)
    const names = fs.readdirSync(files.folder)
    const absent = path.join(files.folder, "absent.dump")
    expect(await script("backup.sh", urlOf(url, "absent"), absent)).toMatchObject({
      code: 1,
      error: expect.stringContaining("pg_dump failed")
    })
    expect(fs.readdirSync(files.folder)).toEqual(names)
    expect(await script("backup.sh", "", absent)).toMatchObject({ code: 2, error: expect.stringContaining("DATABASE_URL is not set") })
    for (const name of ["backup.sh", "restore.sh"])
      expect(await script(name, url)).toMatchObject({ code: 2, error: expect.stringContaining("name the file") })
  })
})
