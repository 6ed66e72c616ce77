/** Changes of webhooks that could leak data need a session's second factor, but nothing more from a key. Decision D-49. */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../support/api.ts"
import { smallest } from "../support/records.ts"
import { create, fields, patch, short } from "../support/webhookFixtures.ts"
import { signedIn, type Visitor } from "./client.ts"

const app = useApi()
let owner: Visitor,
  key = "",
  id = ""

beforeAll(async () => {
  await app.feed(smallest())
  key = (await app.key("user_a")).secret
  id = (await create(app, key)).id
  owner = await signedIn(app, "user_a")
})

const confirmed = (confirmation: unknown) => ({ "x-portal-confirmation": JSON.stringify(confirmation) })
const change = (body: unknown, headers = {}) => owner.request("PATCH", `/api/v1/webhooks/${id}`, body, headers)

test("a new URL needs a code in the same request, and a code works once", async () => {
  const url = "https://hooks.example.com/elsewhere"
  for (const headers of [{}, confirmed({}), confirmed({ code: "" }), { "x-portal-confirmation": "nonsense" }]) {
    expect(short(await change({ url }, headers))).toBe("403 second_factor_required")
  }
  expect(short(await change({ url }, confirmed({ code: "000000" })))).toBe("403 second_factor_failed")
  expect((await app.get(`/v1/webhooks/${id}`, key)).json.url).toBe("https://hooks.example.com/custody")
  const code = owner.backupCode()
  expect(short(await change({ url }, confirmed({ code })))).toBe("200")
  expect(short(await change({ url: "https://hooks.example.com/again" }, confirmed({ code })))).toBe("403 second_factor_failed")
  // Neither the same URL nor any other change needs one.
  expect(short(await change({ url, description: "ledger" }))).toBe("200")
})

test("a session without a code does not undo a move that happens meanwhile", async () => {
  const url = (number: number) => `https://hooks.example.com/moved/${number}`
  for (let number = 0; number < 10; number++) {
    await patch(app, key, id, { url: url(number) })
    const move = patch(app, key, id, { url: url(number + 1) })
    await Promise.all([move, ...Array.from({ length: 4 }, () => change({ url: url(number) }))])
    expect((await app.get(`/v1/webhooks/${id}`, key)).json.url).toBe(url(number + 1))
  }
})

test("a webhook is created only with a code, which an invalid request does not use", async () => {
  const url = "https://hooks.example.com/new"
  const post = (more: object, headers = {}) => owner.request("POST", "/api/v1/webhooks", fields({ url, ...more }), headers)
  const count = async () => (await app.sql("SELECT 1 FROM webhooks WHERE url = $1", [url])).length
  // A disabled one could be enabled afterwards, without any code.
  for (const more of [{}, { status: "DISABLED" }])
    for (const headers of [{}, confirmed({}), confirmed({ code: "" }), { "x-portal-confirmation": "nonsense" }])
      expect(short(await post(more, headers))).toBe("403 second_factor_required")
  expect(short(await post({}, confirmed({ code: "000000" })))).toBe("403 second_factor_failed")
  expect(await count()).toBe(0)

  const code = owner.backupCode()
  for (const [more, refusal] of [
    [{ url: "https://10.0.0.1/new" }, "422 url_not_deliverable"],
    [{ entityIds: ["entity_unknown"] }, "400 invalid_body"],
    [{ vaultIds: ["vault_unknown"] }, "400 invalid_body"],
    [{ eventKinds: [] }, "400 invalid_body"]
  ] as const) {
    expect([more, short(await post(more))]).toEqual([more, refusal])
    expect([more, short(await post(more, confirmed({ code })))]).toEqual([more, refusal])
  }
  const once = { ...confirmed({ code }), "idempotency-key": "creation" }
  const made = await post({}, once)
  expect([short(made), made.json.secret.startsWith("whsec_")]).toEqual(["201", true])
  // The stored response contains the secret: it needs a code as well, and a new one.
  for (const headers of [once, { "idempotency-key": "creation" }]) expect((await post({}, headers)).status).toBe(403)
  const again = await post({}, { ...confirmed({ code: owner.backupCode() }), "idempotency-key": "creation" })
  expect([again.json.id, again.json.secret]).toEqual([made.json.id, made.json.secret])
  expect(await count()).toBe(1)
})

test("an invalid change uses up no code", async () => {
  const code = owner.backupCode()
  expect(short(await change({ url: "https://10.0.0.1/" }, confirmed({ code })))).toBe("422 url_not_deliverable")
  expect(short(await change({ url: "https://hooks.example.com/elsewhere", vaultIds: ["vault_unknown"] }, confirmed({ code })))).toBe(
    "400 invalid_body"
  )
  expect(short(await change({ url: "https://hooks.example.com/moved" }, confirmed({ code })))).toBe("200")
})

test("a secret is rotated only with a code, whatever the spelling of the path", async () => {
  for (const path of [
    `/api/v1/webhooks/${id}/rotate-secret`,
    `/api/v1/webhooks/${id}/rotate%2Dsecret`,
    `/api/v1/%77ebhooks/${id}/rotate-secret`
  ]) {
    const refused = await owner.request("POST", path, {})
    expect([path, refused.status >= 400, refused.text.includes("whsec_")]).toEqual([path, true, false])
  }
  const answer = await owner.request("POST", `/api/v1/webhooks/${id}/rotate-secret`, {}, confirmed({ code: owner.backupCode() }))
  expect([short(answer), answer.json.secret.startsWith("whsec_")]).toEqual(["200", true])
})

test("an API key needs no code for any of this", async () => {
  expect((await create(app, key)).secret).toStartWith("whsec_")
  expect(short(await patch(app, key, id, { url: "https://hooks.example.com/by-key" }))).toBe("200")
  expect(short(await app.request("POST", `/v1/webhooks/${id}/rotate-secret`, { key, headers: confirmed({ code: "0" }) }))).toBe("200")
})
