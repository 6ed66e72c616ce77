/** Three API processes count together, as behind a load balancer. Decision D-51. */
import { beforeAll, describe, expect, test } from "bun:test"
import { type Process, patiently, useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { smallest } from "../../support/records.ts"

/** So few that a busy machine can ask for more. */
const BURST = 60,
  PER_SECOND = 10
/** Requests of the steady stream at a time. */
const EACH = 8
const ORIGIN = "http://localhost:8080"
const app = useApp(["api"], { RATE_LIMIT: `${PER_SECOND}/1s burst ${BURST}`, TRUSTED_PROXIES: "127.0.0.0/8", PORTAL_BASE_URL: ORIGIN })
let processes: ReadonlyArray<Process> = []

beforeAll(async () => {
  await app.feed(smallest())
  const more = await Promise.all([app.start(["api"]), app.start(["api"])])
  if (app.main === undefined) throw new Error("no process")
  processes = [app.main, ...more]
  // They find each other within a second: each has sent a heartbeat after the last one started.
  const [{ at } = { at: "" }] = await app.sql("SELECT clock_timestamp()::text AS at")
  await until("three processes that know each other", async () => {
    const [row] = await app.sql(
      "SELECT count(*)::int AS n FROM processes WHERE role = 'api' AND seen_at > $1::timestamptz + interval '1 second'",
      [at]
    )
    return row?.["n"] === 3
  })
})

const ask = (number: number, headers: Record<string, string>, path = "/v1/networks", init: RequestInit = {}) =>
  fetch(`${processes[number % processes.length]?.baseUrl}${path}`, { ...init, headers })
/** As consumers do. */
const askPatiently: typeof ask = (...all) => patiently(() => ask(...all))
const withKey = (secret: string) => ({ authorization: `Bearer ${secret}` })
const statuses = async (answers: ReadonlyArray<Response>) => {
  for (const answer of answers) await answer.text()
  return answers.map(({ status }) => status)
}
const count = (all: ReadonlyArray<number>, status: number) => all.filter((one) => one === status).length

describe("three API processes", () => {
  test("admit a burst of one key within 20 % of its limit, however spread", async () => {
    for (const spread of [1, 0]) {
      const measure = async () => {
        const { secret } = await app.key("user_a")
        const begun = performance.now()
        const all = await statuses(
          await Promise.all(Array.from({ length: 2.5 * BURST }, (_, index) => ask(index * spread, withKey(secret))))
        )
        return { all, seconds: (performance.now() - begun) / 1_000 }
      }
      let measured = await measure()
      // A request that waits for the other processes' counts for a second is decided without them, and a busy service refuses some.
      for (let again = 0; (measured.seconds > 0.9 || measured.all.includes(503)) && again < 10; again++) measured = await measure()
      const { all, seconds } = measured
      const refilled = seconds * PER_SECOND
      expect(new Set(all)).toEqual(new Set([200, 429]))
      expect(count(all, 200)).toBeLessThanOrEqual(1.2 * (BURST + refilled))
      expect(count(all, 200)).toBeGreaterThanOrEqual(0.8 * BURST)
    }
  })

  test("admit a steady stream within 20 % of its rate, and all below the limit", async () => {
    for (const at of [(index: number) => index, (index: number) => (index % 10 === 0 ? 1 : 0)]) {
      const measure = async () => {
        const { secret } = await app.key("user_a")
        const calm = (await app.key("user_a")).secret
        const begun = performance.now()
        const all: Array<number> = [],
          below: Array<number> = []
        let paused = false
        const due = () => BURST + ((performance.now() - begun) / 1_000) * PER_SECOND
        const over = () => performance.now() - begun > (all.length > 1.6 * due() ? 8_000 : 30_000)
        for (let index = 0; !over(); index += EACH) {
          const round = performance.now()
          const [asked, quiet] = await Promise.all([
            Promise.all(Array.from({ length: EACH }, (_, one) => ask(at(index + one), withKey(secret)))),
            ask(index / EACH, withKey(calm))
          ])
          all.push(...(await statuses(asked)))
          below.push(...(await statuses([quiet])))
          await Bun.sleep(60)
          paused ||= performance.now() - round > 1_000
        }
        return { all, allowed: due(), below, paused: paused || all.includes(503) || below.includes(503) }
      }
      let measured = await measure()
      // A pause of the machine, in which nobody asks and a busy service refuses some, may take up a part of the rate.
      for (let again = 0; measured.paused && again < 5; again++) measured = await measure()
      const { all, allowed, below } = measured
      expect(all.length).toBeGreaterThan(1.5 * allowed)
      expect(count(all, 200)).toBeLessThanOrEqual(1.2 * allowed)
      expect(count(all, 200)).toBeGreaterThanOrEqual(0.8 * allowed)
      expect(new Set(below)).toEqual(new Set([200]))
    }
  })

  test("exchange the counts of all callers in a few statements, not one per request", async () => {
    const keys: Array<{ readonly id: string; readonly secret: string }> = []
    for (let index = 0; index < 30; index++) {
      const { key, secret } = await app.key("user_a")
      keys.push({ id: key.id, secret })
    }
    const all = await Promise.all(keys.map(({ secret }, index) => askPatiently(index, withKey(secret))))
    expect(new Set(await statuses(all))).toEqual(new Set([200]))
    // Each statement is a transaction of its own.
    const row = await until("the counts of all callers", async () => {
      const [found] = await app.sql(
        "SELECT count(*)::int AS keys, count(DISTINCT xmin::text)::int AS statements FROM rate_buckets WHERE key = ANY($1)",
        [keys.map(({ id }) => id)]
      )
      return found?.["keys"] === keys.length && found
    })
    expect(Number(row["statements"])).toBeLessThanOrEqual(12)
  })

  test("reject an address after 30 failed authentications, within 20 %, wherever it asks", async () => {
    const { secret } = await app.key("user_a")
    const from = { "x-forwarded-for": "198.51.100.1" }
    const all: Array<number> = []
    for (let index = 0; index < 90; index += 3)
      all.push(
        ...(await statuses(await Promise.all([0, 1, 2].map((one) => askPatiently(index + one, { ...from, ...withKey("nonsense") })))))
      )
    expect(new Set(all)).toEqual(new Set([401, 429]))
    expect(count(all, 401)).toBeGreaterThanOrEqual(24)
    expect(count(all, 401)).toBeLessThanOrEqual(36)
    for (const index of [0, 1, 2]) {
      const answer = await askPatiently(index, { ...from, ...withKey(secret) })
      expect(answer.status).toBe(429)
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(800)
      expect((await askPatiently(index, { "x-forwarded-for": "198.51.100.2", ...withKey(secret) })).status).toBe(200)
    }
  })

  test("refill a key's limit after Postgres' clock was set back", async () => {
    const { key, secret } = await app.key("user_a")
    const used = async () => {
      await statuses([await ask(0, withKey(secret))])
      return (await app.sql("SELECT 1 FROM rate_buckets WHERE key LIKE '%' || $1 AND at <= clock_timestamp()", [key.id])).length === 1
    }
    await until("the shared count", used)
    await app.sql("UPDATE rate_buckets SET at = at + interval '1 hour' WHERE key LIKE '%' || $1", [key.id])
    await until("a count of the clock as it is now", used)
  })

  test("unblock an address in time after Postgres' clock was set back", async () => {
    const from = { "x-forwarded-for": "198.51.100.4" }
    const name = "%198.51.100.4%"
    await statuses([await askPatiently(0, { ...from, ...withKey("nonsense") })])
    const shared = () =>
      app.sql("SELECT max(x) <= clock_timestamp() AS past FROM recent_attempts, unnest(times) x WHERE key LIKE $1", [name])
    await until("the shared count", async () => (await shared())[0]?.["past"] === true)
    await app.sql(
      "UPDATE recent_attempts SET at = at + interval '1 hour', times = ARRAY(SELECT x + interval '1 hour' FROM unnest(times) x) WHERE key LIKE $1",
      [name]
    )
    await statuses([await askPatiently(1, { ...from, ...withKey("nonsense") })])
    await until("times of the clock as it is now", async () => (await shared())[0]?.["past"] === true)
  })

  test("reject an address a second after it failed elsewhere, at any process", async () => {
    const { secret } = await app.key("user_a")
    const from = { "x-forwarded-for": "198.51.100.3" }
    for (let index = 0; index < 30; index++) await statuses([await askPatiently(0, { ...from, ...withKey("nonsense") })])
    await until("the block at another process", async () => (await ask(1, { ...from, ...withKey(secret) })).status === 429)
  })

  test("allow thirty sign-ins of an address and ten of an account, within 20 %", async () => {
    const post = async (index: number, path: string, body: unknown, address: string) => {
      const headers = {
        "content-type": "application/json",
        host: new URL(ORIGIN).host,
        origin: ORIGIN,
        "sec-fetch-site": "same-origin",
        "x-portal": "1",
        "x-forwarded-for": address
      }
      return (
        (await statuses([await askPatiently(index, headers, `/portal${path}`, { method: "POST", body: JSON.stringify(body) })]))[0] ?? 0
      )
    }
    const account: Array<number> = []
    for (let index = 0; index < 24; index++)
      account.push(await post(index, "/api/sign-in", { email: "somebody@example.com", password: "a wrong guess" }, "203.0.113.1"))
    expect(new Set(account)).toEqual(new Set([401, 429]))
    expect(count(account, 401)).toBeGreaterThanOrEqual(8)
    expect(count(account, 401)).toBeLessThanOrEqual(12)
    const address: Array<number> = []
    for (let index = 0; index < 60; index++) address.push(await post(index, "/api/invitation", { token: "none" }, "203.0.113.2"))
    expect(new Set(address)).toEqual(new Set([410, 429]))
    expect(count(address, 410)).toBeGreaterThanOrEqual(24)
    expect(count(address, 410)).toBeLessThanOrEqual(36)
  })
})
