/** The examples of docs/statements.md, extracted unchanged and run against a real statement: it verifies, and a changed one does not. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { useApi } from "../../support/api.ts"
import { codeBlocks, documentText } from "../../support/document.ts"
import { failsBehindGateways } from "../../support/Gateway.ts"
import { hurried, lacks, linkClient, outcome, python, run, unless, unlessFetched } from "../../support/languages.ts"
import { transaction } from "../../support/records.ts"
import { BIG, beginDay, dayOf, ETH, timeOf, useStatements } from "./statementFixtures.ts"

await beginDay()

const app = useApi({ STATEMENT_DELAY: "0s", STATEMENT_HISTORY: "3d" })
const { fresh, key, seal } = useStatements(app)
const text = documentText("docs/statements.md")
const [one = "", chain = ""] = codeBlocks(text, "ts")
const [pythonCode = ""] = codeBlocks(text, "python")
const [goCode = ""] = codeBlocks(text, "go")

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-statements-"))
const goEnvironment = { GOFLAGS: "-mod=mod", GOWORK: "off" }
const makeModule = async () => {
  fs.writeFileSync(path.join(folder, "main.go"), goCode)
  await run(["go", "mod", "init", "auditor"], { cwd: folder, env: goEnvironment })
  await run(["go", "get", "github.com/gowebpki/jcs@v1.0.2"], { cwd: folder, env: goEnvironment })
}
const { interpreter, without: withoutPython } = await python(["rfc8785==0.1.4", "pyjwt==2.15.1", "cryptography==48.0.0"])
const withoutGo = lacks("go") ? unless("go") : await unlessFetched("the module proxy of Go", makeModule)

let proxy: ReturnType<typeof Bun.serve>,
  id = "",
  other = "",
  /** How each response is changed in transit. */
  change: (text: string) => string = (text) => text,
  /** The path that is answered instead of the one asked for. */
  redirect: (path: string) => string = (path) => path

beforeAll(async () => {
  id = await fresh()
  other = await fresh()
  await app.feed([
    { type: "balance", vaultId: id, asset: ETH, amount: "1204.35", occurredAt: timeOf(-3, "12:00:00.000") },
    // A symbol with characters that libraries escape differently.
    { type: "asset", id: BIG, symbol: '€<&>"\\\u2028é', name: "Big", decimals: 0, network: "ethereum" },
    { type: "balance", vaultId: id, asset: BIG, amount: "9".repeat(78), occurredAt: timeOf(-2, "12:00:00.000") },
    transaction(id, 1, { amount: "12.000000000000000001", timestamp: timeOf(-1, "12:00:00.000") })
  ])
  await seal()
  linkClient(folder)
  proxy = Bun.serve({
    port: 0,
    fetch: async ({ headers, url }) => {
      const { pathname, search } = new URL(url)
      const { status, text } = await app.get(`${redirect(pathname)}${search}`, undefined, {
        authorization: headers.get("authorization") ?? ""
      })
      return new Response(change(text), { status })
    }
  })
})
afterAll(async () => {
  await proxy.stop(true)
  fs.rmSync(folder, { recursive: true, force: true })
})

const env = () => ({ CUSTODY_URL: `http://127.0.0.1:${proxy.port}`, CUSTODY_API_KEY: key(), VAULT: id, DAY: dayOf(-1) })
/** Runs an auditor's program on the statement as it is, and on changed ones. */
const holds = async (command: ReadonlyArray<string>) => {
  const verify = async (changed: (text: string) => string) => {
    change = changed
    const { code, error, out } = await outcome(command, { cwd: folder, env: env() })
    return code === 0 && out.startsWith("verified: ") ? "verified" : `refused ${out}${error}`
  }
  expect(await verify((text) => text)).toBe("verified")
  const changes: { readonly [what: string]: (text: string) => string } = {
    "an amount": (text) => text.replace('"opening":"1204.35"', '"opening":"1204.36"'),
    "the day": (text) => text.replace(`"date":"${dayOf(-1)}"`, `"date":"${dayOf(-2)}"`),
    "the hash": (text) => text.replace(/"hash":"./, '"hash":"g'),
    "the signature": (text) => text.replace(/("jws":"[^"]*)"/, (_, jws: string) => `${jws.slice(0, -8)}AAAAAAAA"`),
    "the key": (text) => text.replace(/"x":"[^"]*"/, `"x":"${"A".repeat(43)}"`)
  }
  for (const [what, changed] of Object.entries(changes))
    expect([what, await verify(changed)]).toEqual([what, expect.stringMatching(/^refused /)])
  // Statements that the service signed, of another day or vault.
  for (const [from, to] of [
    [dayOf(-1), dayOf(-2)],
    [id, other]
  ] as const) {
    redirect = (path) => path.replace(from, to)
    expect([to, await verify(String)]).toEqual([to, expect.stringMatching(/^refused /)])
  }
  redirect = String
}

/** How a program ends at another URL. */
const at = (command: ReadonlyArray<string>) => (url: string) =>
  outcome(command, { cwd: folder, env: { ...env(), CUSTODY_URL: url }, timeout: 60_000 })

test("the example in TypeScript verifies a statement and a whole chain, and refuses changed statements", async () => {
  fs.writeFileSync(path.join(folder, "auditor.ts"), one)
  await holds([process.execPath, "auditor.ts"])
  change = (text) => text
  fs.writeFileSync(path.join(folder, "chain.ts"), `${one}${chain}`)
  expect(await run([process.execPath, "chain.ts"], { cwd: folder, env: env() })).toMatch(
    /^verified: [0-9a-f]{64}\nverified: 3 statements up to [0-9a-f]{64}\n$/
  )
})

test.skipIf(withoutPython !== "")(`the example in Python verifies a statement, and refuses changed ones${withoutPython}`, async () => {
  fs.writeFileSync(path.join(folder, "auditor.py"), pythonCode)
  await holds([interpreter, "auditor.py"])
  fs.writeFileSync(path.join(folder, "hurried.py"), hurried(pythonCode))
  await failsBehindGateways(at([interpreter, "hurried.py"]))
})

test.skipIf(withoutGo !== "")(`the example in Go verifies a statement, and refuses changed ones${withoutGo}`, async () => {
  await run(["go", "build", "-o", "auditor", "."], { cwd: folder, env: goEnvironment })
  await holds([path.join(folder, "auditor")])
  fs.writeFileSync(path.join(folder, "main.go"), hurried(goCode))
  await run(["go", "build", "-o", "hurried", "."], { cwd: folder, env: goEnvironment })
  await failsBehindGateways(at([path.join(folder, "hurried")]))
})
