/** Verifies that a statement is what was sealed, by the client in Node.js and in a browser, and detects every change. C-6. */
import { beforeAll, expect, test } from "bun:test"
import { generateKeyPairSync } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import fc from "fast-check"
import {
  createClient,
  type SigningKeySet,
  type Statement,
  verifyStatement,
  verifyStatementChain,
  verifyStatements
} from "../../../src/client/index.ts"
import { executable, useBrowser } from "../../portal/browser.ts"
import { cli, useApp } from "../../support/app.ts"
import { transaction } from "../../support/records.ts"
import { type Tampering, useTampering } from "../../support/tampering.ts"
import { BIG, beginDay, dayOf, ETH, timeOf, useStatements } from "./statementFixtures.ts"

await beginDay()

const app = useApp(["api"], { STATEMENT_DELAY: "0s", STATEMENT_HISTORY: "5d" })
const { fresh, get, key, revisions, seal } = useStatements(app)
const module = path.resolve(import.meta.dir, "../../../src/client/statements.ts")
const browser = useBrowser()
const proxy = useTampering(app)

let id = "",
  keys: SigningKeySet,
  all: ReadonlyArray<Statement> = []
const custody = () => createClient({ baseUrl: app.main?.baseUrl ?? "", apiKey: key() })

beforeAll(async () => {
  id = await fresh()
  await app.feed([
    { type: "balance", vaultId: id, asset: ETH, amount: "10", occurredAt: timeOf(-4, "12:00:00.000") },
    { type: "balance", vaultId: id, asset: BIG, amount: "9".repeat(78), occurredAt: timeOf(-3, "12:00:00.000") },
    transaction(id, 1, { amount: "0.000000000000000001", timestamp: timeOf(-2, "12:00:00.000") })
  ])
  await seal()
  // Late: the days from then on get a second revision.
  await app.feed([{ type: "balance", vaultId: id, asset: ETH, amount: "11", occurredAt: timeOf(-2, "13:00:00.000") }])
  await seal()
  all = await revisions(id)
  keys = await custody().getSigningKeys()
})

const statement = (day: number): Statement => all.toSorted((a, b) => (a.date < b.date ? 1 : -1))[-day - 1] ?? never()
const never = () => {
  throw new Error("there is no such statement")
}
const difference = async (one: Statement, known = keys, options = {}) => {
  const found = await verifyStatement(one, known, options)
  return found.valid ? "valid" : found.difference
}

test("the client verifies a statement with the published keys and detects every change of it", async () => {
  for (const one of all)
    expect(await verifyStatement(one, keys, { issuer: "custody-data-service" })).toEqual({ valid: true, kid: keys.keys[0]?.kid ?? "" })
  const one = statement(-1)
  const [line = never()] = one.assets
  const changes: ReadonlyArray<Partial<Statement>> = [
    { vaultId: "vault_a" },
    { date: statement(-3).date },
    { revision: one.revision + 1 },
    { sealedAt: new Date(0).toISOString() },
    { previousHash: null },
    { assets: [] },
    { assets: one.assets.toReversed() },
    ...(["opening", "inbound", "outbound", "other", "closing", "symbol"] as const).map((name) => ({
      assets: [{ ...line, [name]: "1" }, ...one.assets.slice(1)]
    })),
    { assets: [{ ...line, transactionCount: 7 }, ...one.assets.slice(1)] },
    { hash: statement(-3).hash }
  ]
  for (const change of changes)
    expect([change, await difference({ ...one, ...change })]).toEqual([
      change,
      expect.stringMatching(/has a different hash from the one it states$/)
    ])
  // An added field is part of the hash; the order of fields is not.
  expect(await difference(Object.assign({ added: 1 }, one))).toMatch(/has a different hash/)
  expect(await difference(JSON.parse(JSON.stringify(Object.fromEntries(Object.entries(one).reverse()))))).toBe("valid")
})

