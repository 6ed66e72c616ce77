/** How commands end: a meaningful exit code, and one message that says what to do. */
import { describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { steps } from "../../../src/runtime/database/Migrations.ts"
import { baseEnv, cli, PROGRAM, useApp } from "../../support/app.ts"
import { smallest } from "../../support/records.ts"
import { freshDatabase, servers } from "../../support/servers.ts"

const app = useApp([])
const run = (args: ReadonlyArray<string>, env: { readonly [name: string]: string } = {}) => cli(args, { ...app.env, ...env })

/** A loopback port in use. */
const occupied = (): Promise<{ readonly port: string; readonly free: () => void }> =>
  new Promise((resolve) => {
    const server = net.createServer()
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve({ port: String(typeof address === "object" && address !== null ? address.port : 0), free: () => server.close() })
    })
  })

describe("exit code 2: wrong usage", () => {
  test("an unknown command, option or role, or a missing argument", async () => {
    const lines = [
      ["nonsense"],
      ["start", "--nonsense"],
      ["start", "--roles", "api,butler"],
      ["load"],
      ["keys", "revoke"],
      ["keys", "create", "--all-vaults"],
      ["keys", "create", "--user", "user_a", "--all-vaults"]
    ]
    const ends = await Promise.all(lines.map((args) => run(args)))
    expect(ends.map(({ code }, index) => [lines[index], code])).toEqual(lines.map((args) => [args, 2]))
    for (const { stderr, stdout } of ends) expect(`${stderr}${stdout}`.trim()).not.toBe("")
    expect(ends[2]?.stderr).toContain("“butler” is not a role; the roles are api, worker, dispatcher")
  })

  test("--help exits with code 0 and names every command", async () => {
    const help = await run(["--help"])
    expect(help.code).toBe(0)
    for (const name of ["start", "migrate", "load", "keys"]) expect(help.stdout).toContain(name)
  })
})

test("exit code 1: what is printed once cannot be written", async () => {
  const loaded = await cli(
    ["load", "--no-events", "-"],
    app.env,
    smallest()
      .map((record) => JSON.stringify(record))
      .join("\n")
  )
  expect(loaded.code).toBe(0)
  for (const [args, expected] of [
    [["keys", "create", "--user", "user_a", "--scopes", "vault:read", "--all-vaults"], "custody keys revoke key_"],
    [["users", "invite", "user_a"], "run the command again"]
  ] as const) {
    // Nobody reads the pipe.
    const child = Bun.spawn(["bash", "-o", "pipefail", "-c", '"$@" | true', "-", process.execPath, PROGRAM, ...args], {
      env: { ...baseEnv(), ...app.env },
      stdout: "ignore",
      stderr: "pipe"
    })
    const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited])
    expect([code, stderr]).toEqual([1, expect.stringContaining(expected)])
  }
})

