/** The package as consumers use it: built, installed, compiled with other compiler settings, and run by Node.js and a browser. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect, Redacted } from "effect"
import manifest from "../../src/client/package.json" with { type: "json" }
import published from "../../src/client/vectors.json" with { type: "json" }
import { headers } from "../../src/delivery/deliveries/signatureHeaders.ts"
import * as Secret from "../../src/delivery/webhooks/signingSecret.ts"
import { executable, useBrowser } from "../portal/browser.ts"
import { useApp } from "../support/app.ts"
import { codeBlocks, documentText } from "../support/document.ts"
import { freePort } from "../support/freePort.ts"
import { cutOff } from "../support/raw.ts"
import { until } from "../support/receiver.ts"
import { smallest, transaction } from "../support/records.ts"

const app = useApp()
const browser = useBrowser()
const vectors: ReadonlyArray<{ readonly valid: boolean; readonly reason?: string | undefined }> = published.vectors
const root = path.resolve(import.meta.dir, "../..")
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-consumer-"))
const installed = path.join(folder, "node_modules", "custody-data-client")
let key = ""

const run = async (command: ReadonlyArray<string>, cwd: string, env: { readonly [name: string]: string } = {}) => {
  const child = Bun.spawn([...command], { cwd, env: { ...process.env, ...env }, stdout: "pipe", stderr: "pipe" })
  const [out, errors, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  return { code, out, errors }
}
/** The package's file, as `npm pack` names it. */
const tarball = path.join(folder, `${manifest.name}-${manifest.version}.tgz`)
/** Pages whose code is compiled, each with the declarations that it assumes. */
const pages = [
  ["client", "declare const vaultId: string, rawBody: string, request: Request, credit: (...given: ReadonlyArray<unknown>) => void"],
  ["statements", ""],
  ["README", ""]
] as const
const tsc = [process.execPath, path.join(root, "node_modules/typescript/bin/tsc")]

beforeAll(async () => {
  await app.feed([...smallest(), ...Array.from({ length: 5 }, (_, index) => transaction("vault_a", index))])
  key = (await app.key("user_a")).secret
  // Packed from a copy, so that the repository stays unchanged.
  const source = path.join(folder, "source")
  for (const one of ["tsconfig.json", "src/client"]) fs.cpSync(path.join(root, one), path.join(source, one), { recursive: true })
  fs.symlinkSync(path.join(root, "node_modules"), path.join(source, "node_modules"))
  fs.writeFileSync(path.join(folder, "package.json"), JSON.stringify({ type: "module" }))
  for (const command of [
    ["pack", path.join(source, "src/client"), "--pack-destination", folder],
    ["install", tarball, "--offline", "--no-audit", "--no-fund"]
  ]) {
    const { code, errors } = await run(["npm", ...command], folder)
    expect([code, code === 0 || errors]).toEqual([0, true])
  }
  fs.symlinkSync(path.join(root, "node_modules/@types"), path.join(folder, "node_modules/@types"))
  fs.symlinkSync(path.join(root, "node_modules/undici-types"), path.join(folder, "node_modules/undici-types"))
  for (const name of ["consumer.ts", "required.cts"]) fs.copyFileSync(path.join(import.meta.dir, "consumer", name), path.join(folder, name))
  for (const [name, given] of pages) {
    const page = fs.readFileSync(path.join(root, name === "README" ? "src/client" : "docs", `${name}.md`), "utf8")
    const examples = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code)
    expect(examples.length).toBeGreaterThanOrEqual(2)
    fs.writeFileSync(path.join(folder, `${name}.ts`), [given, ...examples].join("\n"))
  }
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

for (const [name, options, ...more] of [
  ["a bundler", { module: "ESNext", moduleResolution: "bundler" }],
  // The program that Node.js runs below is compiled last.
  ["NodeNext", { module: "NodeNext", moduleResolution: "NodeNext" }, "required.cts"]
] as const) {
  test(`consumer code and the documents' examples compile strictly for ${name}, and fail where they should`, async () => {
    const compilerOptions = {
      ...options,
      target: "ES2022",
      lib: ["ES2023"],
      types: ["node"],
      strict: true,
      noUncheckedIndexedAccess: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      outDir: "out"
    }
    fs.writeFileSync(
      path.join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["consumer.ts", ...pages.map(([name]) => `${name}.ts`), ...more] })
    )
    expect(await run([...tsc, "-p", "."], folder)).toEqual({ code: 0, out: "", errors: "" })
  })
}