test("a signature of another statement, by another key or by none is detected", async () => {
  const one = statement(-1)
  const unsigned = /is not signed by a published key$/
  expect(await difference({ ...one, jws: statement(-3).jws })).toMatch(/^the signature of the statement of .* is for different content$/)
  expect(await difference(one, keys, { issuer: "https://elsewhere.example" })).toMatch(/is for different content$/)
  expect(await difference(one, { keys: [] })).toMatch(unsigned)
  const [known = never()] = keys.keys
  const other = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" })
  expect(await difference(one, { keys: [{ ...known, x: other.x ?? "" }] })).toMatch(unsigned)
  const [head = "", body = "", signature = ""] = one.jws.split(".")
  const none = Buffer.from(JSON.stringify({ alg: "none", kid: known.kid })).toString("base64url")
  for (const jws of [
    "",
    "a.b.c",
    `${head}.${body}`,
    `${head}.${body}.`,
    `${none}.${body}.${signature}`,
    `${none}.${body}.`,
    `${one.jws}.x`
  ])
    expect([jws, await difference({ ...one, jws })]).toEqual([jws, expect.stringMatching(unsigned)])
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: one.jws.length - 1 }), fc.nat({ max: 61 }), async (at, digit) => {
      const letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[digit] ?? ""
      const jws = `${one.jws.slice(0, at)}${letter}${one.jws.slice(at + 1)}`
      if (jws === one.jws) return
      // The last letter of 64 bytes in base64url has four bits without meaning.
      if (
        Buffer.from(jws.split(".")[2] ?? "", "base64url").equals(Buffer.from(signature, "base64url")) &&
        at > head.length + body.length + 1
      )
        return
      expect(await difference({ ...one, jws })).not.toBe("valid")
    }),
    { numRuns: 50 }
  )
})

test("the client verifies a chain with every revision, and detects a wrong or missing one", async () => {
  expect(all.length).toBe(5 + 2)
  expect(await verifyStatements(custody(), id)).toEqual({
    valid: true,
    statements: 7,
    previousHash: null,
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    days: (await Array.fromAsync(custody().listStatements(id))).toReversed()
  })
  expect(await verifyStatementChain([], keys)).toEqual({ valid: true, statements: 0, previousHash: null, hash: null })
  const chain = async (statements: ReadonlyArray<Statement>) => {
    const found = await verifyStatementChain(statements, keys)
    return found.valid ? [found.statements, found.previousHash] : found.difference
  }
  const following = (hash: string | null) => all.filter(({ previousHash }) => previousHash === hash)
  const inOrder = following(null)
  for (let [next] = following(inOrder[0]?.hash ?? ""); next !== undefined; [next] = following(next.hash)) inOrder.push(next)
  expect(await chain(inOrder.toReversed())).toEqual([7, null])
  // One that begins later returns the hash before it.
  expect(await chain(inOrder.slice(2))).toEqual([5, inOrder[1]?.hash ?? ""])
  for (let left = 1; left < inOrder.length - 1; left++)
    expect(await chain(inOrder.toSpliced(left, 1))).toMatch(/^the statement that the one of .* follows is missing$/)
  expect(await chain([...inOrder.slice(0, 2), { ...statement(-1), sealedAt: "2020-01-01T00:00:00.000Z" }])).toMatch(/a different hash/)
  const other = await fresh()
  await seal()
  expect(await chain([...inOrder, (await get(other, `/${inOrder[0]?.date}`)).json])).toMatch(/another vault/)
})

