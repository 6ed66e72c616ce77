/** Chains of entities, their checkpoints, and who may read them. C-3. */
import { beforeAll, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { compactVerify, createLocalJWKSet } from "jose"
import { useApi } from "../../support/api.ts"
import { codeOf } from "../../support/problem.ts"
import { until } from "../../support/receiver.ts"
import { asset, entity, network, organization, transaction, user, vault } from "../../support/records.ts"

const app = useApi()
const keys = { owner: "", listed: "", part: "", whole: "", other: "" }
const PATH = "/v1/event-checkpoints"

beforeAll(async () => {
  await app.feed(
    [
      network("ethereum"),
      asset("ethereum/native"),
      organization("org_a", ["ethereum"]),
      entity("entity_a", "org_a"),
      entity("entity_b", "org_a"),
      entity("entity_empty", "org_a"),
      vault("vault_a", "entity_a"),
      vault("vault_b", "entity_a"),
      vault("vault_c", "entity_b"),
      user("user_owner", "org_a", ["vault_a", "vault_b", "vault_c"], { organizationRole: "owner" }),
      user("user_part", "org_a", ["vault_a", "vault_c"]),
      user("user_whole", "org_a", ["vault_a", "vault_b"]),
      organization("org_b", ["ethereum"]),
      user("user_other", "org_b", [], { organizationRole: "owner" })
    ],
    { "x-record-events": "none" }
  )
  keys.owner = (await app.key("user_owner")).secret
  keys.listed = (await app.key("user_owner", { vaultIds: ["vault_a", "vault_b"] })).secret
  keys.part = (await app.key("user_part")).secret
  keys.whole = (await app.key("user_whole")).secret
  keys.other = (await app.key("user_other")).secret
})

const latest = (entityId: string, key = keys.owner) => app.get(`${PATH}/latest?entityId=${entityId}`, key)
const sha256 = (...parts: ReadonlyArray<Buffer | string>) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest()
const chainHash = (payloads: ReadonlyArray<string>, from = Buffer.alloc(32)) =>
  payloads.reduce((hash, payload) => sha256(hash, sha256(payload)), from).toString("hex")

interface Event {
  readonly entityId: string
  readonly payload: unknown
}
const feed = async (): Promise<ReadonlyArray<Event>> => (await app.get("/v1/event-feed?limit=500", keys.owner)).json.data
const payloadsOf = (events: ReadonlyArray<Event>, entityId: string) =>
  events.filter((one) => one.entityId === entityId).map(({ payload }) => JSON.stringify(payload))

describe("checkpoints", () => {
  test("count and chain the feed's events in order, and are signed", async () => {
    for (let batch = 0; batch < 4; batch++) {
      await app.feed(
        Array.from({ length: 5 }, (_, index) => transaction(["vault_a", "vault_c", "vault_b"][index % 3] ?? "", batch * 10 + index + 1))
      )
    }
    const events = await feed()
    for (const entityId of ["entity_a", "entity_b", "entity_empty"]) {
      const { json, status } = await latest(entityId)
      const payloads = payloadsOf(events, entityId)
      expect([status, json.entityId, json.count, json.hash]).toEqual([200, entityId, payloads.length, chainHash(payloads)])
      const { payload, protectedHeader } = await compactVerify(json.jws, createLocalJWKSet((await app.get("/v1/jwks.json")).json))
      expect(protectedHeader.alg).toBe("EdDSA")
      expect(JSON.parse(Buffer.from(payload).toString())).toEqual({
        iss: "custody-data-service",
        entityId,
        count: json.count,
        hash: json.hash,
        at: json.at
      })
      expect((await app.get(`/v1/event-feed?after=${json.resumeCursor}`, keys.owner)).json.data).toEqual([])
    }
  })

  test.concurrent("are sealed over the events before midnight, with or without a next event", async () => {
    // The chain is in its state of two days ago: the next event passes two midnights.
    const before = (await latest("entity_a")).json
    const days = await app.sql(
      "UPDATE entity_chains SET sealed_until = date_trunc('day', now(), 'UTC') - interval '2 days' WHERE organization_id = 'org_a' RETURNING date_trunc('day', now(), 'UTC') AS today"
    )
    const today = days[0]?.today
    if (!(today instanceof Date)) throw new Error("no day")
    await app.sql("DELETE FROM event_checkpoints")
    await app.feed([transaction("vault_a", 101), transaction("vault_b", 102)])
    const sealed = (await app.get(`${PATH}?entityId=entity_a`, keys.owner)).json
    expect(sealed.data.map(({ at, count, hash }: { at: string; count: number; hash: string }) => [at, count, hash])).toEqual([
      [today.toISOString(), before.count, before.hash],
      [new Date(today.getTime() - 86_400_000).toISOString(), before.count, before.hash]
    ])
    const after = (await latest("entity_a")).json
    const between = (await app.get(`/v1/event-feed?after=${sealed.data[0].resumeCursor}`, keys.owner)).json.data
    expect([after.count, after.hash]).toEqual([
      before.count + 2,
      chainHash(payloadsOf(between, "entity_a"), Buffer.from(before.hash, "hex"))
    ])
    // An idle entity gets its checkpoint without a writer.
    await app.sql("UPDATE event_streams SET sealed_until = '-infinity' WHERE organization_id = 'org_a'")
    await until("the checkpoints", async () => (await app.get(`${PATH}?entityId=entity_b`, keys.owner)).json.data.length === 2)
    expect((await app.get(`${PATH}?entityId=entity_empty`, keys.owner)).json.data[0]).toMatchObject({ count: 0, hash: "0".repeat(64) })
  })

  test.concurrent("are visible only to keys that see every vault of the entity", async () => {
    for (const [name, key, entityId, status] of [
      ["owner", keys.owner, "entity_a", 200],
      ["whole", keys.whole, "entity_a", 200],
      ["listed", keys.listed, "entity_a", 404],
      ["part", keys.part, "entity_a", 404],
      ["part", keys.part, "entity_b", 200],
      ["whole", keys.whole, "entity_b", 404],
      ["whole", keys.whole, "entity_empty", 404],
      ["other", keys.other, "entity_a", 404],
      ["owner", keys.owner, "entity_absent", 404],
      ["owner", keys.owner, "%00", 404]
    ] as const) {
      for (const path of [PATH, `${PATH}/latest`]) {
        const answer = await app.get(`${path}?entityId=${entityId}`, key)
        expect([name, path, entityId, answer.status]).toEqual([name, path, entityId, status])
        if (status === 404) expect(codeOf(answer)).toBe("not_found")
      }
    }
    for (const path of [PATH, `${PATH}/latest`]) expect(codeOf(await app.get(path, keys.owner))).toBe("invalid_parameter")
    expect(codeOf(await app.get(`${PATH}/latest?entityId=entity_a&limit=1`, keys.owner))).toBe("unknown_parameter")
  })
})
