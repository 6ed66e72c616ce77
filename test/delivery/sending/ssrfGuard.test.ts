/**
 * The SSRF guard over the whole corpus of internal addresses: none of them is ever connected to, by
 * creation, update, ping or delivery, whatever a name server answers from one query to the next.
 * Decision D-30; reliability T1, T2, T5, F21.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as net from "node:net"
import { Effect } from "effect"
import { choose, lookup } from "../../../src/delivery/sending/request/ssrfGuard.ts"
import { long } from "../../faults/Rig.ts"
import { App } from "../../support/app.ts"
import { deliveriesOf, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { Dns } from "../../support/dns.ts"
import { Receiver, until } from "../../support/receiver.ts"
import { names, vectors } from "../../support/ssrf.ts"

const app = new App()
const dns = new Dns()
/** The only allowed address, and a listener at every other address of the machine on the same port. */
const outside = new Receiver()
const OUTSIDE = "127.0.9.1"
const traps: Array<net.Server> = []
let connections = 0
let key = ""

/** Runs it for each item, a few at a time. */
const each = async <A>(items: ReadonlyArray<A>, run: (item: A, index: number) => Promise<void>, concurrency = 8) => {
  const queue = items.map((item, index) => [item, index] as const)
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) await run(...next)
    })
  )
}

const trap = (host: string, port: number) =>
  new Promise<void>((resolve) => {
    const server = net.createServer((socket) => {
      connections++
      socket.destroy()
    })
    server.once("error", () => resolve())
    server.listen(port, host, () => {
      traps.push(server)
      resolve()
    })
  })

beforeAll(async () => {
  await Promise.all([outside.open(OUTSIDE, ["*.guard.test"]), dns.open()])
  for (const port of [outside.port, 443, 8443])
    for (const host of ["127.0.0.1", "127.0.1.1", "127.255.255.254", "::1"]) await trap(host, port)
  for (const { answers, host } of names)
    dns.on(host, { a: answers.filter((text) => !text.includes(":")), aaaa: answers.filter((text) => text.includes(":")) })
  dns.on("out.guard.test", { a: [OUTSIDE] })
  dns.on("alias.guard.test", { cname: "inside.guard.test", a: ["127.0.0.1"] })
  dns.on("flips.guard.test", (count) => ({ a: [count % 2 === 0 ? OUTSIDE : "127.0.0.1"] }))
  dns.on("turns.guard.test", (count, type) => (type === "a" ? { a: [OUTSIDE] } : count % 4 < 2 ? { aaaa: ["::1"] } : {}))
  await app.open(["api", "worker", "dispatcher"], {
    WEBHOOK_ALLOW_CIDRS: "127.0.9.0/24",
    WEBHOOK_ALLOW_PORTS: `${outside.port},9`,
    WEBHOOK_EXTRA_CA: outside.caFile,
    WEBHOOK_DNS_SERVERS: dns.address,
    WEBHOOK_RETRY_SCHEDULE: "0s"
  })
  key = await feedOrganization(app, 11)
})
afterAll(async () => {
  await app.close()
  await outside.close()
  for (const server of traps) server.close()
  dns.close()
})

const url = (name: string) => `https://${name}.guard.test:${outside.port}/inside`

/** Webhooks of an entity whose URLs were set without the rules, like webhooks older than a rule. */
const plant = async (entity: number, urls: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  await each(urls, async (target, index) => {
    ids[index] = (await webhookOf(app, key, entity, url("out"), { status: "DISABLED" })).id
    await app.sql("UPDATE webhooks SET url = $2, status = 'ACTIVE', disabled_reason = NULL, disabled_at = NULL WHERE id = $1", [
      ids[index],
      target
    ])
  })
  return ids
}

/** Pings a webhook, and repeats a ping that a busy machine answers with 503 after 14 s or more, as its client would. */
const ping = (id: string | undefined) =>
  until(
    "the answer of a ping",
    async () => {
      const answer = await app.request("POST", `/v1/webhooks/${id}/ping`, { key })
      return answer.status !== 503 && answer
    },
    90
  )

/** Everything in a long run (`bun run faults`), otherwise one in so many. */
const some = <A>(items: ReadonlyArray<A>, oneIn: number): ReadonlyArray<A> =>
  long ? items : items.filter((_, index) => index % oneIn === 0)

