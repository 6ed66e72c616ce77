/** Reads of one organization, however slow and many, leave room for everybody else's. */
import { beforeAll, describe, expect, test } from "bun:test"
import pg from "pg"
import { useApp } from "../support/app.ts"
import { entity, organization, smallest, user, vault } from "../support/records.ts"

const app = useApp()
let key = "",
  otherKey = ""

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    organization("org_b", ["ethereum"]),
    entity("entity_b", "org_b"),
    vault("vault_b", "entity_b"),
    user("user_b", "org_b", ["vault_b"])
  ])
  key = (await app.key("user_a")).secret
  otherKey = (await app.key("user_b")).secret
})

/** Runs it while reads of deposit addresses wait for a lock, and every other read does not. */
const whileSlow = async (run: () => Promise<void>) => {
  const client = new pg.Client({ connectionString: app.databaseUrl })
  await client.connect()
  try {
    await client.query("BEGIN")
    await client.query("LOCK TABLE deposit_addresses IN ACCESS EXCLUSIVE MODE")
    await run()
  } finally {
    await client.query("ROLLBACK")
    await client.end()
  }
}

const slow = (count: number, signal?: AbortSignal) =>
  Array.from({ length: count }, () =>
    fetch(`${app.main?.baseUrl}/v1/vaults/vault_a/addresses`, {
      headers: { authorization: `Bearer ${key}` },
      ...(signal === undefined ? {} : { signal })
    })
  )

describe("reads at once are bounded for each organization", () => {
  test("one organization's slow reads do not slow another's, and those past the bound wait a second for their turn, then 503", async () => {
    await whileSlow(async () => {
      const begun = performance.now()
      const mine = slow(40).map(async (answer) => {
        const { headers, status } = await answer
        return { status, retryAfter: headers.get("retry-after"), took: performance.now() - begun }
      })
      let done = false
      const all = Promise.all(mine).finally(() => {
        done = true
      })
      const waits: Array<number> = []
      while (!done && waits.length < 200) {
        const asked = performance.now()
        for (const target of ["/v1/vaults", "/v1/vaults/vault_b/transactions", "/v1/networks"]) {
          expect((await app.get(target, otherKey)).status).toBe(200)
        }
        waits.push((performance.now() - asked) / 3)
        await Bun.sleep(5)
      }
      const answers = await all
      expect(new Set(answers.map(({ retryAfter, status }) => `${status} ${retryAfter}`))).toEqual(new Set(["503 1"]))
      // Those that had no turn do not wait for the two seconds that a statement may take.
      expect(answers.filter(({ took }) => took > 900 && took < 1_900).length).toBeGreaterThanOrEqual(20)
      expect(waits.length).toBeGreaterThan(10)
      expect(waits.sort((a, b) => a - b)[Math.floor(waits.length / 2)]).toBeLessThan(250)
    })
  })

  test("a turn is given back by whoever has it: an answer, a failure, or a caller who went away while it waited", async () => {
    await whileSlow(async () => {
      const controller = new AbortController()
      const given = slow(20, controller.signal).map((answer) => answer.catch(() => undefined))
      await Bun.sleep(100)
      controller.abort()
      await Promise.all(given)
    })
    // Every turn is free again: as many as there are run at once, and more in their turns.
    const answers = await Promise.all(Array.from({ length: 30 }, () => app.get("/v1/vaults/vault_a/addresses", key)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  })
})
