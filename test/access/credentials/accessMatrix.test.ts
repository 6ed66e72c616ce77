/**
 * Every key against every resource: generated users, roles and keys, and a model that derives the expected response to
 * each key from the specification alone. Decisions D-5, D-6, D-7.
 */
import { expect, test } from "bun:test"
import { Effect, Redacted } from "effect"
import fc from "fast-check"
import { ApiKeys } from "../../../src/access/keys/ApiKeys.ts"
import { useApi } from "../../support/api.ts"
import { cli } from "../../support/app.ts"
import { address, asset, balance, entity, network, organization, transaction, transactionId, user, vault } from "../../support/records.ts"

const app = useApi({ STATEMENT_DELAY: "0s", STATEMENT_HISTORY: "7d" })

const organizations = {
  org_a: {
    networks: ["ethereum", "bitcoin"],
    vaults: ["vault_a1", "vault_a2", "vault_a3", "vault_a4"],
    users: ["user_a1", "user_a2", "user_a3"]
  },
  org_b: { networks: ["ethereum"], vaults: ["vault_b1", "vault_b2"], users: ["user_b1", "user_b2"] }
} as const
type OrganizationId = keyof typeof organizations
const ids = ["org_a", "org_b"] as const
const allVaults: ReadonlyArray<string> = ids.flatMap((id) => [...organizations[id].vaults])

const subset = (values: ReadonlyArray<string>, minimum = 0) => fc.subarray([...values], { minLength: minimum })

/** A user's roles and status, and some of its keys: how they were created, and later changes. */
const userOf = (organizationId: OrganizationId, id: string) =>
  fc.record({
    organizationId: fc.constant(organizationId),
    id: fc.constant(id),
    roles: subset(organizations[organizationId].vaults),
    owner: fc.boolean(),
    leaves: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    keys: fc.array(
      fc.record({
        scopes: subset(["vault:read", "webhook:read", "webhook:manage"], 1),
        allowlist: fc.option(subset(organizations[organizationId].vaults, 1), { nil: null }),
        ips: fc.constantFrom<ReadonlyArray<string>>([], [], ["127.0.0.0/8"], ["203.0.113.0/24"], ["::/0"]),
        expired: fc.oneof({ weight: 6, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
        revoked: fc.oneof({ weight: 6, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) })
      }),
      { minLength: 5, maxLength: 9 }
    )
  })
const world = fc.tuple(...ids.flatMap((id) => organizations[id].users.map((one) => userOf(id, one))))
type User = ReturnType<typeof userOf> extends fc.Arbitrary<infer A> ? A : never
type Key = User["keys"][number]

const collections = ["/v1/vaults", "/v1/assets", "/v1/networks"]
/** A day with sealed statements. */
const DAY = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10)
const ofVault = [
  "",
  "/balances",
  `/balances?at=${DAY}T23:59:59.999Z`,
  "/transactions",
  ...allVaults.map((id) => `/transactions/${transactionId(id, 1)}`),
  "/addresses",
  "/balance-history?asset=ethereum%2Fnative",
  "/statements?limit=1",
  `/statements/${DAY}`,
  `/statements/${DAY}?revision=1`,
  `/statement-summary?from=${DAY}&to=${DAY}`
]
/** Not in parallel for every key, because connections for exports are few. */
const ofVaultFiles = [...allVaults, "vault_absent"].flatMap((id) =>
  ["csv", "ndjson"].map((format) => `/v1/vaults/${id}/transactions/export?format=${format}`)
)
/** Lists across vaults, in which each vault has one row, and files of them. */
const across = ["/v1/transactions", "/v1/balances", `/v1/balances?at=${DAY}T23:59:59.999Z`]
const SUMS = "/v1/balances?sumBy=asset"
const acrossFiles = ["csv", "ndjson"].map((format) => `/v1/transactions/export?format=${format}`)
/** Each organization has an entity with all its vaults. */
const ENTITIES = "/v1/entities"
const introspection = ["/v1/credential", ...[...allVaults, "vault_absent", "vault_%00"].map((id) => `/v1/credential?vaultId=${id}`)]
const resources = [
  ...introspection,
  ...collections,
  ENTITIES,
  ...across,
  SUMS,
  ...[...allVaults, "vault_absent"].flatMap((id) => ofVault.map((path) => `/v1/vaults/${id}${path}`))
]

