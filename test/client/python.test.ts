/**
 * The Python client as its users have it: built, installed, type-checked, and run against the service, with the examples of its
 * README and of docs/client.md as they stand.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect } from "effect"
import { cli, useApp } from "../support/app.ts"
import { codeBlocks, documentText } from "../support/document.ts"
import { freePort } from "../support/freePort.ts"
import { outcome, python, run } from "../support/languages.ts"
import { cutOff } from "../support/raw.ts"
import { type Received, receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { balance, smallest, transaction, user, vault } from "../support/records.ts"
import { useTampering } from "../support/tampering.ts"

const source = path.resolve(import.meta.dir, "../../clients/python")
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-python-"))
const site = path.join(folder, "site")

/** The build backend that the package pins. */
const [backend = ""] = /hatchling==[\d.]+/.exec(documentText("clients/python/pyproject.toml")) ?? []
const { interpreter, without } = await python(["httpx==0.28.1", backend, "mypy==2.4.1", "cryptography==48.0.0"])

const [firstCall = "", errors = "", webhook = "", copying = "", verify = ""] = codeBlocks(
  documentText("clients/python/README.md"),
  "python"
)
const examples = {
  firstCall,
  errors,
  webhook,
  copying,
  verify,
  quickStart: codeBlocks(documentText("docs/guides/quick-start.md"), "python").join("\n"),
  readme: codeBlocks(documentText("README.md"), "python").join("\n"),
  mirror: codeBlocks(documentText("docs/guides/paging.md"), "python").join("\n"),
  year: codeBlocks(documentText("docs/guides/year-end.md"), "python").join("\n")
}

const receiver = useReceiver()
// Its worker seals nothing by itself: only when a test says so.
const app = useApp(["api", "worker", "dispatcher"], () => ({ ...receiverEnv(receiver), STATEMENT_HISTORY: "7d", STATEMENT_DELAY: "30d" }))
const seal = async () => expect((await cli(["statements", "seal"], { ...app.env, STATEMENT_DELAY: "6h" })).code).toBe(0)
let key = ""
const environment = () => ({
  PYTHONPATH: site,
  PYTHONDONTWRITEBYTECODE: "1",
  MYPY_CACHE_DIR: path.join(folder, "mypy"),
  CUSTODY_URL: app.main?.baseUrl ?? "",
  CUSTODY_API_KEY: key,
  CUSTODY_PLATFORM_URL: app.main?.platformUrl ?? "",
  CUSTODY_PLATFORM_TOKEN: app.env["PLATFORM_TOKEN"] ?? "",
  CUSTODY_HOOK_URL: receiver.url("/python")
})
const proxy = useTampering(app)
const children = new Set<ReturnType<typeof Bun.spawn>>()
/** Starts an example. */
const start = (name: keyof typeof examples, env: { readonly [name: string]: string }) => {
  const child = Bun.spawn([interpreter, `${name}.py`], {
    cwd: folder,
    env: { ...process.env, ...environment(), ...env },
    stdout: "ignore",
    // Each request to the webhook is logged there.
    stderr: "ignore"
  })
  children.add(child)
  return child
}

beforeAll(async () => {
  if (without !== "") return
  await app.feed([...smallest(), ...Array.from({ length: 250 }, (_, index) => transaction("vault_a", index, { amount: String(index) }))])
  key = (await app.key("user_a")).secret
  await seal()
  // Built from a copy, so that the repository stays unchanged.
  const copy = path.join(folder, "python")
  fs.cpSync(source, copy, { recursive: true })
  const install = ["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", site, copy]
  await run([interpreter, "-m", "pip", ...install])
  for (const [name, code] of Object.entries(examples)) {
    expect([name, code.length > 100]).toEqual([name, true])
    fs.writeFileSync(path.join(folder, `${name}.py`), code)
  }
})

afterAll(async () => {
  for (const child of children) {
    child.kill("SIGKILL")
    await child.exited
  }
  fs.rmSync(folder, { recursive: true, force: true })
})

