/** Planted secrets: whatever fails, no log line, no response, no process list and no file of the repository shows one. */
import { beforeAll, expect, test } from "bun:test"
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { type Process, useApp } from "../../support/app.ts"
import { Proxy } from "../../support/proxy.ts"
import { rawGet } from "../../support/raw.ts"
import { smallest, transaction } from "../../support/records.ts"

const app = useApp([], { LOG_LEVEL: "debug", RATE_LIMIT: "200/1s", PLATFORM_TOKEN: `canary-${randomBytes(12).toString("hex")}` })
let service: Process
let database: Proxy
let key = ""
/** Every response of the service. */
const answers: Array<string> = []

beforeAll(async () => {
  database = new Proxy(app.databaseUrl)
  await database.open()
  service = await app.start(["api"], { DATABASE_URL: database.url })
  app.main = service
  await app.feed(smallest())
  key = (await app.key("user_a")).secret
})

const ask = async (target: string, secret = key, ...lines: ReadonlyArray<string>) => {
  const answer = await rawGet(service.baseUrl, target, { key: secret, lines })
  answers.push(`${JSON.stringify(answer.headers)} ${answer.body}`)
  return answer.status
}

test("no key, token or database password appears in logs and responses, whatever fails", async () => {
  const { secret: revoked, key: dead } = await app.key("user_a", { expiresAt: "2020-01-01T00:00:00Z" })
  const password = new URL(app.databaseUrl).password

  expect(await ask("/v1/vaults")).toBe(200)
  expect(await ask("/v1/vaults", revoked)).toBe(401)
  expect(await ask("/v1/vaults", `${key}x`)).toBe(401)
  expect(await ask(`/v1/vaults/${key}`)).toBe(404)
  expect(await ask(`/v1/vaults/${key}/transactions?hash=${key}&cursor=${key}`)).toBe(400)
  expect(await ask(`/${key}`, key)).toBe(404)
  expect(await ask(`/v1/vaults?api_key=${key}`)).toBe(400)
  expect(
    await ask("/v1/vaults", key, `X-Api-Key: ${key}`, `Cookie: key=${key}`, `User-Agent: ${key}`, `Referer: https://x/?k=${key}`)
  ).toBe(200)
  expect(await ask("/v1/vaults", key, `Accept: ${key}`)).toBe(406)
  for (const body of ["{", JSON.stringify(transaction("vault_a", 1, { amount: "x" }))]) answers.push((await app.records(body)).text)
  answers.push((await app.records("", { authorization: `Bearer ${app.env.PLATFORM_TOKEN}x` })).text)
  await database.cut()
  expect(await ask("/v1/vaults")).toBe(503)
  answers.push((await app.records([transaction("vault_a", 2)])).text)
  answers.push(
    await (await fetch(`${service.platformUrl}/health/ready`)).text(),
    await (await fetch(`${service.platformUrl}/metrics`)).text()
  )
  await database.open()
  await service.end()

  const output = service.output()
  expect(output).toContain(dead.id)
  expect(output).toContain("the database is unavailable")
  // A caller that sends its key in the wrong place may see it echoed to itself, but never in a log.
  const canaries = {
    key: key.slice(4, 30),
    revoked: revoked.slice(4, 30),
    master: (app.env.MASTER_KEY ?? "").slice(0, 30),
    token: app.env.PLATFORM_TOKEN ?? "",
    password
  }
  for (const [name, canary] of Object.entries(canaries)) {
    expect(canary.length).toBeGreaterThan(16)
    expect([name, "log", output.includes(canary)]).toEqual([name, "log", false])
    expect([name, "answer", answers.some((answer) => answer.includes(canary))]).toEqual([name, "answer", false])
  }
})

test("no file of the repository contains a key, a signing secret or a private key", () => {
  const root = path.resolve(import.meta.dir, "../../..")
  const files = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).trim().split("\n")
  expect(files.length).toBeGreaterThan(50)
  // The test vectors of signatures are published with their secrets, which sign nothing else.
  const found = files.filter((file) => {
    if (file === "src/client/vectors.json") return false
    const full = path.join(root, file)
    return (
      fs.existsSync(full) &&
      /\bcds_[0-9A-Za-z]{49}\b|\bwhsec_[A-Za-z0-9+/]{40,}={0,2}|-----BEGIN (?:RSA |EC )?PRIVATE KEY-----\n[A-Za-z0-9]/.test(
        fs.readFileSync(full, "latin1")
      )
    )
  })
  expect(found).toEqual([])
})
