/**
 * Signatures as consumers verify them, with the libraries that they use: Stripe's for `X-Service-Signature`, those of
 * Standard Webhooks and Svix for the `webhook-*` headers; and the signature that needs no shared secret. Spec: Delivery
 * contract 3; Limits, rotation grace. Decisions D-24, D-25, C-8; reliability T8.
 */

import { beforeAll, describe, expect, test } from "bun:test"
import * as path from "node:path"
import { Webhook as Standard } from "standardwebhooks"
import Stripe from "stripe"
import { Webhook as Svix } from "svix"
import { useApp } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { lacks } from "../../support/languages.ts"
import { type Received, receiverEnv, until, useReceiver } from "../../support/receiver.ts"

const GRACE_MS = 600_000
const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => ({
  ...receiverEnv(receiver),
  WEBHOOK_RETRY_SCHEDULE: "0s,2s,2s",
  WEBHOOK_ROTATION_GRACE: `${GRACE_MS}ms`
}))
let key = ""
beforeAll(async () => {
  key = await feedOrganization(app, 7)
})

const stripe = new Stripe("sk_test_unused")
type Request = Pick<Received, "headers" | "body">

/** Each library, and whether it accepts the request as signed by the secret. */
const libraries: { readonly [name: string]: (request: Request, secret: string) => unknown } = {
  stripe: ({ body, headers }, secret) => stripe.webhooks.constructEventAsync(body, headers["x-service-signature"] ?? "", secret),
  standardwebhooks: ({ body, headers }, secret) => new Standard(secret).verify(body, headers),
  svix: ({ body, headers }, secret) => new Svix(secret).verify(body, { ...headers })
}

const verifies = async (name: string, request: Request, secret: string): Promise<boolean> => {
  try {
    await libraries[name]?.(request, secret)
    return true
  } catch {
    return false
  }
}
const verified = async (request: Request, secret: string): Promise<ReadonlyArray<string>> => {
  const taken: Array<string> = []
  for (const name of Object.keys(libraries)) if (await verifies(name, request, secret)) taken.push(name)
  return taken
}
const all = Object.keys(libraries)

const requestTo = (path: string, number = 0) => until(`request ${number} to ${path}`, () => receiver.to(path)[number])

// Each of these has an entity and an endpoint of its own.
describe.concurrent("signatures on the raw body", () => {
  test("the libraries accept a delivery as received, and a ping", async () => {
    const { id, secret } = await webhookOf(app, key, 0, receiver.url("/plain"))
    await feedTransactions(app, [0])
    const request = await requestTo("/plain")
    expect(await verified(request, secret)).toEqual(all)
    expect(request.headers["traceparent"]).toBeUndefined()
    await app.request("POST", `/v1/webhooks/${id}/ping`, { key })
    const ping = await requestTo("/plain", 1)
    expect(JSON.parse(ping.body)).toMatchObject({ kind: "webhook.ping", data: { webhookId: id } })
    expect(await verified(ping, secret)).toEqual(all)
  })

  test("the libraries refuse another secret, id, an old time, and any changed byte", async () => {
    const { secret } = await webhookOf(app, key, 1, receiver.url("/forged"))
    const { secret: other } = await webhookOf(app, key, 2, receiver.url("/unused"))
    await feedTransactions(app, [1])
    const request = await requestTo("/forged")
    expect(await verified(request, secret)).toEqual(all)
    expect(await verified(request, other)).toEqual([])
    const { headers } = request
    expect(await verified({ ...request, headers: { ...headers, "webhook-id": "evt_other" } }, secret)).toEqual(["stripe"])
    const old = String(Math.floor(Date.now() / 1_000) - 301)
    const signature = (headers["x-service-signature"] ?? "").replace(/t=\d+/, `t=${old}`)
    expect(
      await verified({ ...request, headers: { ...headers, "webhook-timestamp": old, "x-service-signature": signature } }, secret)
    ).toEqual([])
    for (let at = 0; at < request.body.length; at++) {
      const body = `${request.body.slice(0, at)}${request.body[at] === "x" ? "y" : "x"}${request.body.slice(at + 1)}`
      expect([at, await verified({ ...request, body }, secret)]).toEqual([at, []])
    }
  })

  test("each attempt has its own time and number, over the same id and bytes", async () => {
    receiver.on("/again", (_, count) => new Response("", { status: count < 3 ? 500 : 200 }))
    const { secret } = await webhookOf(app, key, 3, receiver.url("/again"))
    await feedTransactions(app, [3])
    await requestTo("/again", 2)
    const requests = receiver.to("/again")
    expect(new Set(requests.map(({ body, headers }) => `${headers["webhook-id"]} ${body}`)).size).toBe(1)
    expect(requests.map(({ headers }) => headers["x-service-attempt"])).toEqual(["1", "2", "3"])
    for (const request of requests) {
      expect(await verified(request, secret)).toEqual(all)
      expect(Math.abs(Number(request.headers["webhook-timestamp"]) * 1_000 - request.at)).toBeLessThan(30_000)
    }
    expect(new Set(requests.map(({ headers }) => headers["webhook-signature"])).size).toBe(3)
  })
})

