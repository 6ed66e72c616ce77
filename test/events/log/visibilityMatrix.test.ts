/**
 * Every key against every webhook, event and delivery: generated users, roles and keys, and a model that derives each
 * expected response from the decisions alone. Decisions D-5, D-6, D-8, D-9.
 */
import { beforeAll, expect, test } from "bun:test"
import { Effect, Redacted } from "effect"
import fc from "fast-check"
import { ApiKeys } from "../../../src/access/keys/ApiKeys.ts"
import { useApi } from "../../support/api.ts"
import { asset, entity, network, organization, user, vault } from "../../support/records.ts"
import { create, short, tryCreate } from "../../support/webhookFixtures.ts"
import { delivery, type EventRow, event, insertDeliveries, insertEvents } from "./eventRows.ts"

const app = useApi()

const entities: Readonly<Record<string, string>> = { entity_1: "org_a", entity_2: "org_a", entity_3: "org_a", entity_4: "org_b" }
const vaults: Readonly<Record<string, string>> = {
  vault_1: "entity_1",
  vault_2: "entity_1",
  vault_3: "entity_2",
  vault_4: "entity_3",
  vault_5: "entity_4"
}
const organizationOf = (entityId: string) => entities[entityId] ?? ""
const vaultsOf = (organizationId: string) => Object.keys(vaults).filter((id) => organizationOf(vaults[id] ?? "") === organizationId)

interface Webhook {
  readonly entityIds: ReadonlyArray<string>
  readonly vaultIds: ReadonlyArray<string> | null
  id: string
}
const hook = (entityIds: ReadonlyArray<string>, vaultIds: ReadonlyArray<string> | null): Webhook => ({ entityIds, vaultIds, id: "" })
const webhooks: ReadonlyArray<Webhook> = [
  hook(["entity_1"], null),
  hook(["entity_1"], ["vault_1"]),
  hook(["entity_1"], ["vault_1", "vault_2"]),
  hook(["entity_2"], null),
  hook(["entity_2"], ["vault_3"]),
  hook(["entity_1", "entity_2"], null),
  hook(["entity_1", "entity_2"], ["vault_1", "vault_3"]),
  hook(["entity_1", "entity_2"], ["vault_2"]),
  hook(["entity_3"], null),
  hook(["entity_1", "entity_2", "entity_3"], ["vault_1", "vault_2", "vault_3", "vault_4"]),
  hook(["entity_4"], null),
  hook(["entity_4"], ["vault_5"])
]

const events: ReadonlyArray<EventRow> = [
  ...Object.entries(vaults).map(([vaultId, entityId]) => event({ vaultId, entityId, organizationId: organizationOf(entityId) })),
  // Recorded when the vault belonged to another entity.
  event({ vaultId: "vault_1", entityId: "entity_3" }),
  ...Object.entries(entities).map(([entityId, organizationId]) =>
    event({ vaultId: null, entityId, organizationId, kind: "webhook.disabled" })
  ),
  event({ vaultId: null, entityId: "entity_1", audience: ["entity_1", "entity_2"], kind: "webhook.disabled" }),
  event({ vaultId: null, entityId: "entity_2", audience: ["entity_1", "entity_2", "entity_3"], kind: "webhook.secret_rotated" })
]

/** The vaults that belong or belonged to an entity. */
const hadVaults = (entityId: string) => [
  ...new Set(events.flatMap((row) => (row.entityId === entityId && row.vaultId !== null ? [row.vaultId] : [])))
]

const subset = (values: ReadonlyArray<string>, minimum = 0) => fc.subarray([...values], { minLength: minimum })
const READ = "webhook:read",
  MANAGE = "webhook:manage"

interface User {
  readonly id: string
  readonly organizationId: string
  readonly owner: boolean
  readonly roles: ReadonlyArray<string>
  readonly keys: ReadonlyArray<{ readonly scopes: ReadonlyArray<string>; readonly allowlist: ReadonlyArray<string> | null }>
}
interface Caller {
  readonly owner: User
  readonly key: User["keys"][number]
}

