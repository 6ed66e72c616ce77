import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"
import pg from "pg"
import { baseEnv, cli, PROGRAM, type Record, useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { balance, smallest, transaction, vault } from "../../support/records.ts"

const app = useApp()

beforeAll(() => app.feed(smallest()))

/** Writes records to a file of the app's folder and returns its path. */
const write = (name: string, records: ReadonlyArray<Record | string>): string => {
  const file = path.join(app.env.DATA_DIR ?? "", name)
  fs.writeFileSync(file, records.map((record) => (typeof record === "string" ? record : JSON.stringify(record))).join("\n"))
  return file
}
const many = (from: number, count: number) => Array.from({ length: count }, (_, index) => transaction("vault_a", from + index))
const stored = async (from: number, count: number) => {
  const hashes = many(from, count).map(({ hash }) => hash)
  const [{ rows } = {}] = await app.sql("SELECT count(*)::int AS rows FROM transactions WHERE hash = ANY($1)", [hashes])
  return rows
}

describe("custody load", () => {
  test("loads a file of any number of records and prints only the counts, as JSON", async () => {
    const done = await cli(
      ["load", write("good.ndjson", ["", ...many(0, 2_500), "  ", balance("vault_a", "ethereum/native", "1"), ""])],
      app.env
    )
    expect([done.code, done.stderr]).toEqual([0, ""])
    expect(JSON.parse(done.stdout)).toEqual({ received: 2_501, changed: 2_501, unchanged: 0, stale: 0, staleLines: [], events: 2_501 })
    expect(await stored(0, 2_500)).toBe(2_500)
  })

  test("loads standard input with -, and records no events with --no-events", async () => {
    const [{ events } = {}] = await app.sql("SELECT count(*) AS events FROM events")
    const input = many(5_000, 3)
      .map((record) => `${JSON.stringify(record)}\r\n`)
      .join("")
    const done = await cli(["load", "--no-events", "-"], app.env, input)
    expect(done.stderr).toBe(
      "3 transactions, vaults and balances have no occurredAt and are dated now: an earlier change that is sent later, with its time, counts as old news.\n"
    )
    expect([done.code, JSON.parse(done.stdout)]).toEqual([
      0,
      { received: 3, changed: 3, unchanged: 0, stale: 0, staleLines: [], events: 0 }
    ])
    expect(await app.sql("SELECT count(*) AS events FROM events")).toEqual([{ events }])
  })

  test("stops at an invalid record with its line number and keeps the batches before it", async () => {
    const records: Array<Record | string> = ["", ...many(10_000, 1_400)]
    records[1_203] = { ...transaction("vault_a", 11_202), amount: "1.5e3" }
    records[1_210] = "{broken"
    const file = write("bad.ndjson", records)
    const done = await cli(["load", file], app.env)
    expect(done.code).toBe(4)
    expect(done.stderr.trim().split("\n")).toEqual([
      "Applied up to line 1001. Resume with --from 1002.",
      "line 1204: amount must be a decimal string: digits, at most 78 before and 78 after the point",
      "line 1211: is not JSON"
    ])
    expect(JSON.parse(done.stdout)).toEqual({ received: 1_000, changed: 1_000, unchanged: 0, stale: 0, staleLines: [], events: 1_000 })
    expect(await stored(10_000, 1_400)).toBe(1_000)
    // The corrected file continues where the load stopped; loading it from the start is harmless as well, if it names nothing twice.
    const corrected = write("bad.ndjson", ["", ...many(10_000, 1_400)])
    const again = await cli(["load", corrected, "--from", "1002"], app.env)
    expect([again.code, JSON.parse(again.stdout)]).toEqual([
      0,
      { received: 400, changed: 400, unchanged: 0, stale: 0, staleLines: [], events: 400 }
    ])
    const whole = await cli(["load", corrected], app.env)
    expect([whole.code, JSON.parse(whole.stdout)]).toEqual([
      0,
      { received: 1_400, changed: 0, unchanged: 1_400, stale: 0, staleLines: [], events: 0 }
    ])
  })

  test("ended by a signal, prints the last line that it applied", async () => {
    // So many that a quick machine is not done before the signal.
    const COUNT = 60_000
    const file = write("long.ndjson", many(100_000, COUNT))
    const [{ rows: before } = {}] = await app.sql("SELECT count(*)::int AS rows FROM transactions")
    const loaded = async () => Number((await app.sql("SELECT count(*)::int AS rows FROM transactions"))[0]?.["rows"]) - Number(before)
    const child = Bun.spawn([process.execPath, PROGRAM, "load", file], {
      cwd: path.resolve(import.meta.dir, "../../.."),
      env: { ...baseEnv(), ...app.env },
      stdout: "pipe",
      stderr: "pipe"
    })
    await until("the first batches", async () => (await loaded()) >= 2_000)
    child.kill("SIGINT")
    const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
    const rows = await loaded()
    expect(code).toBe(130)
    expect(rows).toBeLessThan(COUNT)
    expect(JSON.parse(stdout).received).toBe(rows)
    expect(stderr.trim().split("\n").slice(-2)).toEqual([
      `Applied up to line ${rows}. Resume with --from ${rows + 1}.`,
      "The command was interrupted before it was done."
    ])
  })

  test("without a terminal, prints the last line that it applied as it goes", async () => {
    const child = Bun.spawn([process.execPath, PROGRAM, "load", "-"], {
      cwd: path.resolve(import.meta.dir, "../../.."),
      env: { ...baseEnv(), ...app.env },
      stdin: "pipe",
      stdout: "ignore",
      stderr: "pipe"
    })
    child.stdin.write(
      many(200_000, 1_500)
        .map((record) => `${JSON.stringify(record)}\n`)
        .join("")
    )
    await child.stdin.flush()
    const printed = await child.stderr.getReader().read()
    child.kill("SIGKILL")
    expect(await child.exited).toBe(137)
    expect(Buffer.from(printed.value ?? []).toString()).toBe("Applied up to line 1000 so far.\n")
    expect(await stored(200_000, 1_500)).toBe(1_000)
  })

  test("prints which lines are in doubt if Postgres is lost during a batch", async () => {
    const lock = new pg.Client({ connectionString: app.databaseUrl })
    await lock.connect()
    await lock.query("BEGIN; SELECT 1 FROM event_streams FOR UPDATE")
    const loading = cli(["load", write("lost.ndjson", many(60_000, 1_500)), "--from", "101"], app.env)
    const waiting =
      "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'custody-command' AND wait_event_type = 'Lock'"
    await until("the batch to wait", async () => (await app.sql(`SELECT 1 ${waiting}`)).length > 0)
    await app.sql(`SELECT pg_terminate_backend(pid) ${waiting}`)
    const lost = await loading
    await lock.end()
    expect([lost.code, lost.stderr.split("\n")[0]]).toEqual([5, "It is unknown whether lines 101 to 1100 were applied."])
    expect([lost.stderr.includes("Resume with"), JSON.parse(lost.stdout).received, await stored(60_000, 1_500)]).toEqual([false, 0, 0])
  })

  test("reads the encodings that the feed reads, and refuses others", async () => {
    const label = "Z\u00fcrich \u2028 \u2029"
    const text = `\uFEFF${JSON.stringify(vault("vault_z", "entity_a", { label }))}\r\n${JSON.stringify(balance("vault_z", "ethereum/native", "3"))}`
    const done = await cli(["load", write("marked.ndjson", [text])], app.env)
    expect([done.code, done.stderr, JSON.parse(done.stdout).changed]).toEqual([0, "", 2])
    expect(await app.sql("SELECT label FROM vaults WHERE id = 'vault_z'")).toEqual([{ label }])
    const file = write("latin.ndjson", [])
    fs.writeFileSync(file, Buffer.from(`\n${JSON.stringify(vault("vault_z", "entity_a", { label: "Z\u00fcrich" }))}\n`, "latin1"))
    const refused = await cli(["load", file], app.env)
    expect([refused.code, refused.stderr.trim()]).toEqual([4, `${file} cannot be read: line 2 is not UTF-8.`])
    expect(await app.sql("SELECT label FROM vaults WHERE id = 'vault_z'")).toEqual([{ label }])
  })

  test("names a file that cannot be read: exit code 4", async () => {
    const [absent, folder] = await Promise.all([
      cli(["load", "/nowhere/at-all.ndjson"], app.env),
      cli(["load", app.env.DATA_DIR ?? ""], app.env)
    ])
    expect([absent.code, folder.code]).toEqual([4, 4])
    expect(absent.stderr).toContain("/nowhere/at-all.ndjson cannot be read")
  })

  test("shows a progress bar on a terminal", async () => {
    const file = write("bar.ndjson", many(20_000, 1_500))
    let screen = ""
    const { promise: closed, resolve: close } = Promise.withResolvers<void>()
    const child = Bun.spawn([process.execPath, PROGRAM, "load", file], {
      cwd: path.resolve(import.meta.dir, "../../.."),
      env: { ...baseEnv(), ...app.env },
      terminal: {
        cols: 100,
        rows: 20,
        data: (_, bytes) => {
          screen += Buffer.from(bytes).toString()
        },
        exit: () => close()
      }
    })
    expect(await child.exited).toBe(0)
    await closed
    expect(screen).toContain("1500 records, 1500 changed")
    expect(screen).toContain("█")
    expect(screen).toContain("100%")
    expect(screen).toContain('{"received":1500')
  })
})
