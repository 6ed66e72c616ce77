/** The demo: from an empty folder, in terminals of two widths, again, beside another instance, and stopped. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { stripVTControlCharacters } from "node:util"
import { Exact } from "../../../src/cli/demo/demoBalances.ts"
import { type SigningKeySet, type Statement, verifyStatement } from "../../../src/client/index.ts"
import { baseEnv } from "../../support/app.ts"
import { codeBlocks, documentText } from "../../support/document.ts"
import { processesOf } from "../../support/processes.ts"
import { until } from "../../support/receiver.ts"
import { cache } from "../../support/servers.ts"

const root = path.resolve(import.meta.dir, "../../..")
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-demo-"))
const dataDir = path.join(folder, ".data")
const free = ["PORT", "PLATFORM_PORT", "EMBEDDED_POSTGRES_PORT", "EMBEDDED_TEMPORAL_PORT", "EMBEDDED_TEMPORAL_UI_PORT"]
const env = { ...baseEnv(), ...Object.fromEntries(free.map((name) => [name, "0"])), DATA_DIR: dataDir }

interface Run {
  readonly child: ReturnType<typeof Bun.spawn>
  /** The output so far, as a terminal without colors shows it. */
  readonly shown: () => string
  /** The exit code, once all of the output is shown. */
  readonly ended: Promise<number>
}

const runs: Array<Run> = []

/** Starts the demo in a terminal with this many columns, or with its output to a pipe. */
const demo = (args: ReadonlyArray<string>, columns: number | undefined, more: { readonly [name: string]: string } = {}): Run => {
  let written = ""
  const command = [process.execPath, "src/main.ts", "demo", ...args]
  const options = { cwd: root, env: { ...env, TERM: "xterm-256color", ...more } }
  const write = (decoder: TextDecoder) => (data: Uint8Array) => {
    written += decoder.decode(data, { stream: true })
  }
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  const show = write(new TextDecoder())
  const child =
    columns === undefined
      ? Bun.spawn(command, { ...options, stdin: "ignore", stdout: "pipe", stderr: "pipe" })
      : Bun.spawn(command, {
          ...options,
          terminal: { cols: columns, rows: 40, data: (_, data) => show(data), exit: () => close() }
        })
  const reads = [child.stdout, child.stderr].map(async (stream) => {
    if (!(stream instanceof ReadableStream)) return
    const show = write(new TextDecoder())
    for await (const chunk of stream) show(chunk)
  })
  const ended = Promise.all([child.exited, columns === undefined ? Promise.all(reads) : closed]).then(([code]) => code)
  const run = { child, ended, shown: () => stripVTControlCharacters(written).replaceAll("\r\n", "\n") }
  runs.push(run)
  return run
}

/** Lines longer than the terminal, except for those meant to be copied. */
const tooLong = (run: Run, columns: number) =>
  run
    .shown()
    .split(/[\n\r]/)
    .filter((line) => Bun.stringWidth(line.trimEnd()) > columns && !/cds_|curl /.test(line) && !line.includes(os.tmpdir()))

const rows = (run: Run, kind: string) =>
  run
    .shown()
    .split(/[\n\r]/)
    .filter((line) => /^ \d\d:\d\d:\d\d /.test(line) && line.includes(kind))
const file = () => JSON.parse(fs.readFileSync(path.join(dataDir, "demo.json"), "utf8"))

beforeAll(() => {
  // Without `temporal` on PATH, the one built for the other tests is used.
  const built = path.join(cache, "bin", "temporal")
  fs.mkdirSync(path.join(dataDir, "bin"), { recursive: true })
  if (fs.existsSync(built)) fs.symlinkSync(built, path.join(dataDir, "bin", "temporal"))
})

afterAll(async () => {
  for (const { child } of runs) {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM")
    await child.exited
  }
  fs.rmSync(folder, { recursive: true, force: true })
})