const userOf = (id: string, organizationId: string): fc.Arbitrary<User> =>
  fc.record({
    id: fc.constant(id),
    organizationId: fc.constant(organizationId),
    owner: fc.boolean(),
    roles: subset(vaultsOf(organizationId)),
    keys: fc.array(
      fc.record({
        scopes: fc.oneof<Array<fc.WeightedArbitrary<ReadonlyArray<string>>>>(
          { weight: 3, arbitrary: fc.constant([READ, MANAGE] as const) },
          { weight: 2, arbitrary: fc.subarray(["vault:read", READ, MANAGE] as const, { minLength: 1 }) }
        ),
        allowlist: fc.option(subset(vaultsOf(organizationId), 1), { nil: null })
      }),
      { minLength: 3, maxLength: 3 }
    )
  })

/** Part of every world, so that each kind of response occurs in each, whatever else is generated. */
const fixed: ReadonlyArray<User> = [
  {
    id: "user_owner",
    organizationId: "org_a",
    owner: true,
    roles: vaultsOf("org_a"),
    keys: [
      { scopes: [READ, MANAGE], allowlist: null },
      { scopes: [READ], allowlist: null }
    ]
  },
  {
    id: "user_member",
    organizationId: "org_a",
    owner: false,
    roles: vaultsOf("org_a"),
    keys: [
      { scopes: [READ, MANAGE], allowlist: null },
      { scopes: [MANAGE], allowlist: null }
    ]
  }
]
const world = fc
  .tuple(userOf("user_1", "org_a"), userOf("user_2", "org_a"), userOf("user_3", "org_a"), userOf("user_4", "org_b"))
  .map((generated) => [...generated, ...fixed])

const reaches = ({ owner }: Caller, entityId: string) =>
  organizationOf(entityId) === owner.organizationId && (owner.owner || owner.roles.some((id) => vaults[id] === entityId))
const seesVault = ({ key, owner }: Caller, id: string) => owner.roles.includes(id) && (key.allowlist === null || key.allowlist.includes(id))
const seesWebhook = (caller: Caller, { entityIds, vaultIds }: Webhook) =>
  entityIds.every((id) => reaches(caller, id)) &&
  (caller.key.allowlist === null || vaultIds?.every((id) => caller.key.allowlist?.includes(id)) === true)
const seesEvent = (caller: Caller, { audience, entityId, vaultId }: EventRow) =>
  vaultId === null
    ? caller.key.allowlist === null && [entityId, ...(audience ?? [])].every((id) => reaches(caller, id))
    : seesVault(caller, vaultId) && vaultsOf(caller.owner.organizationId).includes(vaultId)
/** What a new webhook may name. A limited key does not reach an entity without a vault that it sees. */
const mayName = (caller: Caller, entityId: string) =>
  reaches(caller, entityId) &&
  (caller.key.allowlist === null || Object.entries(vaults).some(([id, at]) => at === entityId && seesVault(caller, id)))
const refusedMutation = ({ key, owner }: Caller) =>
  !key.scopes.includes("webhook:manage") ? "403 insufficient_scope" : owner.owner ? undefined : "403 owner_required"

let deliveries: ReadonlyArray<{ readonly id: string; readonly webhook: Webhook; readonly event: EventRow }> = []

