/**
 * Requests that are small to send and would be expensive to answer: tens of thousands of invalid values, thousands of
 * parameters. Each is rejected at the cost of any other, so that nobody can stop a process with a few of them. Decision
 * D-4; reliability T18.
 */
import { beforeAll, expect, test } from "bun:test"
import { signedIn, type Visitor } from "../portal/client.ts"
import { type Answer, useApp } from "../support/app.ts"
import { cpuOf } from "../support/deliveryFixtures.ts"
import { codeOf } from "../support/problem.ts"
import { entity, smallest } from "../support/records.ts"
import { fields } from "../support/webhookFixtures.ts"

const app = useApp(["api"], { RATE_LIMIT: "off" })
let key = ""
let visitor: Visitor

beforeAll(async () => {
  await app.feed(smallest())
  key = (await app.key("user_a")).secret
  visitor = await signedIn(app, "user_a")
})

/** Short names that no path has as parameters. */
const names = (count: number) => Array.from({ length: count }, (_, index) => `z${index.toString(36)}`)
const unknown = (count: number) => Object.fromEntries(names(count).map((name) => [name, 1]))

/** The answer, and the CPU time that the service took for it, in ms: what it costs on a busy machine, too. */
const timed = async (ask: () => Promise<Answer>) => {
  const pid = app.main?.child.pid ?? 0
  const before = await cpuOf(pid)
  const answer = await ask()
  return { answer, took: (await cpuOf(pid)) - before }
}

/** The CPU time of the service for 60 requests of each path, in ms. They take turns, and the first 20 of each are not counted. */
const compared = async (paths: ReadonlyArray<string>): Promise<ReadonlyArray<number>> => {
  const spent = paths.map(() => 0)
  for (let round = 0; round < 4; round++)
    for (const [index, path] of paths.entries()) {
      const ask = async () => {
        const answer = await visitor.get(`/api/${path}`)
        expect(answer.status).toBe(200)
        return answer
      }
      const { took } = await timed(async () => {
        for (let call = 1; call < 20; call++) await ask()
        return ask()
      })
      if (round > 0) spent[index] = (spent[index] ?? 0) + took
    }
  return spent
}

test("a body with very many invalid values is rejected quickly with the first error", async () => {
  const send = (body: unknown) => timed(() => app.request("POST", "/v1/webhooks", { key, body }))
  for (const body of [
    { ...fields(), entityIds: Array.from({ length: 30_000 }, () => 1) },
    { ...fields(), ...unknown(6_000) },
    { ...fields(), vaultIds: Array.from({ length: 20_000 }, () => []) }
  ]) {
    const { answer, took } = await send(body)
    expect([codeOf(answer), answer.json.errors.length]).toEqual(["invalid_body", 1])
    expect(took).toBeLessThan(3_000)
  }
  const { answer } = await send({ ...fields(), ...unknown(50) })
  expect([codeOf(answer), answer.json.errors.length]).toEqual(["invalid_body", 50])
})

test("the portal's sign-in, which anyone can call, rejects such a body as quickly", async () => {
  const { origin } = new URL(app.main?.baseUrl ?? "")
  const { answer, took } = await timed(() =>
    app.request("POST", "/portal/api/sign-in", { body: unknown(6_000), headers: { origin, "x-portal": "1" } })
  )
  expect([codeOf(answer), answer.json.errors.length]).toEqual(["invalid_body", 1])
  expect(took).toBeLessThan(2_000)
})

test("a custody record with very many invalid values is rejected with its first error", async () => {
  const post = (values: number) => timed(() => app.records(JSON.stringify({ ...entity("entity_b", "org_a"), ...unknown(values) })))
  const large = await post(300_000)
  expect([large.answer.status, large.answer.json.errors.length, large.took < 3_000]).toEqual([400, 1, true])
  const { answer } = await post(50)
  expect([answer.status, answer.json.errors.length]).toEqual([400, 50])
})

test("a query with too many parameters is rejected as a whole", async () => {
  const ask = (path: string, query: string) => app.get(`${path}?${query}`, key)
  for (const path of ["/v1/vaults", "/v1/credential", "/v1/vaults/vault_a/transactions", "/v1/event-feed"]) {
    const answer = await ask(
      path,
      names(33)
        .map((name) => `${name}=some-value`)
        .join("&")
    )
    expect([path, codeOf(answer), answer.json.errors.length]).toEqual([path, "invalid_parameter", 1])
    expect([
      path,
      codeOf(
        await ask(
          path,
          names(20)
            .map((name) => `${name}=some-value`)
            .join("&")
        )
      )
    ]).toEqual([path, "unknown_parameter"])
  }
  const ids = (count: number) => Array.from({ length: count }, () => "vaultId=x").join("&")
  expect((await ask("/v1/event-feed", ids(500))).status).toBe(200)
  expect(codeOf(await ask("/v1/event-feed", ids(501)))).toBe("invalid_parameter")
})