/** The expected response to a key at a path: an error, or ids that identify the rows. */
const oracle = (owner: User, key: Key, path: string): string => {
  if (key.revoked || owner.leaves) return "401 revoked_api_key"
  if (key.expired) return "401 expired_api_key"
  if (key.ips.length > 0 && !key.ips.includes("127.0.0.0/8")) return "403 ip_not_allowed"
  const reads = key.scopes.includes("vault:read")
  const sees = (id: string) => owner.roles.includes(id) && (key.allowlist === null || key.allowlist.includes(id))
  if (introspection.includes(path)) {
    // C-7: the first of unknown, scope, allowlist and visible that applies; a hidden vault looks like an unknown one.
    const allowed = owner.roles.filter((id) => key.allowlist === null || key.allowlist.includes(id)).length
    const counts = `200 ${owner.roles.length} ${allowed} ${reads ? allowed : 0}`
    const [, id] = path.split("=")
    if (id === undefined) return counts
    if (!owner.roles.includes(id)) return `${counts} unknown`
    return `${counts} ${!reads ? "scope" : sees(id) ? "visible" : "allowlist"}`
  }
  if ([...across, ...acrossFiles, SUMS].includes(path)) {
    if (!reads) return "403 insufficient_scope"
    const amounts = allVaults.flatMap((id, index) => (sees(id) ? [index + 1] : []))
    return `200 ${path === SUMS ? amounts.reduce((sum, one) => sum + one, 0) : amounts}`
  }
  if (path === ENTITIES) {
    if (!reads && !key.scopes.includes("webhook:read")) return "403 insufficient_scope"
    const reached = key.allowlist === null && owner.owner ? true : owner.roles.some(sees)
    return `200 ${reached ? `entity_${owner.organizationId}` : ""}`
  }
  if (collections.includes(path)) {
    if (!reads) return "403 insufficient_scope"
    const { networks, vaults } = organizations[owner.organizationId]
    const rows = path === "/v1/vaults" ? vaults.filter(sees) : path === "/v1/assets" ? networks.map((name) => `${name}/native`) : networks
    return `200 ${[...rows].sort().join(" ")}`
  }
  const [, id = "", list = ""] = /^\/v1\/vaults\/([^/]+)\/?(.*)$/.exec(path) ?? []
  if (!reads || !sees(id)) return "404 not_found"
  const [, one] = /^transactions\/(tx_.+)$/.exec(list) ?? []
  if (one !== undefined && one !== transactionId(id, 1)) return "404 not_found"
  // Each vault has one row in each list, and the row identifies the vault.
  return `200 ${list === "" ? id : `${list.split("?", 1)[0]?.split("/")[0]} ${allVaults.indexOf(id) + 1}`}`
}

/** A response in the model's terms. */
const words = async (secret: string, path: string): Promise<string> => {
  const { json, status, text } = await app.get(path, secret)
  if (status !== 200) return `${status} ${json.code}`
  if (introspection.includes(path)) {
    const { vault, vaults } = json
    const of = vault === undefined ? "" : ` ${vault.because}`
    expect(vault?.visible ?? false).toBe(vault?.because === "visible")
    return `200 ${vaults.role} ${vaults.allowlist} ${vaults.visible}${of}`
  }
  if (acrossFiles.includes(path))
    return `200 ${[...text.matchAll(/,'(\d+),|"amount":"(\d+)"/g)].map(([, csv, json]) => Number(csv ?? json)).sort((a, b) => a - b)}`
  if ([...across, SUMS].includes(path))
    return `200 ${path === SUMS && json.data.length === 0 ? 0 : json.data.map(({ amount }: { amount: string }) => Number(amount)).sort((a: number, b: number) => a - b)}`
  if (path.includes("/export?")) return `200 transactions ${/,'(\d+),|"amount":"(\d+)"/.exec(text)?.slice(1).join("")}`
  const closing = (statement: { readonly assets: ReadonlyArray<{ readonly closing: string }> }) =>
    statement.assets.map((line) => line.closing)
  if (path.includes("/statement-summary")) return `200 statement-summary ${closing(json)}`
  if (path.includes("/statements")) return `200 statements ${json.data === undefined ? closing(json) : json.data.map(closing)}`
  if (path.includes("/transactions/")) return `200 transactions ${json.amount}`
  if (json.data === undefined) return `200 ${json.id}`
  const list = path.split("?", 1)[0]?.split("/").at(-1)
  if (list === "balances" || list === "balance-history" || list === "transactions")
    return `200 ${list} ${json.data.map(({ amount }: { amount: string }) => amount)}`
  if (list === "addresses") return `200 addresses ${json.data.map(({ address }: { address: string }) => address)}`
  return `200 ${json.data
    .map(({ id, name }: { id?: string; name?: string }) => id ?? name)
    .sort()
    .join(" ")}`
}