beforeAll(async () => {
  await app.feed(
    [
      network("ethereum"),
      asset("ethereum/native"),
      organization("org_a", ["ethereum"]),
      organization("org_b", ["ethereum"]),
      ...Object.entries(entities).map(([id, organizationId]) => entity(id, organizationId)),
      ...Object.entries(vaults).map(([id, entityId]) => vault(id, entityId)),
      user("user_a", "org_a", vaultsOf("org_a"), { organizationRole: "owner" }),
      user("user_b", "org_b", vaultsOf("org_b"), { organizationRole: "owner" })
    ],
    { "x-record-events": "none" }
  )
  const makers = { org_a: (await app.key("user_a")).secret, org_b: (await app.key("user_b")).secret }
  for (const one of webhooks) {
    const maker = one.entityIds.includes("entity_4") ? makers.org_b : makers.org_a
    // Disabled, so that an allowed redelivery says so and sends nothing.
    one.id = (await create(app, maker, { entityIds: one.entityIds, vaultIds: one.vaultIds, status: "DISABLED" })).id
  }
  await insertEvents(app, events)
  // The order of recording, as writers maintain it.
  await app.sql(`UPDATE events e SET position = n.position
    FROM (SELECT id, row_number() OVER (PARTITION BY organization_id ORDER BY id) AS position FROM events) n WHERE n.id = e.id`)
  await app.sql("UPDATE event_streams s SET position = (SELECT count(*) FROM events e WHERE e.organization_id = s.organization_id)")
  const rows = events.flatMap((row) =>
    webhooks.map((webhook, index) => {
      // A delivery from the dispatcher has its event's vault; some have none, as do those of pairs that it would skip.
      const vaultId = webhook.entityIds.includes(row.entityId) && index % 2 === 0 ? row.vaultId : null
      return { row: delivery({ eventId: row.id, webhookId: webhook.id, vaultId }), webhook, event: row }
    })
  )
  await insertDeliveries(
    app,
    rows.map(({ row }) => row)
  )
  deliveries = rows.map(({ event, row, webhook }) => ({ id: row.id, webhook, event }))
})

const sorted = (ids: ReadonlyArray<string>) => [...ids].sort().join(" ")

/** Every request with the response that the model expects. */
const questions = function* (caller: Caller) {
  const reads = caller.key.scopes.includes("webhook:read")
  const refused = refusedMutation(caller)
  const list = (ids: ReadonlyArray<string>) => (reads ? `200 ${sorted(ids)}` : "403 insufficient_scope")
  const one = (seen: boolean, answer: string) => (reads && seen ? answer : "404 not_found")
  yield ["GET", "/v1/webhooks?limit=500", list(webhooks.filter((_) => seesWebhook(caller, _)).map(({ id }) => id))] as const
  yield ["GET", "/v1/webhook-events?limit=500", list(events.filter((_) => seesEvent(caller, _)).map(({ id }) => id))] as const
  yield ["GET", "/v1/event-feed?limit=500", list(events.filter((_) => seesEvent(caller, _)).map(({ id }) => id))] as const
  for (const [id, at] of Object.entries(entities)) {
    const ofEntity = events.filter((_) => _.entityId === id && seesEvent(caller, _)).map((row) => row.id)
    yield ["GET", `/v1/event-feed?limit=500&entityId=${id}`, list(ofEntity)] as const
    yield ["GET", `/v1/webhook-events?limit=500&entityId=${id}`, list(ofEntity)] as const
    const whole =
      caller.key.allowlist === null &&
      at === caller.owner.organizationId &&
      reaches(caller, id) &&
      hadVaults(id).every((vaultId) => caller.owner.roles.includes(vaultId))
    const latest = !reads ? "403 insufficient_scope" : whole ? `200 ${id}` : "404 not_found"
    yield ["GET", `/v1/event-checkpoints/latest?entityId=${id}`, latest] as const
  }
  for (const webhook of webhooks) {
    const seen = seesWebhook(caller, webhook)
    const path = `/v1/webhooks/${webhook.id}`
    yield ["GET", path, one(seen, `200 ${webhook.id}`)] as const
    yield [
      "GET",
      `${path}/deliveries`,
      one(seen, `200 ${sorted(deliveries.filter((_) => _.webhook === webhook && seesEvent(caller, _.event)).map(({ id }) => id))}`)
    ] as const
    yield ["PATCH", path, one(seen, refused ?? `200 ${webhook.id}`)] as const
  }
  for (const row of events) {
    const seen = seesEvent(caller, row)
    const sent = deliveries.filter((_) => _.event === row && seesWebhook(caller, _.webhook)).map(({ id }) => id)
    yield ["GET", `/v1/webhook-events/${row.id}`, one(seen, `200 ${row.id} ${sent.length}`)] as const
    yield ["GET", `/v1/webhook-events/${row.id}/deliveries`, one(seen, `200 ${sorted(sent)}`)] as const
    yield [
      "GET",
      `/v1/webhook-events?limit=500&vaultId=${row.vaultId ?? "vault_absent"}`,
      list(events.filter((_) => _.vaultId !== null && _.vaultId === row.vaultId && seesEvent(caller, _)).map(({ id }) => id))
    ] as const
    yield [
      "GET",
      `/v1/event-feed?limit=500&vaultId=${row.vaultId ?? "vault_absent"}`,
      list(events.filter((_) => _.vaultId !== null && _.vaultId === row.vaultId && seesEvent(caller, _)).map(({ id }) => id))
    ] as const
  }
  for (const { event, id, webhook } of deliveries) {
    yield [
      "POST",
      `/v1/webhook-deliveries/${id}/redeliver`,
      one(seesEvent(caller, event) && seesWebhook(caller, webhook), refused ?? "409 webhook_disabled")
    ] as const
  }
}