test("a key with a thousand of its user's ten thousand vaults is described quickly", async () => {
  await app.insert(`
    INSERT INTO vaults (id, entity_id, organization_id, label, networks, created_at)
    SELECT 'many_' || n, entity_id, organization_id, label, networks, created_at FROM vaults, generate_series(1, 10000) n WHERE id = 'vault_a';
    INSERT INTO vault_roles (user_id, vault_id, organization_id, role, vault_created_at, entity_id)
    SELECT 'user_a', id, organization_id, 'developer', created_at, entity_id FROM vaults WHERE id LIKE 'many_%';
    UPDATE api_keys SET vault_ids = ARRAY(SELECT 'many_' || n FROM generate_series(1, 1000) n) WHERE user_id = 'user_a'`)
  const times: Array<number> = []
  for (let call = 0; call < 5; call++) {
    const begun = performance.now()
    const { json } = await app.get("/v1/credential", key)
    times.push(performance.now() - begun)
    expect(json.vaults).toEqual({ role: 10_001, allowlist: 1_000, visible: 1_000 })
  }
  expect(Math.min(...times)).toBeLessThan(400)
})

test("thousands of names in the portal cost less than two pages of vaults", async () => {
  await app.insert(`
    INSERT INTO entities (id, organization_id, name)
    SELECT 'many_' || n, organization_id, 'Branch "' || n || '"' FROM entities, generate_series(1, 3000) n WHERE id = 'entity_a'`)
  const { json, text } = await visitor.get("/api/context")
  expect([json.entities.length, json.vaults.length, text === JSON.stringify(json)]).toEqual([2_000, 2_000, true])
  expect(json.entities[0]).toEqual({ id: "many_1", name: 'Branch "1"' })
  expect(json.vaults[0]).toEqual({ id: "many_1", name: "vault_a", entityId: "entity_a", networks: ["ethereum"] })
  const [names = 0, vaults = 0] = await compared(["context", "v1/vaults?limit=500"])
  expect(names).toBeLessThan(2 * vaults)
})

test("a day of a hundred webhooks' attempts costs less than two lists of them", async () => {
  // In each half hour, as many attempts as its number modulo 7, twice.
  await app.insert(`
    INSERT INTO webhooks (id, organization_id, url, description, status, event_kinds, notification_email, created_at)
    SELECT 'whs_' || n, 'org_a', 'https://hooks.example.com/', '', 'ACTIVE', '{balance.updated}', 'ops@example.com', now()
    FROM generate_series(1, 100) n;
    INSERT INTO webhook_entities (webhook_id, entity_id, organization_id, created_at, status)
    SELECT id, 'entity_a', organization_id, created_at, status FROM webhooks;
    INSERT INTO webhook_counters (webhook_id, slot, shard, errored)
    SELECT w.id, to_timestamp(half * 1800), shard, half % 7 FROM webhooks w, generate_series(1, 2) shard,
      generate_series(extract(epoch FROM now())::bigint / 1800 - 100, extract(epoch FROM now())::bigint / 1800 + 2) half`)
  const ids = Array.from({ length: 100 }, (_, index) => `whs_${index + 1}`).join(",")
  const path = `webhook-traffic?ids=${ids}`
  const { json } = await visitor.get(`/api/${path}`)
  const { errored, from, stepSeconds, succeeded } = json.whs_100
  const first = Date.parse(from) / 1_800_000
  expect([Object.keys(json).length, stepSeconds, succeeded]).toEqual([100, 1_800, Array.from({ length: 48 }, () => 0)])
  expect(errored).toEqual(Array.from({ length: 48 }, (_, step) => 2 * ((first + step) % 7)))
  expect(Object.keys((await visitor.get(`/api/${path}&span=31d`)).json)).toEqual(["whs_1"])
  const [charts = 0, lists = 0] = await compared([path, "v1/webhooks?limit=100"])
  expect(charts).toBeLessThan(2 * lists)
})
