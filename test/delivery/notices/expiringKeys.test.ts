/**
 * Which keys are announced before they expire, when, to whom, and that each is announced once. Time passes by moving a key's
 * expiry nearer; a clock that is ahead is the same, and one that is set back is the opposite. C-13.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import * as path from "node:path"
import { Effect, Schema } from "effect"
import { ApiKeys, type Choice } from "../../../src/access/keys/ApiKeys.ts"
import { schemaOf } from "../../../src/events/log/Envelope.ts"
import { announceKeys } from "../../support/announceKeys.ts"
import { useApi } from "../../support/api.ts"
import { baseEnv } from "../../support/app.ts"
import { Clock, canShift } from "../../support/clock.ts"
import { entity, organization, smallest, user, vault } from "../../support/records.ts"

const DAY = 86_400_000
const program = path.resolve(import.meta.dir, "../../support/announceKeys.ts")
const app = useApi()
let owner = ""

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    entity("entity_b", "org_a"),
    vault("vault_b", "entity_b"),
    organization("org_b", ["ethereum"]),
    user("user_ada", "org_a", ["vault_a", "vault_b"]),
    user("user_bob", "org_a", ["vault_a"]),
    user("user_olga", "org_a", [], { organizationRole: "owner" }),
    user("user_same", "org_a", [], { organizationRole: "owner", email: "USER_OLGA@example.com" }),
    user("user_left", "org_a", [], { organizationRole: "owner", status: "deactivated" }),
    user("user_else", "org_b", [], { organizationRole: "owner" })
  ])
  owner = (await app.key("user_olga")).secret
})

const inDays = (days: number) => new Date(Date.now() + days * DAY).toISOString()
const keyFor = async (days: number, userId = "user_ada", choice: Partial<Choice> = {}) =>
  (await app.key(userId, { expiresAt: inDays(days), ...choice })).key.id
/** Lets this many days pass for a key; a negative number takes them back. */
const pass = (id: string, days: number) =>
  app.sql("UPDATE api_keys SET expires_at = expires_at - make_interval(hours => ($2::float8 * 24)::integer) WHERE id = $1", [id, days])
const edit = (id: string, change: Partial<Choice>) =>
  app.run(Effect.flatMap(ApiKeys, (keys) => keys.update(id, change, { mayWiden: true })))
const revoke = (id: string) => app.run(Effect.flatMap(ApiKeys, (keys) => keys.revoke(id)))

interface Announced {
  readonly kind: string
  readonly payload: {
    readonly entityId: string
    readonly vaultIds: null
    readonly data: { readonly apiKeyId: string; readonly apiKey: object; readonly daysBefore: number }
  }
}
const eventsOf = async (id: string, secret = owner): Promise<ReadonlyArray<Announced>> =>
  (await app.walk("/v1/webhook-events?kind=api_key.expiring", secret)).filter(({ payload }) => payload.data.apiKeyId === id).toReversed()
const noticesOf = (id: string) =>
  app.sql("SELECT id, recipient, subject, body FROM notices WHERE key_id = $1 ORDER BY created_at, recipient", [id])
