/** Postgres unreachable, unresponsive or slow: 503 with Retry-After in time, readiness names it, and recovery needs no restart. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import pg from "pg"
import { App } from "../../support/app.ts"
import { Proxy } from "../../support/proxy.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction } from "../../support/records.ts"
import { freshDatabase } from "../../support/servers.ts"

/** The program reaches its database through a proxy that tests close and open. */
const app = new App()
let proxy: Proxy
let key = ""

beforeAll(async () => {
  const url = await freshDatabase()
  proxy = new Proxy(url)
  await proxy.open()
  await app.open(["api"], { DATABASE_URL: proxy.url })
  app.databaseUrl = url
  await app.feed(smallest())
  key = (await app.key("user_a")).secret
  // What is refused with 503 is what is tested.
  app.patient = false
})
afterAll(async () => {
  await app.close()
  await proxy.cut()
})

const ready = async () => {
  const response = await fetch(`${app.main?.platformUrl}/health/ready`)
  return { status: response.status, body: (await response.json()) as { ready: boolean; dependencies: { postgres: string } } }
}
const timed = async <A>(work: () => Promise<A>): Promise<readonly [A, number]> => {
  const begun = performance.now()
  return [await work(), performance.now() - begun]
}
/** Waits until reads work again and returns how long that took. */
const recovery = async () => {
  const [, took] = await timed(() => until("reads that work", async () => (await app.get("/v1/vaults", key)).status === 200))
  return took
}
const unavailable = async (target: string) => {
  const [answer, took] = await timed(() => app.get(target, key))
  expect([target, answer.status, answer.json.code]).toEqual([target, 503, "service_unavailable"])
  expect(answer.headers.get("content-type")).toBe("application/problem+json")
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
  expect(answer.text).not.toMatch(/postgres|ECONN|127\.0\.0\.1|sql|timeout/i)
  return took
}
const targets = ["/v1/vaults", "/v1/vaults/vault_a", "/v1/vaults/vault_a/transactions", "/v1/networks", "/v1/nothing"]

/** Runs a function while the table of transactions is locked, so that reads of it wait. */
const whileLocked = async (run: () => Promise<void>) => {
  const client = new pg.Client({ connectionString: app.databaseUrl })
  await client.connect()
  try {
    await client.query("BEGIN")
    await client.query("LOCK TABLE transactions IN ACCESS EXCLUSIVE MODE")
    await run()
  } finally {
    await client.query("ROLLBACK")
    await client.end()
  }
}

describe("Postgres is unreachable", () => {
  test("reads and the feed get 503 with Retry-After, and recover without a restart", async () => {
    await proxy.cut()
    for (const target of targets) expect(await unavailable(target)).toBeLessThan(6_000)
    const fed = await app.records([transaction("vault_a", 1)])
    expect([fed.status, fed.json.code, fed.headers.get("retry-after")]).toEqual([503, "service_unavailable", "1"])

    const { body, status } = await ready()
    expect([status, body.ready]).toEqual([503, false])
    expect(body.dependencies.postgres).toContain("Postgres")
    expect((await fetch(`${app.main?.platformUrl}/health/live`)).status).toBe(200)
    expect((await fetch(`${app.main?.platformUrl}/metrics`)).status).toBe(200)
    expect((await app.get("/v1/openapi.json")).status).toBe(200)
    expect((await app.get("/v1/vaults")).status).toBe(401)

    await proxy.open()
    expect(await recovery()).toBeLessThan(20_000)
    expect((await ready()).body).toMatchObject({ ready: true, dependencies: { postgres: "ok" } })
    expect((await app.records([transaction("vault_a", 1)])).json).toMatchObject({ changed: 1, events: 1 })
  })

  test("a database that is renamed for a restore is unavailable until it is back", async () => {
    const url = new URL(app.databaseUrl)
    const name = url.pathname.slice(1)
    const server = new pg.Client({ connectionString: Object.assign(new URL(url), { pathname: "/postgres" }).href })
    await server.connect()
    try {
      await until("the database to be renamed", async () => {
        await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [name])
        return server.query(`ALTER DATABASE ${name} RENAME TO ${name}_old`).then(
          () => true,
          () => false
        )
      })
      for (const target of targets) await unavailable(target)
      await server.query(`ALTER DATABASE ${name}_old RENAME TO ${name}`)
      await recovery()
    } finally {
      await server.end()
    }
  })

  test("connections that break under load cause 200 or 503 and nothing else", async () => {
    const statuses = new Map<number, number>()
    let running = true
    const load = Array.from({ length: 8 }, async () => {
      while (running) {
        const { status } = await app.get("/v1/vaults/vault_a/transactions", key)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    })
    try {
      for (let round = 0; round < 5; round++) {
        await Bun.sleep(100)
        await proxy.cut()
        await Bun.sleep(30)
        await proxy.open()
      }
      await Bun.sleep(100)
    } finally {
      running = false
    }
    await Promise.all(load)
    expect([...statuses.keys()].sort()).toEqual([200, 503])
    expect(await recovery()).toBeLessThan(20_000)
  })
})