describe.skipIf(process.platform !== "linux")("the demo", () => {
  let live: Run

  test("goes from an empty folder to verified deliveries in rows that fit 80 columns", async () => {
    live = demo([], 80)
    await until("the live part", () => live.shown().includes("Live  a new transaction every few seconds"), 120)
    for (const step of ["Postgres", "Temporal", "Workflows", "Receiver", "Service", "Demo data", "Balances", "Statements", "Webhooks"]) {
      expect(live.shown()).toMatch(new RegExp(`✓ ${step} .*\\d m?s`))
    }
    for (const line of rows(live, "transaction.confirmed"))
      expect(line).toMatch(/ [+−] [\d,.…]+ \S+ +(#1 +\d+ ms {2}✓ (verified|new ✓ old)|#\d+ +\d+ ms {2}(✓ verified|✗ 503 → (retry|held)))$/)
    expect(rows(live, "transaction.confirmed").length).toBeGreaterThan(8)
    const [first, second] = rows(live, "deposit_address.created")
    expect(first).toMatch(/ #1 +\d+ ms {2}✗ 503 → retry$/)
    expect(second).toMatch(/ #2 +\d+ ms {2}✓ verified$/)
    // C-5: ten failures, probes, and everything that was held.
    // The row of the last failure may come after the line about the hold.
    const [before = "", after = ""] = live.shown().split(" Held ")
    expect(before).toContain(" On hold ")
    expect(before.match(/✗ 503 → (retry|held)/g)?.length).toBeGreaterThanOrEqual(11)
    expect(after).toMatch(/^ 8 deliveries wait, 3 of them without a single request\n[\s\S]* Back .*\n[\s\S]* Rotation /)
    const drained = after.split(" Back ")[1]?.split(" Recovery ")[0] ?? ""
    expect(drained.match(/✓ verified/g)).toHaveLength(8)
    // C-4: what happened while the webhook was disabled.
    expect(after).toMatch(/ Recovery [\s\S]*✓ recovered: 3 of 3 missed events delivered\n[\s\S]* Rotation /)
    expect(rows(live, "webhook.secret_rotated")[0]).toMatch(/✓ new ✓ old$/)
    // The feed holds the deliveries' events, and the signed checkpoints cover all of them.
    expect(live.shown()).toMatch(/✓ complete: [\d,]+ events of 3 entities, none missing or changed/)
    expect(tooLong(live, 80)).toEqual([])
  })

  test("prints the addresses of the API, its documentation and the Temporal UI, and they respond", async () => {
    const links = [...live.shown().matchAll(/https?:\/\/127[^\s'"]+/g)].map(([url]) => url.replace(/["'…]+$/, ""))
    const { baseUrl, temporalUi } = file()
    expect(links).toContain(`${baseUrl}/v1/docs`)
    expect(links).toContain(`${temporalUi}/namespaces/default/workflows`)
    for (const url of [`${baseUrl}/v1/docs`, temporalUi]) expect([url, (await fetch(url)).status]).toEqual([url, 200])
  })

  test("serves every line of the README's API examples, pasted in order", async () => {
    const section = documentText("README.md").split("## Try the API")[1]?.split("\n## ")[0] ?? ""
    const blocks = codeBlocks(section, "sh")
    const script = blocks.map((block) => `${block}\nprintf '\\n---\\n'`).join("\n")
    const shell = Bun.spawn(["sh", "-eu", "-c", script], { cwd: folder, stdout: "pipe", stderr: "inherit" })
    const [, ...answers] = (await new Response(shell.stdout).text()).split("\n---\n").slice(0, -1)
    expect(await shell.exited).toBe(0)
    const bodies = answers.map((text) => JSON.parse(text))
    expect(bodies).toHaveLength(5)
    expect(bodies[0].data).toHaveLength(2)
    expect(bodies[1].data.length).toBeGreaterThan(0)
    expect(bodies[2].data).toHaveLength(3)
    expect(bodies[3].data[0].kind).toBe("transaction.confirmed")
    expect(bodies[4]).toMatchObject({ success: true, result: "2xx" })
  })

  test("prints a portal invitation for the owner, which works", async () => {
    const [, origin = "", token = ""] = /(http:\/\/localhost:\d+)\/portal\/invitation#([\w-]+)/.exec(live.shown()) ?? []
    expect((await fetch(`${origin}/portal/`)).headers.get("content-type")).toStartWith("text/html")
    const invited = await fetch(`${origin}/portal/api/invitation`, {
      method: "POST",
      headers: { origin, "x-portal": "1", "content-type": "application/json" },
      body: JSON.stringify({ token })
    })
    expect(await invited.json()).toMatchObject({ reset: false, organizationName: expect.any(String) })
  })

  test("prints curl lines that work as pasted, with formatted JSON", async () => {
    const printed = live.shown().split(" Try it ")[1]?.split(" follow events")[0] ?? ""
    const lines = printed.split("\n").filter((line) => /^ (curl|export) /.test(line))
    const script = lines.map((line) => `${line}\nprintf -- '---\\n'`).join("\n")
    const shell = Bun.spawn(["sh", "-eu", "-c", script], { stdout: "pipe", stderr: "inherit" })
    const answers = (await new Response(shell.stdout).text()).split("---\n").slice(0, -1)
    expect(await shell.exited).toBe(0)
    const [vaults, , events, webhook, balances, statement, own] = answers.map((text) => {
      if (text === "") return undefined
      const json = JSON.parse(text)
      expect(text).toBe(`${JSON.stringify(json, null, 2)}\n`)
      return json
    })
    const { baseUrl, keys, playUrl, vaultIds, webhookId } = file()
    expect(vaults.data).toHaveLength(vaultIds.length)
    expect([events.data.length, webhook.id]).toEqual([2, webhookId])
    expect(balances.data.some(({ amount, asOf }: { amount: string; asOf: string }) => amount !== "0" && asOf < "2022")).toBe(true)
    const { assets, vaultId }: Statement = statement
    expect(assets.some(({ inbound, outbound }) => inbound !== "0" || outbound !== "0")).toBe(true)
    const get = async (url: string) => (await fetch(`${baseUrl}${url}`, { headers: { authorization: `Bearer ${keys.owner}` } })).json()
    expect(await verifyStatement(statement, (await get("/v1/jwks.json")) as SigningKeySet)).toMatchObject({ valid: true })
    let days = 0
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await get(`/v1/vaults/${vaultId}/statements?limit=500${cursor === "" ? "" : `&cursor=${cursor}`}`)
      const { data, pagination } = page as {
        readonly data: ReadonlyArray<unknown>
        readonly pagination: { readonly nextCursor: string | null }
      }
      days += data.length
      cursor = pagination.nextCursor
    }
    expect(days).toBeGreaterThan(365)
    // A newcomer's own webhook gets what happens next, whatever its secret.
    expect(own).toMatchObject({ url: playUrl, status: "ACTIVE" })
    await until("its deliveries", () => rows(live, "transaction.confirmed").some((line) => / #1 +\d+ ms {2}✓ unverified$/.test(line)))
    expect(await get(`/v1/webhooks/${own.id}`)).toMatchObject({ health: { state: "HEALTHY", lastSuccessAt: expect.any(String) } })
    expect((await fetch(playUrl, { tls: { rejectUnauthorized: false } })).status).toBe(405)
  })

  test("goes on with new transactions and their balances when all data were fed", async () => {
    const { baseUrl, keys, platformToken, platformUrl } = file()
    const all = fs.readFileSync(path.join(root, "data/real-custody.ndjson"), "utf8").trimEnd().split("\n")
    const fed = all.filter((line) => line.includes('"type":"transaction"'))
    for (let from = 0; from < fed.length; from += 1_000) {
      const headers = { authorization: `Bearer ${platformToken}`, "x-record-events": "none" }
      const body = fed.slice(from, from + 1_000).join("\n")
      expect((await fetch(`${platformUrl}/platform/v1/records`, { method: "POST", headers, body })).status).toBe(200)
    }
    const hashes = new Set(fed.map((line) => JSON.parse(line).hash))
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers field by field
    const list = async (path: string): Promise<ReadonlyArray<any>> => {
      const answer = await fetch(`${baseUrl}${path}`, { headers: { authorization: `Bearer ${keys.owner}` } })
      return ((await answer.json()) as { data: ReadonlyArray<unknown> }).data
    }
    const { transaction, vaultId } = await until("a new transaction", async () => {
      const events = await list("/v1/webhook-events?kind=transaction.confirmed&limit=10")
      return events.map(({ payload }) => payload.data).find((data) => !hashes.has(data.transaction.hash))
    })
    const { amount, asset, direction, timestamp } = transaction
    expect(Math.abs(Date.parse(timestamp) - Date.now())).toBeLessThan(60_000)
    // Another transfer of the asset may have followed.
    const history = await list(`/v1/vaults/${vaultId}/balance-history?asset=${asset}&limit=20`)
    const changes = history.slice(1).map((before, index) => new Exact(history[index]?.amount).minus(before.amount).toFixed())
    expect(changes).toContain(`${direction === "inbound" ? "" : "-"}${amount}`)
  })

  test("writes every address to demo.json, with one key for each access rule", async () => {
    const { baseUrl, entityIds, keys, organizationId, platformToken, platformUrl, playUrl, receiverUrl, temporalUi, vaultIds, webhookId } =
      file()
    expect((fs.statSync(path.join(dataDir, "demo.json")).mode & 0o077).toString(8)).toBe("0")
    expect([baseUrl, platformUrl, temporalUi, receiverUrl, playUrl].every((url) => URL.canParse(url))).toBe(true)
    expect([organizationId.slice(0, 4), entityIds.length, webhookId.slice(0, 4)]).toEqual(["org_", 3, "whs_"])
    const status = async (name: string, target: string) =>
      (await fetch(`${baseUrl}${target}`, { headers: { authorization: `Bearer ${keys[name]}` } })).status
    const seen = async (name: string) => {
      const list = await fetch(`${baseUrl}/v1/vaults`, { headers: { authorization: `Bearer ${keys[name]}` } })
      return ((await list.json()) as { data: ReadonlyArray<{ id: string }> }).data.map(({ id }) => id)
    }
    expect((await seen("owner")).sort()).toEqual([...vaultIds].sort())
    expect(await seen("restricted")).toHaveLength(1)
    expect(await status("reader", "/v1/vaults")).toBe(200)
    expect(await status("reader", "/v1/webhooks")).toBe(403)
    expect(await status("webhookOnly", `/v1/webhooks/${webhookId}`)).toBe(200)
    expect(await status("webhookOnly", `/v1/vaults/${vaultIds[0]}`)).toBe(404)
    expect(await status("expired", "/v1/vaults")).toBe(401)
    expect(await status("ipLocked", "/v1/vaults")).toBe(403)
    const health = await fetch(`${platformUrl}/platform/v1/records`, {
      method: "POST",
      body: "",
      headers: { authorization: `Bearer ${platformToken}` }
    })
    expect(health.status).toBe(200)
  })

  test("started a second time, names the ports in use and their settings", async () => {
    const { port } = new URL(file().baseUrl)
    const same = demo([], undefined)
    const elsewhere = demo([], undefined, { DATA_DIR: path.join(folder, "other"), PORT: port })
    expect([await same.ended, await elsewhere.ended]).toEqual([5, 5])
    expect(same.shown()).toContain(`A demo of ${dataDir} is already running (process ${live.child.pid})`)
    expect(elsewhere.shown()).toContain(`Port ${port} (PORT) is in use.`)
    expect(elsewhere.shown()).toContain("DATA_DIR=.data-2 PORT=0")
    expect(live.child.exitCode).toBeNull()
  })

  test("stops gracefully on Ctrl-C and leaves nothing behind", async () => {
    live.child.terminal?.write("\u0003")
    expect(await live.ended).toBe(0)
    expect(live.shown()).toMatch(/Stopped in .* Data is kept in/)
    expect(processesOf(folder)).toEqual([])
    expect(fs.readdirSync(path.join(dataDir, "run")).filter((name) => name.endsWith(".pid") || name.endsWith(".owner"))).toEqual([])
  })

  test("killed midway, starts again with the same keys and prints plain lines for a pipe", async () => {
    const before = file().keys
    const killed = demo([], 120)
    await until("deliveries", () => rows(killed, "transaction.confirmed").length > 0)
    killed.child.kill("SIGKILL")
    await killed.child.exited
    expect(killed.shown()).toMatch(/ TIME +EVENT +CONTENT +VAULT +TRY LATENCY {2}SIGNATURE/)
    expect(tooLong(killed, 120)).toEqual([])

    const once = demo(["--once"], undefined)
    expect([await once.ended, once.shown()]).toEqual([0, expect.stringMatching(/✓ \d+ deliveries, all DELIVERED, in \d+ attempts\./)])
    expect(once.shown()).toContain("already loaded")
    expect(once.shown()).not.toContain("\u001b")
    expect(file().keys).toEqual(before)
    expect(processesOf(folder)).toEqual([])
  })
})