describe("exit code 3: a setting is missing or invalid", () => {
  test("each invalid setting is one line with name, value and expectation, without secrets", async () => {
    const { code, stderr, stdout } = await run(["start"], {
      PORT: "eighty",
      RATE_LIMIT: "fast",
      DATABASE_URL: "mysql://user:hunter2hunter2@db/x",
      MASTER_KEY: "c2hvcnQgc2VjcmV0",
      PLATFORM_TOKEN: "tooshort-s3cret",
      TRUSTED_PROXIES: "10.0.0.0/8, everyone",
      WEBHOOK_DISABLE_AFTER: "5 days",
      WEBHOOK_RETRY_SCHEDULE: "0s,40d",
      WEBHOOK_PROBE_SCHEDULE: "0s",
      WEBHOOK_SOURCE_ADDRESSES: "203.0.113.0/33",
      LOG_LEVEL: "loud"
    })
    expect([code, stdout]).toEqual([3, ""])
    expect(stderr.trim().split("\n").sort()).toEqual(
      [
        "DATABASE_URL: read a value of 32 characters, expected a URL that starts with postgres:// or postgresql://.",
        "LOG_LEVEL: read “loud”, expected one of debug, info, warning, error.",
        "MASTER_KEY: read a value of 16 characters, expected 32 bytes in base64, as `openssl rand -base64 32` prints them.",
        "PLATFORM_TOKEN: read a value of 15 characters, expected at least 16 characters.",
        "PORT: read “eighty”, expected a whole number from 0 to 65535.",
        "RATE_LIMIT: read “fast”, expected a rate such as 50/1s burst 100, or off.",
        "TRUSTED_PROXIES: read “10.0.0.0/8, everyone”, expected a CIDR such as 203.0.113.0/24 or 2001:db8::/32 (at “everyone”).",
        ...[
          ["WEBHOOK_RETRY_SCHEDULE", "0s,40d", "0"],
          ["WEBHOOK_PROBE_SCHEDULE", "0s", "1s"]
        ].map(
          ([name, given, shortest]) =>
            `${name}: read “${given}”, expected 1 to 50 comma-separated waits of at least ${shortest}, such as 1s,2s,5m, and of at most 30 days in total: the log has a delivery for 31.`
        ),
        "WEBHOOK_SOURCE_ADDRESSES: read “203.0.113.0/33”, expected a CIDR such as 203.0.113.0/24 or 2001:db8::/32, with at most 32 bits (at “203.0.113.0/33”).",
        "WEBHOOK_DISABLE_AFTER: read “5 days”, expected a duration such as 90d, 12h, 5m, 30s or 250ms."
      ].sort()
    )
  })

  test("a data directory that cannot be written", async () => {
    const { code, stderr } = await run(["start", "--roles", "api"], { DATA_DIR: path.join(PROGRAM, "data") })
    expect([code, stderr]).toEqual([
      3,
      `DATA_DIR: read “${path.join(PROGRAM, "data")}”, expected a folder that can be written (ENOTDIR).\n`
    ])
  })

  test("a logo of another type, an unreadable one and one above 100 KB are refused", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-logo-"))
    const large = path.join(folder, "large.png")
    fs.writeFileSync(large, new Uint8Array(100 * 1024 + 1))
    const files = ["logo.gif", path.join(folder, "missing.svg"), large]
    const ends = await Promise.all(files.map((file) => run(["start", "--roles", "api"], { PORTAL_LOGO_FILE: file })))
    fs.rmSync(folder, { recursive: true })
    expect(ends.map(({ code, stderr }) => [code, stderr.trim()])).toEqual([
      [3, "PORTAL_LOGO_FILE: read “logo.gif”, expected a file that ends with .svg or .png."],
      [3, `PORTAL_LOGO_FILE: read “${files[1]}”, expected a file that can be read.`],
      [3, `PORTAL_LOGO_FILE: read “${large}”, expected at most 102400 bytes, not 102401.`]
    ])
  })

  test("settings that require each other are checked", async () => {
    const [tls, ports, wildcard, master, token] = await Promise.all([
      run(["start"], { TLS_CERT_FILE: "/etc/ssl/cert.pem" }),
      run(["start"], { PORT: "18099", PLATFORM_PORT: "18099" }),
      run(["start", "--roles", "api"], { HOST: "localhost", PORT: "18099", PLATFORM_PORT: "18099" }),
      run(["start"], { MASTER_KEY: "" }),
      run(["start", "--roles", "api"], { PLATFORM_TOKEN: "" })
    ])
    expect([tls.code, tls.stderr]).toEqual([3, "TLS_KEY_FILE: not set, expected a value because TLS_CERT_FILE is set.\n"])
    for (const { code, stderr } of [ports, wildcard])
      expect([code, stderr]).toEqual([3, "PLATFORM_PORT: read “18099”, expected another port than PORT's.\n"])
    expect(master.code).toBe(3)
    expect(master.stderr).toContain("MASTER_KEY: not set, expected 32 bytes in base64 because DATABASE_URL is set.")
    expect([token.code, token.stderr]).toEqual([
      3,
      expect.stringContaining("PLATFORM_TOKEN: not set, expected at least 16 characters because DATABASE_URL is set.")
    ])
  })
})