test("custody verify of a vault ends with exit code 0, 1 or 2", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-verify-"))
  const file = (name: string, content: unknown) => {
    fs.writeFileSync(path.join(folder, name), JSON.stringify(content))
    return path.join(folder, name)
  }
  const run = (...more: ReadonlyArray<string>) => cli(["verify", "--api", proxy.url(), "--key", key(), ...more], {})
  const of = ["--vault", id]
  const found = await verifyStatements(custody(), id)
  const last = found.valid ? (found.hash ?? "") : never()
  expect(await run(...of)).toMatchObject({ code: 0, stdout: `complete: 7 statements\nthe last hash is ${last}; store it for --hash\n` })
  const known = ["--until", dayOf(-1), "--hash", all[3]?.hash ?? "", "--keys", file("keys.json", keys)]
  expect(await run(...of, ...known)).toMatchObject({ code: 0, stdout: expect.stringContaining("complete: 7 statements\n") })

  const list = `/v1/vaults/${id}/statements?`
  const listed =
    (change: (data: ReadonlyArray<Statement>) => ReadonlyArray<unknown>): Tampering =>
    (text, target) => {
      if (!target.startsWith(list)) return text
      const page = JSON.parse(text)
      return JSON.stringify({ ...page, data: change(page.data) })
    }
  const gone = () => Response.json({ code: "not_found", requestId: "request-1" }, { status: 404 })
  const tamperings: ReadonlyArray<readonly [string, Tampering, string]> = [
    ["a missing day", listed((data) => data.toSpliced(2, 1)), dayOf(-3)],
    ["a day listed twice", listed((data) => [data[0], ...data]), dayOf(-1)],
    ["a changed line", (text) => text.replace('"closing":"11"', '"closing":"12"'), dayOf(-1)],
    ["a missing revision", (text, target) => (target.includes(`/${dayOf(-2)}?revision=1`) ? gone() : text), `revision 1 of ${dayOf(-2)}`],
    ["another vault", (text) => text.replaceAll(`"vaultId":"${id}"`, '"vaultId":"vault_a"'), dayOf(-1)],
    ["another key", (text) => text.replace(/"x":"[^"]*"/, `"x":"${"A".repeat(43)}"`), dayOf(-1)]
  ]
  for (const [name, tampering, names] of tamperings) {
    proxy.tamper(tampering)
    const { code, stderr } = await run(...of)
    expect([name, code, stderr]).toEqual([name, 1, expect.stringMatching(new RegExp(`^differs: .*${names}`))])
  }
  proxy.tamper(String)
  for (const [args, code, message] of [
    [[...of, "--until", dayOf(0)], 1, `differs: the newest statement is of ${dayOf(-1)}`],
    [[...of, "--hash", "0".repeat(64)], 1, "differs: the chain does not contain"],
    [[...of, "--keys", file("others.json", { keys: [{ ...keys.keys[0], x: "A".repeat(43) }] })], 1, "is not signed by"],
    [[...of, "--until", "2026-02-30"], 2, "could not be checked: 2026-02-30 is not a day"],
    [["--vault", "vault_absent"], 2, "could not be checked: not_found"],
    [[...of, "--since", file("since.json", {})], 2, "--since belongs to --entity"]
  ] as const)
    expect([args, await run(...args)]).toMatchObject([args, { code, stderr: expect.stringContaining(message) }])
  fs.rmSync(folder, { recursive: true, force: true })
})

test.skipIf(Bun.which("node") === null || executable === undefined)(
  "the verification runs unchanged in a browser and in Node.js",
  async () => {
    const { outputs, success } = await Bun.build({ entrypoints: [module], target: "browser" })
    expect([success, outputs.length]).toEqual([true, 1])
    const code = await outputs[0]?.text()
    expect(code).not.toContain("node:")
    const script = `const { verifyStatement, verifyStatementChain } = await import("data:text/javascript;base64,${Buffer.from(code ?? "").toString("base64")}")
      const all = ${JSON.stringify(all)}, keys = ${JSON.stringify(keys)}
      const changed = { ...all[0], sealedAt: "2020-01-01T00:00:00.000Z" }
      const found = [await verifyStatement(all[0], keys), await verifyStatement(changed, keys), await verifyStatementChain(all, keys)]`
    const expected = [
      { valid: true, kid: keys.keys[0]?.kid },
      { valid: false, difference: expect.stringMatching(/a different hash/) },
      { valid: true, statements: 7, previousHash: null, hash: expect.any(String) }
    ]
    const { page } = await browser.open(app.main?.baseUrl ?? "")
    // Web Crypto is available on pages of a secure origin, such as loopback.
    await page.route("**/*", (route) => route.fulfill({ contentType: "text/html", body: "<title>x</title>" }))
    await page.goto(app.main?.baseUrl ?? "")
    expect(JSON.parse(String(await page.evaluate(`(async () => { ${script}\nreturn JSON.stringify(found) })()`)))).toEqual(expected)
    const node = Bun.spawn(["node", "--input-type=module"], {
      stdin: new Blob([`${script}\nconsole.log(JSON.stringify(found))`]),
      stdout: "pipe",
      stderr: "pipe"
    })
    const [out, errors] = await Promise.all([new Response(node.stdout).text(), new Response(node.stderr).text()])
    expect([await node.exited, out === "" ? errors : ""]).toEqual([0, ""])
    expect(JSON.parse(out)).toEqual(expected)
  }
)