describe("Postgres is slow or overloaded", () => {
  test("a hanging read gets 503 within seconds, and reads recover with Postgres", async () => {
    await app.get("/v1/vaults", key)
    proxy.silence()
    const [hung, took] = await timed(() => Promise.all(Array.from({ length: 30 }, () => app.get("/v1/vaults/vault_a/transactions", key))))
    expect(new Set(hung.map(({ json, status }) => `${status} ${json.code}`))).toEqual(new Set(["503 service_unavailable"]))
    expect(took).toBeLessThan(25_000)
    expect((await ready()).status).toBe(503)
    await proxy.cut()
    await proxy.open()
    expect(await recovery()).toBeLessThan(20_000)
  })

  test("a request that finds every connection in use gets 503 within seconds", async () => {
    await whileLocked(async () => {
      // Ten connections, each held for two seconds: a request that queued for one would wait twelve.
      const answers = await Promise.all(Array.from({ length: 60 }, () => timed(() => app.get("/v1/vaults/vault_a/transactions", key))))
      expect(new Set(answers.map(([{ json, status }]) => `${status} ${json.code}`))).toEqual(new Set(["503 service_unavailable"]))
      expect(Math.max(...answers.map(([, took]) => took))).toBeLessThan(11_000)
    })
    expect(await recovery()).toBeLessThan(20_000)
  })

  test("a statement that waits for a lock times out after two seconds", async () => {
    await whileLocked(async () => {
      const took = await unavailable("/v1/vaults/vault_a/transactions")
      expect(took).toBeGreaterThan(1_500)
      expect(took).toBeLessThan(20_000)
      // Other reads go on meanwhile.
      expect((await app.get("/v1/vaults/vault_a/balances", key)).status).toBe(200)
    })
    expect((await app.get("/v1/vaults/vault_a/transactions", key)).status).toBe(200)
  })
})

describe("a client that disconnects", () => {
  test("leaves no broken connection behind: after 40 aborted requests, later requests succeed", async () => {
    for (let round = 0; round < 40; round++) {
      const controller = new AbortController()
      const request = fetch(`${app.main?.baseUrl}/v1/vaults/vault_a/transactions?limit=500`, {
        headers: { authorization: `Bearer ${key}` },
        signal: controller.signal
      }).catch(() => undefined)
      await Bun.sleep(round % 6)
      controller.abort()
      await request
    }
    await until("responses to all", async () => {
      const answers = await Promise.all(Array.from({ length: 40 }, () => app.get("/v1/vaults/vault_a/transactions", key)))
      return answers.every(({ status }) => status === 200)
    })
    expect(app.main?.output()).not.toContain('"status":500')
  })
})