/** Looks for due keys, and returns what was announced of a key: the steps by event, and the number of e-mails. */
const look = async (id: string) => {
  expect((await announceKeys(app.databaseUrl)).failed).toBe(0)
  return stateOf(id)
}
const stateOf = async (id: string) => {
  const [events, notices] = [await eventsOf(id), await noticesOf(id)]
  // The key reaches both entities.
  const steps = events.filter(({ payload }) => payload.entityId === "entity_b").map(({ payload }) => payload.data.daysBefore)
  expect(events).toHaveLength(steps.length * 2)
  return { steps, notices: notices.length }
}
/** The time of an expiry as in responses. */
const EXPIRES = `to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
/** E-mails of a step: to Ada, and to the owners, two of whom share an address. */
const EACH = 3

describe("keys that expire soon", () => {
  test("its user and the owners get one e-mail each 30, 7 and 1 days before", async () => {
    const id = await keyFor(31)
    expect(await look(id)).toEqual({ steps: [], notices: 0 })
    for (const [days, steps] of [
      [2, [30]],
      [10, [30]],
      [13, [30, 7]],
      [1, [30, 7]],
      [4.5, [30, 7, 1]],
      [1, [30, 7, 1]]
    ] as const) {
      await pass(id, days)
      expect([days, await look(id)]).toEqual([days, { steps: [...steps], notices: steps.length * EACH }])
      expect([days, await look(id)]).toEqual([days, { steps: [...steps], notices: steps.length * EACH }])
    }
    const recipients = (await noticesOf(id)).map(({ recipient }) => String(recipient).toLowerCase())
    expect([...new Set(recipients)].sort()).toEqual(["user_a@example.com", "user_ada@example.com", "user_olga@example.com"])
    for (const one of new Set(recipients)) expect(recipients.filter((other) => other === one)).toHaveLength(3)
  })

  test("an owner's own key is announced to the owner once", async () => {
    const id = await keyFor(31, "user_a")
    await pass(id, 2)
    await announceKeys(app.databaseUrl)
    expect((await noticesOf(id)).map(({ recipient }) => String(recipient).toLowerCase())).toEqual([
      "user_a@example.com",
      "user_olga@example.com"
    ])
  })

  test("a key created with fewer days is announced at the steps that lie ahead only", async () => {
    for (const [days, steps] of [
      [20, [7, 1]],
      [5, [1]],
      [0.9, []]
    ] as const) {
      const id = await keyFor(days)
      for (let left: number = days; left > 0.25; left -= 0.5, await pass(id, 0.5)) await announceKeys(app.databaseUrl)
      expect([days, (await stateOf(id)).steps]).toEqual([days, [...steps]])
    }
  })

  test("keys without expiry, revoked ones and those of deactivated users are not announced", async () => {
    await app.feed([user("user_gone", "org_a", ["vault_a", "vault_b"])])
    const [endless, revoked, cleared, gone, over] = [
      (await app.key("user_ada", { expiresAt: null })).key.id,
      await keyFor(31),
      await keyFor(31),
      await keyFor(31, "user_gone"),
      await keyFor(31)
    ]
    for (const id of [revoked, cleared, gone]) await pass(id, 2)
    await pass(over, 32)
    await revoke(revoked)
    await edit(cleared, { expiresAt: null })
    await app.feed([user("user_gone", "org_a", ["vault_a", "vault_b"], { status: "deactivated" })])
    for (const id of [endless, revoked, cleared, gone, over]) expect(await look(id)).toEqual({ steps: [], notices: 0 })
  })

  test("an expiry that is extended is announced again, and no other edit repeats anything", async () => {
    const id = await keyFor(31)
    await pass(id, 2)
    expect((await look(id)).steps).toEqual([30])
    const { expiresAt } = await edit(id, { label: "other", scopes: ["vault:read"] })
    await edit(id, { expiresAt })
    expect((await look(id)).steps).toEqual([30])
    await edit(id, { expiresAt: inDays(60) })
    expect((await look(id)).steps).toEqual([30])
    await pass(id, 31)
    expect((await look(id)).steps).toEqual([30, 30])
  })

  test("a rotated key is not announced when its expiry is brought forward", async () => {
    const id = await keyFor(300)
    await edit(id, { expiresAt: inDays(7) })
    expect((await look(id)).steps).toEqual([])
    await pass(id, 6.5)
    expect((await look(id)).steps).toEqual([1])
  })

  test("after an outage only the latest step is announced", async () => {
    const id = await keyFor(31)
    await pass(id, 26)
    expect(await look(id)).toEqual({ steps: [7], notices: EACH })
    await pass(id, 4.5)
    expect((await look(id)).steps).toEqual([7, 1])
  })
})

describe("the event of an expiring key", () => {
  test("names the key, and is of each entity that the key reaches", async () => {
    const { key } = await app.key("user_ada", { expiresAt: inDays(31), label: "Ledger import" })
    await app.sql("UPDATE api_keys SET last_used_at = '2026-01-02T03:04:05.678Z' WHERE id = $1", [key.id])
    await pass(key.id, 2)
    await announceKeys(app.databaseUrl)
    const events = await eventsOf(key.id)
    expect(events.map(({ payload }) => [payload.entityId, payload.vaultIds])).toEqual([
      ["entity_a", null],
      ["entity_b", null]
    ])
    const [stored] = await app.sql(`SELECT ${EXPIRES} AS at FROM api_keys WHERE id = $1`, [key.id])
    for (const { payload } of events) {
      expect(payload.data).toEqual({
        apiKeyId: key.id,
        apiKey: {
          id: key.id,
          label: "Ledger import",
          userId: "user_ada",
          expiresAt: stored?.["at"],
          lastUsedAt: "2026-01-02T03:04:05.678Z"
        },
        daysBefore: 30
      })
      expect(Schema.is(schemaOf("api_key.expiring") as Schema.Schema<unknown>, { onExcessProperty: "error" })(payload)).toBe(true)
    }
  })

  test("is visible only to those who reach every entity of the key", async () => {
    const [wide, narrow] = [await keyFor(31), await keyFor(31, "user_ada", { vaultIds: ["vault_a"] })]
    for (const id of [wide, narrow]) await pass(id, 2)
    await announceKeys(app.databaseUrl)
    const count = async (userId: string, id: string, vaultIds: ReadonlyArray<string> | null = null) =>
      (await eventsOf(id, (await app.key(userId, { vaultIds })).secret)).length
    expect(await count("user_olga", wide)).toBe(2)
    expect(await count("user_ada", wide)).toBe(2)
    expect(await count("user_bob", wide)).toBe(0)
    expect(await count("user_else", wide)).toBe(0)
    expect(await count("user_bob", narrow)).toBe(1)
    expect(await count("user_bob", narrow, ["vault_a"])).toBe(0)
  })
})

describe("once for each key and step", () => {
  test("ten processes that look at once announce each key once", async () => {
    const ids = await Promise.all(Array.from({ length: 6 }, () => keyFor(31)))
    for (const id of ids) await pass(id, 2)
    const looks = await Promise.all(Array.from({ length: 10 }, () => announceKeys(app.databaseUrl)))
    expect(looks.reduce((sum, { announced }) => sum + announced, 0)).toBe(ids.length)
    for (const id of ids) expect(await stateOf(id)).toEqual({ steps: [30], notices: EACH })
  })

  test("a process killed between any two statements leaves all or nothing of an announcement", async () => {
    const id = await keyFor(31)
    await pass(id, 2)
    let kills = 0
    for (let place = 1; ; place++) {
      const child = Bun.spawn([process.execPath, program], {
        env: { ...baseEnv(), DATABASE_URL: app.databaseUrl, FAIL_AT: `event-writer:${place}` },
        stdout: "ignore",
        stderr: "ignore"
      })
      await child.exited
      if (child.signalCode !== "SIGKILL") {
        expect([place, child.exitCode]).toEqual([place, 0])
        break
      }
      kills++
      const { notices, steps } = await stateOf(id)
      expect([place, notices]).toEqual([place, steps.length * EACH])
    }
    expect(kills).toBeGreaterThanOrEqual(7)
    expect(await look(id)).toEqual({ steps: [30], notices: EACH })
    const waiting = await app.sql("SELECT 1 FROM commands c JOIN notices n ON n.id = c.key WHERE n.key_id = $1", [id])
    expect(waiting).toHaveLength(EACH)
  })

  test("a clock that was ahead repeats no step and skips none to come", async () => {
    const id = await keyFor(31)
    await pass(id, 25)
    expect((await look(id)).steps).toEqual([7])
    await pass(id, -25)
    for (const [days, steps] of [
      [0, [7]],
      [2, [7, 30]],
      [23, [7, 30]],
      [5.5, [7, 30, 1]]
    ] as const) {
      await pass(id, days)
      expect([days, (await look(id)).steps]).toEqual([days, [...steps]])
    }
  })

  test("a key that was created while the clock was far ahead is announced later", async () => {
    const id = await keyFor(-100)
    expect((await look(id)).steps).toEqual([])
    await pass(id, -140)
    await pass(id, 11)
    expect((await look(id)).steps).toEqual([30])
  })

  test.skipIf(!canShift)("a worker's own clock has no influence", async () => {
    const id = await keyFor(60)
    const clock = new Clock()
    clock.shift((40 * DAY) / 1_000)
    const env = { ...baseEnv(), ...clock.env, DATABASE_URL: app.databaseUrl }
    const child = Bun.spawn([process.execPath, program], { env, stdout: "pipe", stderr: "ignore" })
    expect(JSON.parse(await new Response(child.stdout).text()).failed).toBe(0)
    clock.remove()
    expect(await stateOf(id)).toEqual({ steps: [], notices: 0 })
  })

  test("a restored backup repeats the ids of its e-mails, and no step that has passed", async () => {
    const id = await keyFor(31)
    const [before] = await app.sql("SELECT expiry_announced AS announced FROM api_keys WHERE id = $1", [id])
    const restore = async () => {
      await app.sql("DELETE FROM commands c USING notices n WHERE n.id = c.key AND n.key_id = $1", [id])
      await app.sql("DELETE FROM notices WHERE key_id = $1", [id])
      await app.sql("UPDATE api_keys SET expiry_announced = $2 WHERE id = $1", [id, before?.["announced"]])
    }
    await pass(id, 2)
    await look(id)
    const ids = async () => (await noticesOf(id)).map((notice) => notice["id"])
    const sent = await ids()
    expect(new Set(sent).size).toBe(EACH)
    await restore()
    await look(id)
    expect(await ids()).toEqual(sent)
    await restore()
    await pass(id, 23)
    await look(id)
    expect((await eventsOf(id)).at(-1)?.payload.data.daysBefore).toBe(7)
    expect(await noticesOf(id)).toHaveLength(EACH)
  })
})