const ask = async (secret: string, method: string, target: string): Promise<string> => {
  const answer = await app.request(method, target, { key: secret, ...(method === "PATCH" ? { body: {} } : {}) })
  // Reads of one organization are limited: on a busy machine, one may have waited too long for a slot.
  if (answer.status === 503 && answer.headers.get("retry-after") !== null) return ask(secret, method, target)
  const { json, status } = answer
  if (status !== 200) return short(answer)
  if (json.data !== undefined) return `200 ${sorted(json.data.map(({ id }: { id: string }) => id))}`
  return json.deliveryCounts === undefined ? `200 ${json.id ?? json.entityId}` : `200 ${json.id} ${json.deliveryCounts.DELIVERED}`
}

/** The number of worlds; about 230 requests for each of a world's 16 keys. */
const WORLDS = 3

test("for any users, roles and keys, each key sees what the rules say", async () => {
  let cases = 0
  const tally = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(world, async (users) => {
      await app.feed(users.map((one) => user(one.id, one.organizationId, vaultsOf(one.organizationId))))
      const callers = users.flatMap((owner) => owner.keys.map((key) => ({ owner, key })))
      const secrets = await app.run(
        Effect.flatMap(ApiKeys, (service) =>
          Effect.forEach(callers, ({ key, owner }) =>
            Effect.map(
              service.create(owner.id, { scopes: key.scopes, vaultIds: key.allowlist, ipAllowlist: [], expiresAt: null, label: "" }),
              ({ secret }) => Redacted.value(secret)
            )
          )
        )
      )
      await app.feed(users.map((one) => user(one.id, one.organizationId, one.roles, { organizationRole: one.owner ? "owner" : "member" })))
      await Promise.all(
        callers.map(async (caller, index) => {
          for (const [method, target, expected] of questions(caller)) {
            const answer = await ask(secrets[index] ?? "", method, target)
            expect({ caller, method, target, answer }).toEqual({ caller, method, target, answer: expected })
            const name = `${method} ${target.replace(/_[0-9a-z]{26}/, "").replace(/\?.*/, "")} ${expected.startsWith("200 ") ? "200" : expected}`
            tally.set(name, (tally.get(name) ?? 0) + 1)
            cases++
          }
        })
      )
    }),
    { numRuns: WORLDS, endOnFailure: true }
  )
  expect(cases).toBeGreaterThanOrEqual(10_000)
  // The users that every world has make each of them occur.
  for (const name of [
    "GET /v1/webhooks 200",
    "GET /v1/webhooks 403 insufficient_scope",
    "GET /v1/webhooks/whs 200",
    "GET /v1/webhooks/whs 404 not_found",
    "GET /v1/webhooks/whs/deliveries 200",
    "PATCH /v1/webhooks/whs 200",
    "PATCH /v1/webhooks/whs 403 owner_required",
    "PATCH /v1/webhooks/whs 403 insufficient_scope",
    "GET /v1/event-feed 200",
    "GET /v1/event-feed 403 insufficient_scope",
    "GET /v1/event-checkpoints/latest 200",
    "GET /v1/event-checkpoints/latest 403 insufficient_scope",
    "GET /v1/event-checkpoints/latest 404 not_found",
    "GET /v1/webhook-events/evt 200",
    "GET /v1/webhook-events/evt 404 not_found",
    "GET /v1/webhook-events/evt/deliveries 200",
    "POST /v1/webhook-deliveries/del/redeliver 409 webhook_disabled",
    "POST /v1/webhook-deliveries/del/redeliver 403 owner_required",
    "POST /v1/webhook-deliveries/del/redeliver 404 not_found"
  ]) {
    expect([name, (tally.get(name) ?? 0) >= WORLDS]).toEqual([name, true])
  }
})

