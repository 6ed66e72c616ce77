/** What a webhook would have received, before it is created. C-7. */
import { expect, test } from "bun:test"
import { event, insertEvents } from "../../events/log/eventRows.ts"
import { useApi } from "../../support/api.ts"
import { create, issues, short, tryCreate, useKeys } from "../../support/webhookFixtures.ts"

const app = useApi()
const keys = useKeys(app)

const preview = (key: string, body: { readonly [field: string]: unknown }) => app.request("POST", "/v1/webhooks/preview", { key, body })
const kinds = ["transaction.confirmed", "balance.updated"]

test("a preview counts by kind what a webhook would have received, with the newest five", async () => {
  const at = (minute: number) => new Date(Date.now() - minute * 60_000).toISOString()
  const rows = [
    ...Array.from({ length: 7 }, (_, index) => event({ vaultId: "vault_a", kind: "transaction.confirmed", occurredAt: at(index + 1) })),
    ...Array.from({ length: 3 }, (_, index) => event({ vaultId: "vault_a2", kind: "balance.updated", occurredAt: at(index + 20) })),
    event({ vaultId: "vault_a", kind: "transaction.pending" }),
    event({ vaultId: "vault_b", entityId: "entity_b", kind: "transaction.confirmed" }),
    event({ vaultId: null, kind: "webhook.disabled" })
  ]
  await insertEvents(app, rows)
  const { json, status } = await preview(keys.reader, { entityIds: ["entity_a"], eventKinds: [...kinds, "vault.created"] })
  expect([status, json.count, json.countedUpTo, json.byKind]).toEqual([
    200,
    10,
    10_000,
    { "transaction.confirmed": 7, "balance.updated": 3, "vault.created": 0 }
  ])
  expect(json.newest.map(({ id }: { id: string }) => id)).toEqual(rows.slice(0, 5).map(({ id }) => id))
  // An event has the same form as in the log.
  expect(json.newest[0]).toEqual(
    (await app.get(`/v1/webhook-events?vaultId=vault_a&kind=transaction.confirmed&limit=1`, keys.reader)).json.data[0]
  )
  const some = await preview(keys.limited, { entityIds: ["entity_a"], eventKinds: kinds, vaultIds: ["vault_a"] })
  expect(some.json.count).toBe(7)
  // An event without a vault passes every filter.
  expect(
    (await preview(keys.reader, { entityIds: ["entity_a"], eventKinds: ["webhook.disabled"], vaultIds: ["vault_a"] })).json.count
  ).toBe(1)
})

test("a preview needs webhook:read only, takes no other field, and fails as a creation does", async () => {
  const body = { entityIds: ["entity_a"], eventKinds: kinds }
  expect(short(await preview(keys.reader, body))).toBe("200")
  expect(short(await preview(keys.manager, body))).toBe("403 insufficient_scope")
  expect(short(await app.request("POST", "/v1/webhooks/preview", { body }))).toBe("401 missing_credentials")
  const faults = async (key: string, more: { readonly [field: string]: unknown }) => {
    const answer = await preview(key, { ...body, ...more })
    const found = [short(answer), ...issues(answer)]
    // A creation has a URL.
    if (key === keys.owner && more["url"] === undefined) {
      const refused = await tryCreate(app, key, { ...body, ...more })
      expect([short(refused), ...issues(refused)]).toEqual(found)
    }
    return found
  }
  expect(await faults(keys.owner, { url: "https://hooks.example.com" })).toEqual(["400 invalid_body", "url unknown_field"])
  expect(await faults(keys.owner, { eventKinds: ["nonsense"] })).toEqual(["400 invalid_body", "eventKinds.0 invalid"])
  for (const entityId of ["entity_z", "entity_absent"]) {
    expect(await faults(keys.owner, { entityIds: [entityId] })).toEqual(["400 invalid_body", "entityIds invalid"])
  }
  for (const vaultId of ["vault_z", "vault_absent", "vault_b"]) {
    expect(await faults(keys.owner, { vaultIds: [vaultId] })).toEqual(["400 invalid_body", "vaultIds invalid"])
  }
  expect(await faults(keys.limited, {})).toEqual(["400 invalid_body", "vaultIds invalid"])
  // Nothing was created by any of these.
  expect((await app.get("/v1/webhooks", keys.owner)).json.data).toEqual([])
  await create(app, keys.owner, { ...body, status: "DISABLED" })
})