test("the package installs alone, below 100 KB, without dependencies or modules of a platform", () => {
  expect(fs.statSync(tarball).size).toBeLessThan(100_000)
  expect(Object.keys(manifest).filter((name) => /dependencies/i.test(name))).toEqual([])
  const files = fs.readdirSync(path.join(installed, "dist"), { recursive: true, encoding: "utf8" }).filter((file) => /\.[jt]s$/.test(file))
  expect(files.length).toBeGreaterThan(10)
  for (const file of files) {
    const text = fs.readFileSync(path.join(installed, "dist", file), "utf8")
    for (const [, from = ""] of text.matchAll(/^(?:(?:import|export)\b[^"\n]* from |.*\brequire\()"([^"]+)"/gm)) {
      const isOwn = from.startsWith(".") && !path.join(path.dirname(file), from).startsWith("..")
      expect([file, from, isOwn]).toEqual([file, from, true])
    }
  }
})

test.skipIf(executable === undefined)("in a worker of a browser, the package verifies signatures by the published vectors", async () => {
  const entry = path.join(folder, "worker.ts")
  fs.writeFileSync(
    entry,
    `import { verifySignature } from "custody-data-client"
      import { vectors } from "custody-data-client/vectors.json"
      const outcomes = vectors.map(({ body, headers, now, secrets, tolerance }) =>
        verifySignature(body, headers, secrets, { now, tolerance }).then(() => "valid", (error) => error.reason ?? String(error)))
      postMessage([typeof process, typeof document, ...await Promise.all(outcomes)])\n`
  )
  const { logs, outputs } = await Bun.build({ entrypoints: [entry], target: "browser" })
  expect(logs).toEqual([])
  const code = (await outputs[0]?.text()) ?? ""
  expect(code).not.toMatch(/node:|\bBuffer\b|require\(/)
  const { page } = await browser.open(app.main?.baseUrl ?? "")
  // Web Crypto is available on pages of a secure origin, such as loopback.
  await page.route("**/*", (route) => route.fulfill({ contentType: "text/html", body: "<title>x</title>" }))
  await page.goto(app.main?.baseUrl ?? "")
  const found = await page.evaluate(
    `new Promise((resolve, reject) => {
        const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}], { type: "text/javascript" })), { type: "module" })
        worker.onmessage = ({ data }) => resolve(data)
        worker.onerror = ({ message }) => reject(new Error(message))
      })`
  )
  expect(found).toEqual(["undefined", "undefined", ...vectors.map(({ reason, valid }) => (valid ? "valid" : (reason ?? "")))])
})

test.skipIf(Bun.which("node") === null)("the package runs in Node.js against the service", async () => {
  const { code, errors, out } = await run(["node", "out/consumer.js"], folder, {
    CUSTODY_URL: app.main?.baseUrl ?? "",
    CUSTODY_API_KEY: key
  })
  expect([code, errors]).toEqual([0, ""])
  expect(JSON.parse(out)).toEqual({ transactions: 5, secret: true, refused: expect.stringMatching(/^not found: /), received: "missing" })
})

test.skipIf(Bun.which("node") === null)("the package is loaded by require in a Node.js that cannot require ES modules", async () => {
  const { code, errors, out } = await run(["node", "--no-experimental-require-module", "out/required.cjs"], folder)
  expect([code, errors]).toEqual([0, ""])
  expect(JSON.parse(out)).toEqual({ vectors: vectors.length, wrong: [], more: "function" })
})

test.skipIf(Bun.which("node") === null)("the README's example lists transactions of all vaults", async () => {
  const [example = ""] = codeBlocks(documentText("README.md"), "ts")
  // It has no types, so Node.js runs it as it stands.
  fs.writeFileSync(path.join(folder, "readme.mjs"), example)
  const { code, errors, out } = await run(["node", "readme.mjs"], folder, { CUSTODY_URL: app.main?.baseUrl ?? "", CUSTODY_API_KEY: key })
  expect([code, errors]).toEqual([0, ""])
  expect(out).toMatch(/^(\S+ vault_a 1 ethereum\/native\n){3}$/)
})

test.skipIf(Bun.which("node") === null)("its README's example verifies webhooks, also after a request that is cut off", async () => {
  const [secret, port] = [Secret.make(), String(await Effect.runPromise(freePort))]
  const env = {
    CUSTODY_URL: app.main?.baseUrl ?? "",
    CUSTODY_API_KEY: key,
    WEBHOOK_SECRET: Redacted.value(secret),
    PORT: port
  }
  const child = Bun.spawn(["node", "out/README.js"], { cwd: folder, env: { ...process.env, ...env }, stdout: "ignore", stderr: "ignore" })
  try {
    const url = `http://127.0.0.1:${port}`
    const body = JSON.stringify({ id: "evt_1", kind: "webhook.ping" })
    const send = async (headers: { readonly [name: string]: string }) => (await fetch(url, { method: "POST", body, headers })).status
    expect(await until("the consumer", () => send({}).catch(() => undefined))).toBe(400)
    await cutOff(url)
    expect(await send(headers({ id: "evt_1", timestamp: Math.floor(Date.now() / 1_000), body, secrets: [secret] }))).toBe(204)
  } finally {
    child.kill("SIGKILL")
    await child.exited
  }
})