interface Asked {
  readonly entityIds: ReadonlyArray<string>
  readonly vaultIds: ReadonlyArray<string> | null
}

/** What the caller can read, in a webhook's terms: each entity whose every vault is visible, and each visible vault. */
const readable = (caller: Caller): ReadonlyArray<Asked> => [
  ...(caller.key.allowlist === null
    ? Object.keys(entities)
        .filter((id) => reaches(caller, id) && hadVaults(id).every((vaultId) => seesVault(caller, vaultId)))
        .map((id) => ({ entityIds: [id], vaultIds: null }))
    : []),
  ...Object.entries(vaults)
    .filter(([id]) => seesVault(caller, id))
    .map(([id, entityId]) => ({ entityIds: [entityId], vaultIds: [id] }))
]

/** The number of owners, each with four keys. */
const RUNS = 8

test("a webhook created with a key sends only what the key could read", async () => {
  const asked: fc.Arbitrary<Asked> = fc.record({
    entityIds: subset([...Object.keys(entities), "entity_absent"], 1),
    vaultIds: fc.option(subset([...Object.keys(vaults), "vault_absent"], 1), { nil: null })
  })
  const remover = (await app.key("user_a")).secret
  const whole = { scopes: [MANAGE], allowlist: null } as const
  let taken = 0,
    refused = 0
  await fc.assert(
    fc.asyncProperty(userOf("user_1", "org_a"), fc.array(asked, { minLength: 12, maxLength: 12 }), async (one, bodies) => {
      // An owner who sees at least one vault.
      const owner = { ...one, owner: true, roles: one.roles.length === 0 ? ["vault_1"] : one.roles }
      // One key without limits, so that an owner always sees something.
      for (const key of [whole, ...owner.keys]) {
        await app.feed([user(one.id, one.organizationId, vaultsOf("org_a"), { organizationRole: "owner" })])
        const { secret } = await app.key(one.id, { scopes: ["webhook:manage"], vaultIds: key.allowlist })
        await app.feed([user(one.id, one.organizationId, owner.roles, { organizationRole: "owner" })])
        const caller = { owner, key }
        const further = readable(caller).map(({ entityIds, vaultIds }) => ({
          entityIds: [...new Set([...entityIds, "entity_3"])],
          vaultIds
        }))
        for (const body of [...readable(caller), ...further, ...bodies, { entityIds: ["entity_4"], vaultIds: null }]) {
          const allowed =
            body.entityIds.every((id) => mayName(caller, id)) &&
            (body.vaultIds === null
              ? key.allowlist === null && body.entityIds.flatMap(hadVaults).every((id) => seesVault(caller, id))
              : body.vaultIds.every((id) => body.entityIds.includes(vaults[id] ?? "") && seesVault(caller, id)))
          const answer = await tryCreate(app, secret, { ...body, status: "DISABLED" })
          expect({ caller, body, answer: short(answer) }).toEqual({ caller, body, answer: allowed ? "201" : "400 invalid_body" })
          if (allowed) {
            taken++
            await app.request("DELETE", `/v1/webhooks/${answer.json.id}`, { key: remover })
          } else refused++
        }
      }
    }),
    { numRuns: RUNS, endOnFailure: true }
  )
  // Every run has at least one vault that the unlimited key sees, and with each key the foreign entity.
  expect(taken).toBeGreaterThanOrEqual(RUNS)
  expect(refused).toBeGreaterThanOrEqual(RUNS * 4)
})
