/** However slow and frequent one organization's requests are, they leave capacity for the others. */
import { beforeAll, describe, expect, test } from "bun:test"
import * as HttpApi from "@effect/platform/HttpApi"
import pg from "pg"
import { CONCURRENCY } from "../../../src/access/visibility/Admission.ts"
import { PortalApi } from "../../../src/portal/server/PortalApi.ts"
import { signedIn, type Visitor } from "../../portal/client.ts"
import { useApi } from "../../support/api.ts"
import { until } from "../../support/receiver.ts"
import { entity, organization, smallest, user, vault } from "../../support/records.ts"
import { create, fields } from "../../support/webhookFixtures.ts"

const app = useApi()
let key = "",
  otherKey = "",
  webhookId = "",
  visitor: Visitor

beforeAll(async () => {
  // What is refused with 503 is what is tested.
  app.patient = false
  await app.feed([
    ...smallest(),
    organization("org_b", ["ethereum"]),
    entity("entity_b", "org_b"),
    vault("vault_b", "entity_b"),
    user("user_b", "org_b", ["vault_b"]),
    user("user_a", "org_a", ["vault_a"], { organizationRole: "owner" })
  ])
  key = (await app.key("user_a")).secret
  otherKey = (await app.key("user_b")).secret
  webhookId = (await create(app, key)).id
  visitor = await signedIn(app, "user_a")
})

/** Runs a function while statements on one table, and on no other, wait for a lock. */
const whileLocked = async (table: string, run: () => Promise<void>) => {
  const client = new pg.Client({ connectionString: app.databaseUrl })
  await client.connect()
  try {
    await client.query("BEGIN")
    await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
    await run()
  } finally {
    await client.query("ROLLBACK")
    await client.end()
  }
}

const slow = (count: number, signal?: AbortSignal) =>
  Array.from({ length: count }, () =>
    app.send("api", `/v1/vaults/vault_a/addresses`, {
      headers: { authorization: `Bearer ${key}` },
      ...(signal === undefined ? {} : { signal })
    })
  )

/** Waits until every slot of the organization is held by a request that waits for a lock. */
const allTaken = () =>
  until("requests that have a slot", async () => {
    const waits = await app.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
    return waits.length === CONCURRENCY
  })

/** The duration of each read of another organization while these requests are in progress, sorted; endless if one was refused. */
const othersMeanwhile = async (all: Promise<unknown>): Promise<ReadonlyArray<number>> => {
  let done = false
  void all.finally(() => {
    done = true
  })
  const waits: Array<number> = []
  while (!done && waits.length < 200) {
    const asked = performance.now()
    let refused = false
    for (const target of ["/v1/vaults", "/v1/vaults/vault_b/transactions", "/v1/networks"]) {
      const { status } = await app.get(target, otherKey)
      expect([200, 503]).toContain(status)
      refused ||= status === 503
    }
    // A pause of the machine may refuse one, not half of them.
    waits.push(refused ? Number.POSITIVE_INFINITY : (performance.now() - asked) / 3)
    await Bun.sleep(25)
  }
  await all
  return waits.sort((a, b) => a - b)
}
const median = (sorted: ReadonlyArray<number>) => sorted[Math.floor(sorted.length / 2)] ?? 0

