/**
 * The API process is killed in the middle of requests, about once a second, while another process delivers. A request
 * takes effect completely or not at all, and repeating it with the same Idempotency-Key carries it out once
 * and returns the same response. Reliability F4.
 */
import { describe, expect, test } from "bun:test"
import type { Answer } from "../support/app.ts"
import { long, report, sound, useRig } from "./Rig.ts"

const rig = useRig({}, ["api"])
const CLIENTS = 4
/** Webhooks of a client, at most: an entity may have a hundred. */
const CREATED = 24

/** How requests ended: by status and code, or by a refused or broken connection. */
const ends = new Map<string, number>()
const count = (end: string) => ends.set(end, (ends.get(end) ?? 0) + 1)

/** A request to the API; undefined without a response. */
const ask = async (method: string, target: string, options: Parameters<typeof rig.app.request>[2] = {}): Promise<Answer | undefined> => {
  try {
    const answer = await rig.app.request(method, target, { key: rig.key, ...options })
    count(answer.status < 300 ? String(answer.status) : `${answer.status} ${answer.json?.code}`)
    return answer
  } catch (error) {
    count(error instanceof Error && "code" in error && error.code === "ECONNREFUSED" ? "refused" : "broken off")
    return undefined
  }
}

/** Repeats a request with the same key until it gets 2xx, like a client that does not know its outcome. */
const insist = async (target: string, idempotencyKey: string, body?: unknown): Promise<Answer> => {
  for (;;) {
    const answer = await ask("POST", target, { headers: { "idempotency-key": idempotencyKey }, ...(body === undefined ? {} : { body }) })
    if (answer !== undefined && answer.status < 300) return answer
    await Bun.sleep(100)
  }
}

describe("kills of the API in the middle of requests", () => {
  test(`killed about once a second ${long ? "for a minute" : "twice"}: nothing is half done, and nothing is done twice`, async () => {
    await rig.app.start(["worker", "dispatcher"])
    let over = false
    const created = new Map<string, string>()
    const body = {
      url: "https://hooks.example.com/requests",
      entityIds: ["entity_0", "entity_1"],
      eventKinds: ["balance.updated"],
      notificationEmail: "ops@example.com",
      status: "DISABLED"
    }
    const creating = Array.from({ length: CLIENTS }, async (_, client) => {
      for (let number = 0; !over && number < CREATED; number++) {
        const key = `create-${client}-${number}`
        const { json, text } = await insist("/v1/webhooks", key, body)
        expect(created.has(json.id)).toBe(false)
        created.set(json.id, text)
        expect((await insist("/v1/webhooks", key, body)).text).toBe(text)
        const rotated = await insist(`/v1/webhooks/${json.id}/rotate-secret`, `rotate-${json.id}`)
        expect((await insist(`/v1/webhooks/${json.id}/rotate-secret`, `rotate-${json.id}`)).text).toBe(rotated.text)
      }
    })
    const reading = (async () => {
      for (; !over; await Bun.sleep(20)) await ask("GET", "/v1/vaults/vault_0/transactions")
    })()
    const feeding = (async () => {
      while (!over) await rig.feed(10, 50)
    })()
    const begun = Date.now()
    let kills = 0
    for (; long ? Date.now() - begun < 60_000 : kills < 2; kills++) {
      await Bun.sleep(1_000)
      await rig.app.main?.end("SIGKILL")
      await rig.restart({}, ["api"])
    }
    over = true
    await Promise.all([...creating, reading, feeding])
    await rig.settle()

    expect(ends.get("refused")).toBeGreaterThan(0)
    const figures = { kills, webhooks: created.size, ...Object.fromEntries(ends) }
    // Kills met requests in flight, and every response was an ordinary one.
    expect(ends.get("broken off")).toBeGreaterThan(0)
    const usual = ["200", "201", "409 idempotency_in_progress", "503 service_unavailable", "refused", "broken off"]
    expect([...ends.keys()].filter((end) => !usual.includes(end))).toEqual([])
    const listed = (await rig.app.walk("/v1/webhooks", rig.key, 500)).filter(({ url }) => url === body.url)
    expect(listed.map(({ id }) => id).sort()).toEqual([...created.keys()].sort())
    for (const one of listed) {
      const { createdAt, entityIds, secret, ...rest } = JSON.parse(created.get(one.id) ?? "")
      expect(secret).toStartWith("whsec_")
      expect(one).toMatchObject({
        ...rest,
        createdAt,
        entityIds,
        previousSecretExpiresAt: expect.any(String),
        updatedAt: expect.any(String)
      })
    }
    // No row of a webhook exists without the others, whether or not the API shows it.
    const halves = await rig.app.sql(`
      SELECT w.id FROM webhooks w WHERE w.url = '${body.url}' AND (
        (SELECT count(*) FROM webhook_entities e WHERE e.webhook_id = w.id) <> 2
        OR (SELECT count(*) FROM webhook_secrets s WHERE s.webhook_id = w.id) <> 2
        OR (SELECT count(*) FROM events e WHERE e.kind = 'webhook.secret_rotated' AND e.payload LIKE '%' || w.id || '%') <> 2)`)
    expect(halves).toEqual([])
    const [stored] = await rig.app.sql(`
      SELECT (SELECT count(*) FROM webhooks WHERE url = '${body.url}')::int AS webhooks, (SELECT count(*) FROM idempotency_keys)::int AS answers`)
    expect(stored).toEqual({ webhooks: created.size, answers: created.size * 2 })
    const history = await rig.history()
    report("F4 API killed in mid-request", { ...figures, ...history })
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, repeated: 0 })
  })
})