const feedWorld = () =>
  app.feed([
    network("ethereum"),
    network("bitcoin"),
    network("tron"),
    ...["ethereum", "bitcoin", "tron"].map((name) => asset(`${name}/native`)),
    ...ids.flatMap((id) => [
      organization(id, organizations[id].networks),
      entity(`entity_${id}`, id),
      ...organizations[id].vaults.map((one) => vault(one, `entity_${id}`))
    ]),
    ...allVaults.flatMap((id, index) => [
      transaction(id, 1, { amount: String(index + 1) }),
      { ...balance(id, "ethereum/native", String(index + 1)), occurredAt: `${DAY}T12:00:00.000Z` },
      address(id, String(index + 1))
    ])
  ])

test("for any users, roles and keys, every path answers every key as the rules say", async () => {
  await feedWorld()
  expect((await cli(["statements", "seal"], app.env)).code).toBe(0)
  let cases = 0
  const kinds = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(world, async (users) => {
      // Keys are created while their users are active and have every role; then roles and status are set.
      const standing = (one: User, vaults: ReadonlyArray<string>, status: string) =>
        user(one.id, one.organizationId, vaults, { organizationRole: one.owner ? "owner" : "member", status })
      await app.feed(users.map((one) => standing(one, organizations[one.organizationId].vaults, "active")))
      const keys = await app.run(
        Effect.flatMap(ApiKeys, (service) =>
          Effect.forEach(
            users.flatMap((owner) => owner.keys.map((key) => ({ owner, key }))),
            ({ key, owner }) =>
              Effect.gen(function* () {
                const expiresAt = key.expired ? "2020-01-01T00:00:00Z" : null
                const choice = { scopes: key.scopes, vaultIds: key.allowlist, ipAllowlist: key.ips, expiresAt, label: "" }
                const made = yield* service.create(owner.id, choice)
                if (key.revoked) yield* service.revoke(made.key.id)
                return { owner, key, secret: Redacted.value(made.secret) }
              })
          )
        )
      )
      await app.feed(users.map((one) => standing(one, one.roles, one.leaves ? "deactivated" : "active")))
      // As many in parallel as the read pool has connections.
      const queue = [...keys]
      const asking = Array.from({ length: 8 }, async () => {
        for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
          const { key, owner, secret } = next
          for (const path of resources) {
            const expected = oracle(owner, key, path)
            expect({ owner, key, path, answer: await words(secret, path) }).toEqual({ owner, key, path, answer: expected })
            const kind = `${path.startsWith("/v1/vaults/") ? "vault" : "list"} ${expected.startsWith("200") ? "200" : expected}`
            kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
            cases++
          }
        }
      })
      await Promise.all(asking)
      for (const { key, owner, secret } of keys) {
        for (const path of [...ofVaultFiles, ...acrossFiles])
          expect({ owner, key, path, answer: await words(secret, path) }).toEqual({ owner, key, path, answer: oracle(owner, key, path) })
      }
    }),
    // Each of them has at least 25 keys, and each key 126 paths.
    { numRuns: 6, endOnFailure: true }
  )
  expect(cases).toBeGreaterThanOrEqual(10_000)
  // Each kind of response occurred for several keys: a key without a scope gets three of its kind, and a visible vault ten.
  for (const kind of [
    "list 200",
    "list 403 insufficient_scope",
    "list 401 revoked_api_key",
    "vault 200",
    "vault 404 not_found",
    "vault 401 expired_api_key",
    "vault 403 ip_not_allowed"
  ]) {
    expect([kind, (kinds.get(kind) ?? 0) >= 15]).toEqual([kind, true])
  }
})
