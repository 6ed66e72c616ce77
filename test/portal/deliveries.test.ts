import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { verificationCode } from "../../src/portal/web/pages/verificationCode.ts"
import { App } from "../support/app.ts"
import { Receiver, receiverEnv, until } from "../support/receiver.ts"
import { smallest, transaction, user } from "../support/records.ts"
import { operator } from "../support/temporal.ts"
import { create } from "../support/webhookFixtures.ts"
import { signedIn, type Visitor } from "./client.ts"

const app = new App()
const receiver = new Receiver()
let owner: Visitor, member: Visitor
let key = ""

beforeAll(async () => {
  await receiver.open()
  await app.open(["api", "worker", "dispatcher"], { ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1h,1h" })
  await app.feed([...smallest(), user("user_m", "org_a", ["vault_a"])])
  ;[owner, member] = await Promise.all([signedIn(app, "user_a"), signedIn(app, "user_m")])
  key = (await app.key("user_a")).secret
})
afterAll(async () => {
  await app.close()
  await receiver.close()
})

/** A delivery of a new event that has failed once and waits for an hour. */
const waiting = async (path: string, number: number, more: { readonly [field: string]: unknown } = {}) => {
  receiver.on(path, (_, count) => new Response("no", { status: count === 1 ? 500 : 200 }))
  const webhook = await create(app, key, { url: receiver.url(path), ...more })
  await app.feed([transaction("vault_a", number)])
  const delivery = await until("the first attempt", async () => {
    const { data } = (await owner.get(`/api/v1/webhooks/${webhook.id}/deliveries`)).json
    return data[0]?.status === "RETRYING" ? data[0] : undefined
  })
  return { webhook, delivery }
}

const statusOf = async (visitor: Visitor, webhookId: string, deliveryId: string) => {
  const { data } = (await visitor.get(`/api/v1/webhooks/${webhookId}/deliveries`)).json
  return data.find(({ id }: { id: string }) => id === deliveryId)
}

describe("a waiting delivery", () => {
  test("is attempted at once when an owner retries it, and uses up one attempt", async () => {
    const { delivery, webhook } = await waiting("/now", 1)
    const refused = await member.request("POST", `/api/deliveries/${delivery.id}/retry-now`, {})
    expect([refused.status, refused.json.code]).toEqual([403, "owner_required"])
    expect((await owner.request("POST", `/api/deliveries/${delivery.id}/retry-now`, {})).status).toBe(200)
    const delivered = await until("the second attempt", async () => {
      const found = await statusOf(owner, webhook.id, delivery.id)
      return found.status === "DELIVERED" ? found : undefined
    })
    expect(delivered.attempts.map(({ result }: { result: string }) => result)).toEqual(["5xx", "2xx"])
    const ended = await owner.request("POST", `/api/deliveries/${delivery.id}/retry-now`, {})
    expect([ended.status, ended.json.code]).toEqual([409, "delivery_ended"])
  })

  test("is due at once when an owner retries it, even if Temporal lost it", async () => {
    const { delivery, webhook } = await waiting("/lost", 9)
    const { client, close } = await operator()
    const workflow = client.workflow.getHandle(delivery.id)
    await until("its workflow", () =>
      workflow.describe().then(
        () => true,
        () => false
      )
    )
    await workflow.terminate("as if its state were lost")
    await close()
    // The attempt that follows lasts until everything was checked: a delivered one can no longer be retried.
    const { promise: checked, resolve: answer } = Promise.withResolvers<void>()
    receiver.on("/lost", async () => {
      await checked
      return new Response("", { status: 200 })
    })
    for (let clicks = 0; clicks < 3; clicks++)
      expect((await owner.request("POST", `/api/deliveries/${delivery.id}/retry-now`, {})).status).toBe(200)
    expect(await app.sql("SELECT next_attempt_at <= now() AS due FROM deliveries WHERE id = $1", [delivery.id])).toEqual([{ due: true }])
    answer()
    await until("no command to be left", async () => (await app.sql("SELECT 1 FROM commands")).length === 0)
    await until("its delivery", async () => (await statusOf(owner, webhook.id, delivery.id))?.status === "DELIVERED")
  })

  test("is canceled when an owner cancels it, and stays canceled", async () => {
    const { delivery, webhook } = await waiting("/cancel", 2)
    expect((await member.request("POST", `/api/deliveries/${delivery.id}/cancel`, {})).status).toBe(403)
    expect((await owner.request("POST", `/api/deliveries/${delivery.id}/cancel`, {})).status).toBe(200)
    expect(await statusOf(owner, webhook.id, delivery.id)).toMatchObject({
      status: "CANCELED",
      failureReason: "MANUAL",
      nextAttemptAt: null
    })
    await until("the command to be sent", async () => (await app.sql("SELECT 1 FROM commands")).length === 0)
    expect(await statusOf(owner, webhook.id, delivery.id)).toMatchObject({ status: "CANCELED" })
    expect(receiver.to("/cancel")).toHaveLength(1)
    expect((await owner.request("POST", `/api/deliveries/${delivery.id}/cancel`, {})).status).toBe(409)
  })
})

describe("all that waits for a webhook", () => {
  const all = async (webhookId: string) => (await owner.get(`/api/v1/webhooks/${webhookId}/deliveries`)).json.data
  /** A webhook with three deliveries that have failed once. */
  const three = async (path: string, number: number) => {
    const { webhook } = await waiting(path, number)
    receiver.on(path, () => new Response("no", { status: 500 }))
    await app.feed([transaction("vault_a", number + 1), transaction("vault_a", number + 2)])
    await until(
      "three failures",
      async () => (await all(webhook.id)).filter(({ attempts }: { attempts: ReadonlyArray<unknown> }) => attempts.length === 1).length === 3
    )
    return webhook.id
  }
  const refusals = async (id: string, what: string) => {
    const asMember = await member.request("POST", `/api/webhooks/${id}/${what}`, {})
    const unknown = await owner.request("POST", `/api/webhooks/whs_absent/${what}`, {})
    expect([asMember.json.code, unknown.json.code]).toEqual(["owner_required", "not_found"])
  }
  const lastEntry = async () => (await owner.get("/api/v1/audit-log?limit=1")).json.data[0]

  test("is sent oldest first when an owner retries it, each with one attempt", async () => {
    const id = await three("/all", 30)
    await refusals(id, "retry-waiting")
    receiver.on("/all", () => new Response("yes"))
    expect((await owner.request("POST", `/api/webhooks/${id}/retry-waiting`, {})).status).toBe(200)
    expect(await lastEntry()).toMatchObject({
      action: "webhook.deliveries_retried",
      target: { type: "webhook", id },
      actor: { type: "session" }
    })
    await until("all of them", async () => (await all(id)).every(({ status }: { status: string }) => status === "DELIVERED"))
    // Together, as a few of an endpoint are in flight at once.
    const retried = receiver
      .to("/all")
      .slice(3)
      .toSorted((one, other) => Number(one.headers["webhook-sequence"]) - Number(other.headers["webhook-sequence"]))
    expect(retried.map(({ headers }) => [headers["webhook-sequence"], headers["x-service-attempt"]])).toEqual([
      ["1", "2"],
      ["2", "2"],
      ["3", "2"]
    ])
    await until(
      "the end of the queue",
      async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE webhook_id = $1", [id])).length === 0
    )
    // Their workflows have ended too, and a paused or disabled webhook has nothing to retry.
    await until("commands", async () => (await app.sql("SELECT 1 FROM commands")).length === 0)
    for (const [status, code] of [
      ["PAUSED", "webhook_paused"],
      ["DISABLED", "webhook_disabled"]
    ]) {
      await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status } })
      const refused = await owner.request("POST", `/api/webhooks/${id}/retry-waiting`, {})
      expect([refused.status, refused.json.code]).toEqual([409, code])
    }
  })

  test("is canceled when an owner cancels it, and later events are sent", async () => {
    const id = await three("/none", 40)
    await refusals(id, "cancel-waiting")
    expect((await owner.request("POST", `/api/webhooks/${id}/cancel-waiting`, {})).status).toBe(200)
    expect(await lastEntry()).toMatchObject({ action: "webhook.deliveries_canceled", target: { type: "webhook", id } })
    await until("all of them", async () => (await all(id)).every(({ status }: { status: string }) => status === "CANCELED"))
    expect((await all(id)).map(({ failureReason }: { failureReason: string }) => failureReason)).toEqual(["MANUAL", "MANUAL", "MANUAL"])
    await until("the end of it", async () => (await app.sql("SELECT 1 FROM webhook_queues WHERE cancel_to IS NOT NULL")).length === 0)
    receiver.on("/none", () => new Response("yes"))
    await app.feed([transaction("vault_a", 44)])
    await until("the next event", () => receiver.to("/none").length === 4)
  })
})