const blocked = { result: "blocked_address", httpStatus: 0, bodySnippet: null, latencyMs: 0 }

/** Webhooks of an entity, at most: it may have a hundred. */
const OF_ENTITY = 90

/** Pings each webhook and sends each an event, and expects all of it to be refused with the same message. Uses entities from the first on. */
const expectBlocked = async (first: number, urls: ReadonlyArray<string>) => {
  const entities = Array.from({ length: Math.ceil(urls.length / OF_ENTITY) }, (_, index) => first + index)
  const ids: Array<string> = []
  for (const entity of entities) ids.push(...(await plant(entity, urls.slice(ids.length, ids.length + OF_ENTITY))))
  await each(some(ids, 6), async (id) => {
    const index = ids.indexOf(id)
    const answer = await ping(id)
    expect([urls[index], answer.status, answer.json]).toMatchObject([urls[index] ?? "", 200, { success: false, ...blocked }])
  })
  await feedTransactions(app, entities)
  await until(
    "every delivery's end",
    async () => {
      const [row] = await app.sql("SELECT count(*)::int AS count FROM deliveries d WHERE d.webhook_id = ANY($1) AND status = 'FAILED'", [
        ids
      ])
      return row?.["count"] === ids.length
    },
    200
  )
  await each(ids, async (id, index) => {
    const [delivery] = await deliveriesOf(app, key, id)
    expect([urls[index], delivery.attempts]).toMatchObject([urls[index] ?? "", [blocked]])
  })
}

describe("no internal address is reached by ping or delivery", () => {
  const refused = some(
    vectors.map(({ url: text }) => text).filter((text) => !text.includes("\u0000")),
    8
  )
  test(`through ${refused.length} URLs that are refused at creation, even if a webhook has one`, () => expectBlocked(3, refused))

  const hosts = some(names, 3)
  test(`through ${hosts.length} names that resolve to internal addresses, wholly, partly or by an alias`, async () => {
    await expectBlocked(1, [...hosts.map(({ host }) => `https://${host}:${outside.port}/inside`), url("alias")])
  })

  test("an allowed address is reached: the guard refuses requests, and they do not merely fail", async () => {
    const { id } = await webhookOf(app, key, 10, url("out"), { status: "DISABLED" })
    expect((await app.request("POST", `/v1/webhooks/${id}/ping`, { key })).json).toMatchObject({ success: true, result: "2xx" })
  })

  test("a name server that changes its answers gains nothing", async () => {
    const ids = await plant(10, [url("flips"), url("turns")])
    const results = new Map<string, number>()
    await each(
      Array.from({ length: long ? 1_000 : 48 }, (_, index) => ids[index % 2]),
      async (id) => {
        const { result } = (await ping(id)).json
        results.set(result, (results.get(result) ?? 0) + 1)
      }
    )
    // Both outcomes occur, and no other: the checked address is the one that was connected to.
    expect([...results.keys()].sort()).toEqual(["2xx", "blocked_address"])
    for (const count of results.values()) expect(count).toBeGreaterThan(8)
  })

  test("responses do not distinguish an open internal port from a closed one", async () => {
    const [open, closed] = await plant(10, [`https://127.0.0.1.nip.example:${outside.port}/`, "https://127.0.0.1.nip.example:9/"])
    const answers = await Promise.all([open, closed].map((id) => app.request("POST", `/v1/webhooks/${id}/ping`, { key })))
    const [first, second] = answers.map(({ json: { at, eventId, webhookId, ...rest } }) => rest)
    expect(first).toEqual(second)
  })

  test("no connection was made to any internal listener", () => {
    expect(traps.length).toBeGreaterThan(0)
    expect(connections).toBe(0)
  })
})

test("of a name with many addresses, few are checked and used", async () => {
  const many = Array.from({ length: 50 }, (_, number) => `8.8.8.${number}`)
  dns.on("many.guard.test", { a: many })
  const policy = { allow: [], own: new Set<string>(), speaks6: Effect.succeed(false) }
  const { address, allowed } = await Effect.runPromise(choose("many.guard.test", policy, lookup([dns.address]), 33))
  expect([allowed.length, allowed.every((one) => many.includes(one)), address]).toEqual([32, true, allowed[1] ?? ""])
})