describe.concurrent("the grace window of a rotated secret", () => {
  test("both secrets verify in the window, the newest first, and only the new one afterwards", async () => {
    const { id, secret: first } = await webhookOf(app, key, 4, receiver.url("/rotated"))
    const rotated = await app.request("POST", `/v1/webhooks/${id}/rotate-secret`, { key })
    const rotatedAt = Date.now()
    const { previousSecretExpiresAt, secret: second } = rotated.json
    expect(Math.abs(Date.parse(previousSecretExpiresAt) - rotatedAt - GRACE_MS)).toBeLessThan(30_000)
    await feedTransactions(app, [4])
    const within = await requestTo("/rotated")
    expect(Number(within.headers["webhook-timestamp"]) * 1_000).toBeLessThan(Date.parse(previousSecretExpiresAt))
    expect(await verified(within, first)).toEqual(all)
    expect(await verified(within, second)).toEqual(all)
    expect(within.headers["x-service-signature"]).toMatch(/^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/)
    const [newest] = (within.headers["webhook-signature"] ?? "").split(" ")
    expect(
      await verifies("standardwebhooks", { ...within, headers: { ...within.headers, "webhook-signature": newest ?? "" } }, second)
    ).toBe(true)

    // As if the window was over.
    await app.sql("UPDATE webhook_secrets SET expires_at = expires_at - $2 * interval '1 ms' WHERE webhook_id = $1", [id, GRACE_MS])
    await feedTransactions(app, [4])
    const after = await requestTo("/rotated", 1)
    expect(await verified(after, first)).toEqual([])
    expect(await verified(after, second)).toEqual(all)
    expect((await app.get(`/v1/webhooks/${id}`, key)).json.previousSecretExpiresAt).toBeNull()
    await deliveryWhen(app, key, id, ({ status }) => status === "DELIVERED")
  })
})

describe.concurrent("secrets that are expired at once", () => {
  test("the next attempt of a waiting delivery is signed with the new secret only", async () => {
    let second = ""
    receiver.on("/retired", async (_, count) => {
      if (count > 1) return new Response("")
      const { json } = await app.request("POST", `/v1/webhooks/${webhook.id}/rotate-secret`, { key, body: { expirePrevious: "now" } })
      second = json.secret
      return new Response("", { status: 500 })
    })
    const webhook = await webhookOf(app, key, 6, receiver.url("/retired"))
    await feedTransactions(app, [6])
    expect(await verified(await requestTo("/retired"), webhook.secret)).toEqual(all)
    const next = await requestTo("/retired", 1)
    expect(next.headers["x-service-attempt"]).toBe("2")
    expect(next.headers["x-service-signature"]).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/)
    expect(await verified(next, webhook.secret)).toEqual([])
    expect(await verified(next, second)).toEqual(all)
  })
})

describe.concurrent("v1a, a signature that needs no shared secret", () => {
  test("Node.js, Python and Go verify a delivery with the published key, and refuse another body", async () => {
    const webhook = await webhookOf(app, key, 5, receiver.url("/signed"))
    await feedTransactions(app, [5])
    await deliveryWhen(app, key, webhook.id, ({ status }) => status === "DELIVERED")
    const { body, headers } = receiver.to("/signed")[0] ?? { body: "", headers: {} as { [name: string]: string } }
    const signatures = (headers["webhook-signature"] ?? "").split(" ")
    expect(signatures.map((one) => one.split(",")[0])).toEqual(["v1", "v1a"])
    const { keys } = (await app.get("/v1/jwks.json")).json
    const folder = path.join(import.meta.dir, "verifiers")
    expect([lacks("node"), lacks("python3") && lacks("go")]).toEqual([false, false])
    const commands = {
      node: ["node", path.join(folder, "verify.mjs")],
      python: ["python3", path.join(folder, "verify.py")],
      go: ["go", "run", path.join(folder, "verify.go")]
    }
    for (const [language, command] of Object.entries(commands)) {
      if (lacks(command[0] ?? "")) continue
      for (const [text, expected] of [
        [body, "valid"],
        [`${body} `, "invalid"]
      ]) {
        const input = JSON.stringify({
          x: keys[0].x,
          id: headers["webhook-id"],
          timestamp: headers["webhook-timestamp"],
          signature: signatures[1],
          body: text
        })
        const child = Bun.spawn(command, { stdin: new Blob([input]), stdout: "pipe", stderr: "pipe" })
        expect([language, (await new Response(child.stdout).text()).trim(), await new Response(child.stderr).text()]).toEqual([
          language,
          expected ?? "",
          ""
        ])
      }
    }
  })
})