describe("exit codes 130 and 143: interrupted", () => {
  test("a command that a signal ends before it was done does not succeed", async () => {
    const asked = Promise.withResolvers<void>()
    const silent = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => {
        asked.resolve()
        return new Promise<Response>(() => {})
      }
    })
    try {
      const args = ["verify", "--api", `http://127.0.0.1:${silent.port}`, "--entity", "entity_a"]
      const command = Bun.spawn([process.execPath, PROGRAM, ...args], {
        cwd: path.resolve(import.meta.dir, "../../.."),
        env: { ...baseEnv(), CUSTODY_API_KEY: "cds_none" },
        stderr: "pipe"
      })
      await asked.promise
      command.kill("SIGTERM")
      expect([await command.exited, await new Response(command.stderr).text()]).toEqual([
        143,
        "The command was interrupted before it was done.\n"
      ])
    } finally {
      await silent.stop(true)
    }
  })
})

describe("exit code 5: a dependency is unavailable, or a port is in use", () => {
  test("a port in use is reported with its setting", async () => {
    const { free, port } = await occupied()
    try {
      for (const setting of ["PORT", "PLATFORM_PORT"]) {
        const { code, stderr } = await run(["start", "--roles", "api"], { [setting]: port })
        const message = stderr.split("\n").find((line) => line.startsWith("Port")) ?? stderr
        expect([setting, code]).toEqual([setting, 5])
        expect(message).toContain(`Port ${port}`)
        expect(message).toMatch(new RegExp(`set ${setting} to another port`))
      }
    } finally {
      free()
    }
  })

  test.skipIf(process.platform !== "linux")("a port that is in use only on another address can be used", async () => {
    const { free, port } = await occupied()
    try {
      const started = await app.start(["api"], { HOST: "127.0.0.2", PORT: port })
      expect(started.baseUrl).toBe(`http://127.0.0.2:${port}`)
      expect(await started.end()).toBe(0)
    } finally {
      free()
    }
  })

  // Waits 15 seconds for Postgres, beside the tests that follow.
  test.concurrent("an unreachable Postgres is reported in plain words, without the password", async () => {
    const commands = [["migrate"], ["keys", "list"], ["start", "--roles", "api"]]
    const url = `postgres://someone:hunter2hunter2@127.0.0.1:1/custody`
    const ends = await Promise.all(commands.map((command) => run(command, { DATABASE_URL: url })))
    expect(ends.map(({ code }, index) => [commands[index], code])).toEqual(commands.map((command) => [command, 5]))
    for (const { stderr } of ends) {
      expect(stderr).toContain("Postgres cannot be reached")
      expect(stderr).toContain("DATABASE_URL")
      expect(stderr).not.toContain("hunter2")
    }
  })

  test.concurrent("start --no-migrate on a database without the schema lists the missing migrations", async () => {
    const url = new URL(await freshDatabase())
    url.pathname = "/postgres"
    const { code, stderr } = await run(["start", "--roles", "api", "--no-migrate"], { DATABASE_URL: url.toString() })
    expect(code).toBe(5)
    expect(stderr).toContain("The database lacks the migrations 0001_baseline")
    expect(stderr).toContain("custody migrate")
  })
})

describe("custody migrate", () => {
  test.concurrent("applies missing migrations once and lists them, even when two run at once", async () => {
    const { postgres } = await servers()
    const name = `migrated_${process.pid}_${Date.now()}`
    await app.sql(`CREATE DATABASE ${name}`)
    const url = new URL(postgres)
    url.pathname = `/${name}`
    const ends = await Promise.all([run(["migrate"], { DATABASE_URL: url.toString() }), run(["migrate"], { DATABASE_URL: url.toString() })])
    expect(ends.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ""],
      [0, ""]
    ])
    const applied: ReadonlyArray<string> = ends.flatMap(({ stdout }) => JSON.parse(stdout).applied)
    expect([...applied].sort()).toEqual(Object.keys(steps).sort())
    expect(JSON.parse((await run(["migrate"], { DATABASE_URL: url.toString() })).stdout)).toEqual({ applied: [] })
  })
})