describe("concurrent requests are limited for each organization", () => {
  test("one organization's slow reads do not slow another's, and wait a second before 503", async () => {
    await whileLocked("deposit_addresses", async () => {
      const measure = async () => {
        const begun = performance.now()
        const all = Promise.all(
          slow(40).map(async (answer) => {
            const { headers, status } = await answer
            return { status, retryAfter: headers.get("retry-after"), took: performance.now() - begun }
          })
        )
        const waits = await othersMeanwhile(all)
        const answers = await all
        expect(new Set(answers.map(({ retryAfter, status }) => `${status} ${retryAfter}`))).toEqual(new Set(["503 1"]))
        // Requests without a slot do not wait for the statement timeout of two seconds.
        return { waits, soon: answers.filter(({ took }) => took > 900 && took < 1_900).length }
      }
      let measured = await measure()
      // A pause of the machine may take up a whole measurement.
      for (let again = 0; (measured.soon < 20 || measured.waits.length <= 10) && again < 3; again++) measured = await measure()
      expect(measured.soon).toBeGreaterThanOrEqual(20)
      expect(measured.waits.length).toBeGreaterThan(10)
      expect(median(measured.waits)).toBeLessThan(250)
    })
  })

  test("a slot is released after a response, a failure, and a client's disconnect while waiting", async () => {
    await whileLocked("deposit_addresses", async () => {
      const controller = new AbortController()
      const given = slow(20, controller.signal).map((answer) => answer.catch(() => undefined))
      await allTaken()
      controller.abort()
      await Promise.all(given)
    })
    // Every slot is free again: as many as the limit run at once, and the others wait.
    // A connection whose statement was canceled may still have to be replaced.
    await until("free slots", async () => {
      const answers = await Promise.all(Array.from({ length: 30 }, () => app.get("/v1/vaults/vault_a/addresses", key)))
      return answers.every(({ status }) => status === 200)
    })
  })

  const since = new Date(Date.now() - 3_600_000).toISOString()
  const api = (method: string, target: () => string, body?: unknown) => () =>
    app.request(method, target(), { key, ...(body === undefined ? {} : { body }) })
  for (const [what, table, ask] of [
    ["changes of webhooks", "webhooks", api("PATCH", () => `/v1/webhooks/${webhookId}`, { description: "x" })],
    ["creations of webhooks", "webhook_entities", api("POST", () => "/v1/webhooks", fields())],
    ["rotations", "webhooks", api("POST", () => `/v1/webhooks/${webhookId}/rotate-secret`)],
    ["pings", "webhooks", api("POST", () => `/v1/webhooks/${webhookId}/ping`)],
    ["recoveries", "recoveries", api("POST", () => `/v1/webhooks/${webhookId}/recoveries`, { since })],
    ["previews", "events", api("POST", () => "/v1/webhooks/preview", { entityIds: ["entity_a"], eventKinds: ["vault.created"] })],
    ["the audit log", "audit_log", api("GET", () => "/v1/audit-log")],
    ["the event feed", "events", api("GET", () => "/v1/event-feed")],
    ["checkpoints", "event_checkpoints", api("GET", () => "/v1/event-checkpoints?entityId=entity_a")],
    ["statements", "statements", api("GET", () => "/v1/vaults/vault_a/statements")],
    ["the portal's search", "webhooks", () => visitor.get("/api/search?q=custody")],
    ["the portal's charts", "webhook_counters", () => visitor.get(`/api/webhook-traffic?ids=${webhookId}`)],
    ["public keys", "signing_keys", () => app.get("/v1/jwks.json")]
  ] as const)
    test(`${what} of one organization, all stuck in the database, do not slow other organizations' reads`, async () => {
      await whileLocked(table, async () => {
        let waits: ReadonlyArray<number> = []
        // A pause of the machine may take up a whole measurement.
        for (let round = 0; waits.length <= 5 && round < 4; round++) {
          const all = Promise.all(Array.from({ length: 40 }, () => ask()))
          waits = await othersMeanwhile(all)
          expect(new Set((await all).map(({ status }) => status))).toEqual(new Set([503]))
        }
        expect(waits.length).toBeGreaterThan(5)
        expect(median(waits)).toBeLessThan(250)
      })
    })

  test("every read of the portal's own routes waits for a slot", async () => {
    const paths: Array<string> = []
    HttpApi.reflect(PortalApi, {
      onGroup: () => {},
      onEndpoint: ({ endpoint: { method, name, path } }) => {
        // None of these reads data of the organization.
        if (method !== "GET" || ["getSession", "providerCallback", "getEventKind"].includes(name)) return
        paths.push(`${path.slice("/portal".length).replace(/:\w+/, "x")}`)
      }
    })
    const left = new Set(paths)
    expect([left.has("/api/members"), left.size > 15]).toEqual([true, true])
    await whileLocked("deposit_addresses", async () => {
      // On a busy machine, slots may be free again when a request asks for one.
      for (let round = 0; left.size > 0 && round < 5; round++) {
        const taken = Promise.all(slow(40))
        // Otherwise a read on an open connection takes a slot before the forty have connected.
        await allTaken()
        for (const [path, { json }] of await Promise.all([...left].map(async (path) => [path, await visitor.get(path)] as const)))
          if (json.detail?.includes("too many requests in progress")) left.delete(path)
        await taken
      }
    })
    expect([...left]).toEqual([])
  })
})