describe("a request preview", () => {
  test("is the request as it would be sent now, and the libraries verify it", async () => {
    const { delivery, webhook } = await waiting("/preview", 3, { headers: [{ name: "x-api-key", value: "planted-key" }] })
    expect((await member.request("POST", `/api/deliveries/${delivery.id}/request-preview`, {})).status).toBe(403)
    const preview = (await owner.request("POST", `/api/deliveries/${delivery.id}/request-preview`, {})).json
    const [sent] = receiver.to("/preview")
    expect([preview.url, preview.body]).toEqual([receiver.url("/preview"), sent?.body])
    expect(preview.headers["x-service-attempt"]).toBe("2")
    expect([preview.headers["x-api-key"], sent?.headers["x-api-key"]]).toEqual(["***", "planted-key"])
    for (const name of Object.keys(preview.headers)) expect(sent?.headers[name]).toBeDefined()
    expect(() => new StandardWebhook(webhook.secret).verify(preview.body, preview.headers)).not.toThrow()
    expect(JSON.stringify(preview)).not.toContain("whsec_")
  })
})

describe("the verification code that the portal shows", () => {
  /** Runs the code with the webhook's secret on a request that an endpoint received, and returns its result. */
  const run = async (name: "Library" | "Node.js" | "Python", secret: string, body: string, headers: Readonly<Record<string, string>>) => {
    const text = verificationCode.find((one) => one.name === name)?.text ?? ""
    // Inside node_modules, so that its library is found.
    const folder = path.resolve(import.meta.dir, "../../node_modules/.cache")
    fs.mkdirSync(folder, { recursive: true })
    const file = path.join(folder, `verification-${process.pid}.${name === "Python" ? "py" : "mjs"}`)
    const given = JSON.stringify({ body, headers, secret })
    const js = `${text}\nconst { body, headers, secret } = JSON.parse(process.argv[2])\nconsole.log(JSON.stringify(verify(body, ${name === "Library" ? "headers" : 'headers["x-service-signature"]'}, secret)))\n`
    const py = `${text}\nimport sys\ngiven = json.loads(sys.argv[1])\nprint(json.dumps(verify(given["body"].encode(), given["headers"]["x-service-signature"], given["secret"])))\n`
    fs.writeFileSync(file, name === "Python" ? py : js)
    try {
      const child = Bun.spawn([name === "Python" ? "python3" : process.execPath, file, given], {
        stdout: "pipe",
        stderr: "pipe"
      })
      const [out, code] = await Promise.all([new Response(child.stdout).text(), child.exited])
      return code === 0 ? JSON.parse(out).id : "refused"
    } finally {
      fs.rmSync(file)
    }
  }

  for (const [index, name] of (["Library", "Node.js", "Python"] as const).entries()) {
    test.skipIf(name === "Python" && Bun.which("python3") === null)(
      `${name}: accepts what the service sent, and nothing else`,
      async () => {
        const { webhook } = await waiting(`/verify-${name}`, 10 + index)
        const [sent] = receiver.to(`/verify-${name}`)
        if (sent === undefined) throw new Error("nothing was sent")
        expect(await run(name, webhook.secret, sent.body, sent.headers)).toBe(JSON.parse(sent.body).id)
        expect(await run(name, webhook.secret, sent.body.replace('"amount":"1"', '"amount":"9"'), sent.headers)).toBe("refused")
        expect(await run(name, `whsec_${Buffer.alloc(32).toString("base64")}`, sent.body, sent.headers)).toBe("refused")
      }
    )
  }
})
