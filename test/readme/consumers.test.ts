/**
 * The consumers in Node.js, Python and Go of the README and of the guide on signatures, extracted unchanged and run against real deliveries of the
 * service: they accept what it signed, also with either secret of a rotation, reject everything else, and survive a request that is cut off.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect } from "effect"
import { useApp } from "../support/app.ts"
import { codeBlocks, documentText } from "../support/document.ts"
import { freePort } from "../support/freePort.ts"
import { lacks, python, run, unless, unlessFetched } from "../support/languages.ts"
import { cutOff } from "../support/raw.ts"
import { type Received, receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { smallest } from "../support/records.ts"

const root = path.resolve(import.meta.dir, "../..")
const sectionOf = (document: string, title: string) => documentText(document).split(`\n## ${title}\n`)[1]?.split("\n## ")[0] ?? ""
const section = sectionOf("docs/guides/verifying.md", "Complete consumers")
const [node = ""] = codeBlocks(sectionOf("README.md", "Verify a delivery"), "js")
const [pythonCode = "", stripe = ""] = codeBlocks(section, "python")
const [go = ""] = codeBlocks(section, "go")

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-verify-"))
const children: Array<ReturnType<typeof Bun.spawn>> = []

const receiver = useReceiver()
const app = useApp([])
let secret = "",
  newer = ""
let delivery: Received, rotated: Received

const { interpreter, without: withoutPython } = await python(["standardwebhooks==1.1.0", "stripe==16.1.0"])

const goHome = path.join(folder, "go")
const goEnvironment = { GOFLAGS: "-mod=mod", GOWORK: "off" }
const makeModule = async () => {
  fs.mkdirSync(goHome)
  fs.writeFileSync(path.join(goHome, "main.go"), go)
  await run(["go", "mod", "init", "consumer"], { cwd: goHome, env: goEnvironment })
  await run(["go", "get", "github.com/standard-webhooks/standard-webhooks/libraries@v0.0.1"], { cwd: goHome, env: goEnvironment })
}

const withoutGo = lacks("go") ? unless("go") : await unlessFetched("the module proxy of Go", makeModule)

/** Starts a consumer that trusts a secret and cuts a request off; returns a function that sends it a request and returns the status. */
const consumer = async (command: ReadonlyArray<string>, cwd: string, trusted: string) => {
  const port = String(await Effect.runPromise(freePort))
  const env = { ...process.env, WEBHOOK_SECRET: trusted, PORT: port }
  children.push(Bun.spawn([...command], { cwd, env, stdout: "ignore", stderr: "ignore" }))
  const answer = async ({ body, headers }: Pick<Received, "body" | "headers">) => {
    const sent = Object.fromEntries(Object.entries(headers).filter(([name]) => !["host", "content-length", "connection"].includes(name)))
    return (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body, headers: sent })).status
  }
  await until("the consumer", () => answer({ body: "", headers: {} }).catch(() => undefined))
  await cutOff(`http://127.0.0.1:${port}`)
  return answer
}

beforeAll(async () => {
  app.main = await app.start(["api", "worker", "dispatcher"], receiverEnv(receiver))
  await app.feed(smallest())
  const key = (await app.key("user_a")).secret
  const created = await app.request("POST", "/v1/webhooks", {
    key,
    body: { url: receiver.url("/hook"), entityIds: ["entity_a"], eventKinds: ["vault.updated"], notificationEmail: "ops@example.com" }
  })
  secret = created.json.secret
  const ping = () => app.request("POST", `/v1/webhooks/${created.json.id}/ping`, { key })
  expect((await ping()).json.success).toBe(true)
  newer = (await app.request("POST", `/v1/webhooks/${created.json.id}/rotate-secret`, { key })).json.secret
  expect((await ping()).json.success).toBe(true)
  const [first, second] = receiver.to("/hook")
  if (first === undefined || second === undefined) throw new Error("the pings did not arrive")
  delivery = first
  rotated = second
})

afterAll(async () => {
  for (const child of children) {
    child.kill("SIGKILL")
    await child.exited
  }
  fs.rmSync(folder, { recursive: true, force: true })
})

/** What every consumer has to answer. */
const holds = async (start: (trusted: string) => ReturnType<typeof consumer>) => {
  const [old, fresh] = [await start(secret), await start(newer)]
  const changed = { ...delivery, body: delivery.body.replace("webhook.ping", "webhook.pong") }
  const elsewhere = { ...delivery, headers: { ...delivery.headers, "webhook-id": "evt_another" } }
  const late = { ...delivery, headers: { ...delivery.headers, "webhook-timestamp": String(Math.floor(Date.now() / 1_000) - 3_600) } }
  expect(changed.body).not.toBe(delivery.body)
  expect({
    "the secret that signed": await old(delivery),
    "the old secret in a rotation": await old(rotated),
    "the new secret in a rotation": await fresh(rotated),
    "another secret": await fresh(delivery),
    "another body": await old(changed),
    "another event": await old(elsewhere),
    "another time": await old(late),
    "no signature": await old({ body: delivery.body, headers: {} })
  }).toEqual({
    "the secret that signed": 204,
    "the old secret in a rotation": 204,
    "the new secret in a rotation": 204,
    "another secret": 400,
    "another body": 400,
    "another event": 400,
    "another time": 400,
    "no signature": 400
  })
}

describe("the README's consumers verify real deliveries", () => {
  test.skipIf(lacks("node"))(`in Node.js${unless("node")}`, async () => {
    const home = path.join(folder, "node")
    fs.mkdirSync(home)
    fs.writeFileSync(path.join(home, "consumer.mjs"), node)
    fs.symlinkSync(path.join(root, "node_modules"), path.join(home, "node_modules"))
    await holds((trusted) => consumer(["node", "consumer.mjs"], home, trusted))
  })

  test.skipIf(withoutPython !== "")(`in Python${withoutPython}`, async () => {
    fs.writeFileSync(path.join(folder, "consumer.py"), pythonCode)
    await holds((trusted) => consumer([interpreter, "consumer.py"], folder, trusted))
  })

  test.skipIf(withoutPython !== "")(`X-Service-Signature, by Stripe's library${withoutPython}`, async () => {
    fs.writeFileSync(path.join(folder, "stripe_header.py"), stripe)
    const verify = async (trusted: string, { body, headers }: Received) => {
      const child = Bun.spawn([interpreter, "stripe_header.py"], {
        cwd: folder,
        stdin: new Blob([body]),
        stdout: "ignore",
        stderr: "ignore",
        env: { ...process.env, WEBHOOK_SECRET: trusted, X_SERVICE_SIGNATURE: headers["x-service-signature"] ?? "" }
      })
      return (await child.exited) === 0
    }
    expect([
      await verify(secret, delivery),
      await verify(secret, rotated),
      await verify(newer, rotated),
      await verify(newer, delivery),
      await verify(secret, { ...delivery, body: `${delivery.body} ` })
    ]).toEqual([true, true, true, false, false])
  })

  test.skipIf(withoutGo !== "")(`in Go${withoutGo}`, async () => {
    await run(["go", "build", "-o", "consumer", "."], { cwd: goHome, env: goEnvironment })
    await holds((trusted) => consumer([path.join(goHome, "consumer")], goHome, trusted))
  })
})