describe.skipIf(without !== "")(`the Python client${without}`, () => {
  test("its own tests pass, also against the service", async () => {
    const tests = ["-m", "unittest", "discover", "-t", source, "-s", path.join(source, "tests")]
    const { code, error } = await outcome([interpreter, ...tests], { cwd: folder, env: environment() })
    expect([code, code === 0 || error]).toEqual([0, true])
    expect(error).toMatch(/^Ran [5-9]\d tests in .*\n\nOK\n$/m)
  })

  test("the installed package, its tests and the examples are strictly typed", async () => {
    const files = Object.keys(examples).map((name) => path.join(folder, `${name}.py`))
    const config = ["--config-file", path.join(source, "pyproject.toml")]
    for (const checked of [["-p", "custody_client"], [path.join(source, "tests")], ...files.map((file) => [file])])
      await run([interpreter, "-m", "mypy", ...config, ...checked], { cwd: folder, env: environment() })
  })

  test("the examples of calls run", async () => {
    await app.feed([balance("vault_a", "ethereum/native", "2.000000000000000001")])
    const once = (name: keyof typeof examples) => run([interpreter, `${name}.py`], { cwd: folder, env: environment() })
    expect(await once("firstCall")).toContain("vault_a ethereum/native 2.000000000000000001\n")
    expect(await once("quickStart")).toBe("")
    expect(await once("errors")).toMatch(/^not_found 404 \S+\n$/)
    expect(await once("readme")).toMatch(/^(\S+ \S+ vault_a \d+ ethereum\/native\n){3}$/)
  })

  test("the examples of a copy and of a verification run", async () => {
    expect(await run([interpreter, "copying.py"], { cwd: folder, env: environment() })).toMatch(/^vault_a 2\d\d \S+\n$/)
    const env = { ...environment(), VAULT: "vault_a", ENTITY: "entity_a", KEPT: path.join(folder, "kept.json") }
    const complete = async () => {
      const found = await run([interpreter, "verify.py"], { cwd: folder, env })
      return /^complete: (\d+) events, (\d+) statements\n$/.exec(found)?.slice(1).map(Number)
    }
    const [events = 0, statements = 0] = (await complete()) ?? []
    expect([events > 250, statements > 0]).toEqual([true, true])
    const stored = JSON.parse(fs.readFileSync(env.KEPT, "utf8")).keys
    // A key that is published later is not trusted by itself.
    await app.insert(
      "INSERT INTO signing_keys (kid, public_key, created_at) VALUES ('later', decode(repeat('ab', 32), 'hex'), '2020-01-01')"
    )
    await app.feed([balance("vault_a", "ethereum/native", "3")])
    // From the stored checkpoint on.
    expect(await complete()).toEqual([1, statements])
    expect(JSON.parse(fs.readFileSync(env.KEPT, "utf8")).keys).toEqual(stored)
    fs.writeFileSync(
      env.KEPT,
      fs.readFileSync(env.KEPT, "utf8").replace(/"hash": "[0-9a-f]{64}", "keys"/, `"hash": "${"0".repeat(64)}", "keys"`)
    )
    const { code, error } = await outcome([interpreter, "verify.py"], { cwd: folder, env })
    expect([code, error]).toEqual([1, expect.stringContaining("differs: the chain does not contain the stored hash")])
  })

  test("the example of a webhook verifies deliveries during a rotation", async () => {
    const body = {
      url: receiver.url("/hook"),
      entityIds: ["entity_a"],
      eventKinds: ["vault.updated"],
      notificationEmail: "ops@example.com"
    }
    const created = (await app.request("POST", "/v1/webhooks", { key, body })).json
    const ping = () => app.request("POST", `/v1/webhooks/${created.id}/ping`, { key })
    await ping()
    const newer = (await app.request("POST", `/v1/webhooks/${created.id}/rotate-secret`, { key })).json.secret
    await ping()
    const [delivery, rotated] = receiver.to("/hook")
    if (delivery === undefined || rotated === undefined) throw new Error("the pings did not arrive")
    const consumer = async (secret: string) => {
      const port = String(await Effect.runPromise(freePort))
      start("webhook", { WEBHOOK_SECRET: secret, PORT: port })
      const send = async ({ body, headers }: Pick<Received, "body" | "headers">) => {
        const sent = Object.fromEntries(
          Object.entries(headers).filter(([name]) => !["host", "content-length", "connection"].includes(name))
        )
        return (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body, headers: sent })).status
      }
      await until("the consumer", () => send({ body: "", headers: {} }).catch(() => undefined))
      await cutOff(`http://127.0.0.1:${port}`)
      return send
    }
    const [old, fresh] = [await consumer(created.secret), await consumer(newer)]
    expect([await old(delivery), await old(rotated), await fresh(rotated), await fresh(delivery)]).toEqual([204, 204, 204, 400])
    expect(await old({ ...delivery, body: delivery.body.replace("webhook.ping", "webhook.pong") })).toBe(400)
    expect(await old({ body: delivery.body, headers: {} })).toBe(400)
  })

  test("the mirror has every transaction once although it is killed, and finds what differs", async () => {
    const mirror = path.join(folder, "mirror.sqlite")
    const query = async (sql: string): Promise<ReadonlyArray<string>> => {
      const program = `import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=30) as db: [print(*row) for row in db.execute(sys.argv[2])]`
      const { out } = await outcome([interpreter, "-c", program, mirror, sql])
      return out.split("\n").filter((line) => line !== "")
    }
    const amounts = (vaultId: string) =>
      query(
        `SELECT amount FROM transactions WHERE "vaultId" = '${vaultId}' AND CAST(amount AS INTEGER) > 1000 ORDER BY CAST(amount AS INTEGER)`
      )
    let number = 1_000
    const feedMore = (count: number) =>
      app.feed(
        Array.from({ length: count }, () =>
          transaction(number % 2 === 0 ? "vault_a" : "vault_mirror", ++number, { amount: String(number) })
        )
      )
    await app.feed([vault("vault_mirror", "entity_a"), user("user_a", "org_a", ["vault_a", "vault_mirror"])])
    await feedMore(40)
    for (let round = 0; round < 3; round++) {
      const program = start("mirror", { MIRROR: mirror })
      // It is killed amid its work, and the rest is left for the next one.
      await feedMore(40)
      await until("some rows", async () => (await amounts("vault_a")).length > round * 20)
      program.kill("SIGKILL")
      await program.exited
    }
    const last = start("mirror", { MIRROR: mirror })
    // A change of a row that it has.
    await app.feed([transaction("vault_a", 1_001, { amount: "1001", status: "dropped" })])
    await until("every row", async () => (await amounts("vault_mirror")).length === 80)
    await until("the change", async () => (await query("SELECT status FROM transactions WHERE amount = '1001'"))[0] === "dropped")
    last.kill("SIGKILL")
    await last.exited
    expect(await amounts("vault_a")).toEqual(Array.from({ length: 80 }, (_, index) => String(1_001 + 2 * index)))
    await query("DELETE FROM transactions WHERE amount = '1003'")
    const { code, error } = await outcome([interpreter, "mirror.py"], { cwd: folder, env: { ...environment(), MIRROR: mirror } })
    expect([code, error]).toEqual([1, expect.stringMatching(/^1 transactions differ from the service's, such as tx_\w+\n$/)])
  })

  test("the program of a year writes transactions, balances, and sums that follow from them", async () => {
    const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
    const at = `${day(-3)}T12:00:00.000Z`
    const fee = { asset: "ethereum/native", amount: "0.000000000000000001" }
    await app.feed([
      vault("vault_a", "entity_a", { label: "=1+1" }),
      transaction("vault_a", 5_000, { amount: "3", timestamp: at, fee }),
      transaction("vault_a", 5_001, { amount: "1", direction: "outbound", timestamp: at, status: "failed", fee }),
      { ...balance("vault_a", "ethereum/native", "7"), occurredAt: `${day(-9)}T12:00:00.000Z` }
    ])
    await seal()
    const env = { ...environment(), FROM: day(-200), TO: day(-2) }
    // No record of a balance follows from the transactions.
    const found = await run([interpreter, "year.py"], { cwd: folder, env })
    expect(found).toMatch(/^=1\+1: -2\.999999999999999998 of ETH \(ethereum\/native\) is not explained by transactions\n$/)
    const linesOf = (name: string) =>
      fs
        .readFileSync(path.join(folder, `${name}.csv`), "utf8")
        .trim()
        .split("\r\n")
    const moved = linesOf("year").filter((line) => line.includes(",'3,'0,'0.000000000000000002,"))
    expect(moved).toEqual([expect.stringMatching(/^'=1\+1,vault_a,[\d-]{10},ethereum\/native,ETH,'/)])
    expect(linesOf("transactions")).toHaveLength(3)
    expect(linesOf("balances")).toEqual([
      "vault,vaultId,asset,symbol,balance,as of",
      expect.stringMatching(new RegExp(`^'=1\\+1,vault_a,ethereum/native,ETH,'7,${day(-9)} 12:00:00`))
    ])
    // What is not signed must agree with what is.
    const year = linesOf("year")
    const behind = { ...env, CUSTODY_URL: proxy.url() }
    const more = (text: string) => text.replaceAll(/"(opening|closing|amount)":"(?=7")/g, '"$1":"100000')
    proxy.tamper((text, target) => (target.includes("statement-summary") ? more(text) : text))
    await run([interpreter, "year.py"], { cwd: folder, env: behind })
    expect(linesOf("year")).toEqual(year)
    // One has no statement yet.
    await app.feed([vault("vault_late", "entity_a"), user("user_a", "org_a", ["vault_a", "vault_late"])])
    const also = (vaultId: string) => (text: string) => `${text}${text.split("\r\n").at(-2)?.replace("vault_a", vaultId)}\r\n`
    for (const [of, changed, message] of [
      ["balances", more, /: closing of .* is 1000007, its statements say 7\n$/],
      ["transactions/export", (text: string) => text.replace("'3", "'4"), /: inbound of .* is 4, its statements say 3\n$/],
      ["transactions/export", also("vault_late"), new RegExp(`^vault_late: ${day(-2)} is not sealed yet\n$`)],
      ["transactions/export", also("vault_gone"), /^The list of vaults has no vault_gone\n$/],
      ["statements", more, /has a different hash/]
    ] as const) {
      proxy.tamper((text, target) => (target.includes(`/${of}`) ? changed(text) : text))
      expect(await outcome([interpreter, "year.py"], { cwd: folder, env: behind })).toMatchObject({
        code: 1,
        error: expect.stringMatching(message)
      })
    }
    const unfinished = await outcome([interpreter, "year.py"], { cwd: folder, env: { ...env, TO: day(0) } })
    expect(unfinished).toMatchObject({ code: 1, error: `${day(0)} is complete at ${day(1)} 06:00 UTC\n` })
    // A year before the vaults.
    const before = await run([interpreter, "year.py"], { cwd: folder, env: { ...env, TO: day(-20) } })
    expect(before.split("\n")).toEqual([expect.any(String), expect.any(String), ""])
    expect(before).toContain(`=1+1: its first statement is ${day(-7)}\n`)
    expect(before).toContain("vault_late: its first statement is not sealed yet\n")
  })
})
