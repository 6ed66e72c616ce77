/** Transactions of all visible vaults, for callers who see many vaults and few. C-11. */
import { beforeAll, describe, expect, test } from "bun:test"
import fc from "fast-check"
import * as Id from "../../../src/values/Id.ts"
import { useApi } from "../../support/api.ts"
import type { Record } from "../../support/app.ts"
import { codeOf } from "../../support/problem.ts"
import { ALICE, asset, BOB, entity, hash, network, organization, smallest, transaction, user, vault } from "../../support/records.ts"

const TOKEN = "ethereum/erc20:0xdac17f958d2ee523a2206206994597c13d831ec7"
const assets = ["ethereum/native", TOKEN, "solana/native"]
const addresses = [ALICE, BOB, "So1anaAddress"]
const statuses = ["pending", "confirmed", "failed"]
const times = Array.from({ length: 7 }, (_, index) => `2024-03-01T10:00:0${index}.000Z`)
/** More vaults than are read one by one. */
const VAULTS = 130
const vaultIds = Array.from({ length: VAULTS }, (_, index) => `vault_${index}`)
const entityOf = (index: number) => `entity_${index < 120 ? index % 2 : 2}`
const EVERY = vaultIds,
  SIXTY = vaultIds.slice(0, 60),
  THREE = ["vault_0", "vault_7", "vault_125"]

const app = useApi({ RATE_LIMIT: "off" })

/** Transactions of every vault, in which each value of a filter is frequent, and many have the same time and hash. */
const all: ReadonlyArray<Record> = Array.from({ length: 700 }, (_, index) => {
  const id = assets[index % 3] ?? ""
  return transaction(vaultIds[(index * 7) % VAULTS] ?? "", index % 40, {
    index,
    network: id.split("/")[0],
    asset: id,
    direction: index % 3 === 0 ? "inbound" : "outbound",
    status: statuses[index % 4] ?? "confirmed",
    // Some are from and to the same address.
    from: addresses[index % 3],
    to: addresses[Math.floor(index / 3) % 3],
    timestamp: times[index % times.length]
  })
})
const keyed = all.map((row) => ({
  row,
  id: Id.ofKey("tx", String(row.network), String(row.hash), String(row.index), String(row.vaultId), String(row.direction)),
  entityId: entityOf(vaultIds.indexOf(String(row.vaultId)))
}))

let callers: ReadonlyArray<readonly [secret: string, sees: ReadonlyArray<string>]> = []
let everyKey = ""

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    network("solana"),
    asset(TOKEN),
    asset("solana/native"),
    ...[0, 1, 2, 3].map((index) => entity(`entity_${index}`, "org_a")),
    ...vaultIds.map((id, index) => vault(id, entityOf(index))),
    vault("vault_hidden", "entity_3"),
    user("user_every", "org_a", [...EVERY, "vault_hidden"]),
    user("user_sixty", "org_a", SIXTY),
    user("user_three", "org_a", THREE),
    user("user_none", "org_a", []),
    organization("org_other", ["ethereum"]),
    entity("entity_other", "org_other"),
    vault("vault_other", "entity_other"),
    user("user_other", "org_other", ["vault_other"])
  ])
  // Hidden rows with the same values as visible ones, in this organization and in another one.
  for (const id of ["vault_hidden", "vault_other"]) await app.feed(all.slice(0, 60).map((row) => ({ ...row, vaultId: id })))
  await app.feed(all)
  const secretOf = async (id: string, vaultIds: ReadonlyArray<string> | null = null) => (await app.key(id, { vaultIds })).secret
  everyKey = await secretOf("user_every")
  callers = [
    [everyKey, EVERY],
    [await secretOf("user_sixty"), SIXTY],
    [await secretOf("user_three"), THREE],
    [await secretOf("user_every", ["vault_3", "vault_hidden"]), ["vault_3"]],
    [await secretOf("user_every", vaultIds.slice(5, 120)), vaultIds.slice(5, 120)],
    [await secretOf("user_none"), []]
  ]
  // The allowlist of a key still names the vault.
  await app.feed([user("user_every", "org_a", EVERY)])
})

const PATH = "/v1/transactions"
const queryOf = (filters: { readonly [name: string]: string | ReadonlyArray<string> | undefined }) => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(filters)) for (const one of value === undefined ? [] : [value].flat()) query.append(name, one)
  return query.size === 0 ? "" : `?${query}`
}

type Filters = { readonly [name: string]: string | ReadonlyArray<string> | undefined }

/** The ids of the rows that a caller should see, in order. */
const expected = (sees: ReadonlyArray<string>, filters: Filters): ReadonlyArray<string> =>
  keyed
    .filter(({ entityId, row }) => {
      const has = (name: string, value: unknown) => filters[name] === undefined || [filters[name]].flat().includes(String(value))
      const at = String(row.timestamp)
      return (
        sees.includes(String(row.vaultId)) &&
        ["vaultId", "hash", "asset", "network", "status", "direction"].every((name) => has(name, row[name])) &&
        has("entityId", entityId) &&
        (has("address", row.from) || has("address", row.to)) &&
        (filters.occurredAfter === undefined || at >= String(filters.occurredAfter)) &&
        (filters.occurredBefore === undefined || at <= String(filters.occurredBefore)) &&
        (filters.occurredUntil === undefined || at < String(filters.occurredUntil))
      )
    })
    .toSorted((a, b) =>
      a.row.timestamp === b.row.timestamp ? (a.id < b.id ? 1 : -1) : String(a.row.timestamp) < String(b.row.timestamp) ? 1 : -1
    )
    .map(({ id }) => id)

const maybe = <A>(values: ReadonlyArray<A>) => fc.option(fc.constantFrom(...values), { nil: undefined, freq: 2 })
const some = (values: ReadonlyArray<string>) => fc.option(fc.subarray([...values], { minLength: 1 }), { nil: undefined, freq: 3 })
const filters = fc.record({
  vaultId: some(["vault_0", "vault_1", "vault_7", "vault_hidden", "vault_other", "vault_absent"]),
  entityId: some(["entity_0", "entity_1", "entity_2", "entity_3", "entity_other", "entity_absent"]),
  status: maybe([...statuses, "replaced"]),
  direction: maybe(["inbound", "outbound"]),
  asset: maybe(assets),
  network: maybe(["ethereum", "solana"]),
  hash: maybe([hash(1), hash(7), hash(99)]),
  address: maybe(addresses),
  occurredAfter: maybe(times),
  occurredBefore: maybe(times)
})

describe("transactions of all vaults", () => {
  test("any combination of filters returns each visible match once, newest first, in any page size", async () => {
    await fc.assert(
      fc.asyncProperty(filters, fc.nat(5), fc.constantFrom(7, 100, 500), async (chosen, caller, limit) => {
        const [secret, sees] = callers[caller] ?? ["", []]
        const found = await app.walk(`${PATH}${queryOf(chosen)}`, secret, limit)
        expect(found.map(({ id }) => id)).toEqual([...expected(sees, chosen)])
      }),
      { numRuns: 250 }
    )
  })

  test("each is the transaction of its vault's list, with vaultId added", async () => {
    for (const [secret, [id]] of callers.slice(0, 3)) {
      const ofVault = await app.walk(`/v1/vaults/${id}/transactions`, secret)
      expect(ofVault.length).toBeGreaterThan(3)
      expect(await app.walk(`${PATH}?vaultId=${id}`, secret)).toEqual(ofVault.map((row) => ({ ...row, vaultId: id })))
    }
  })

  test("an EVM address matches in either letter case, any other as it is written", async () => {
    const count = async (address: string) => (await app.walk(`${PATH}?address=${address}`, everyKey)).length
    expect(await count(ALICE)).toBe(expected(EVERY, { address: ALICE }).length)
    expect(await count(ALICE)).toBeGreaterThan(100)
    for (const other of [ALICE.toLowerCase(), `0x${ALICE.slice(2).toUpperCase()}`]) expect(await count(other)).toBe(await count(ALICE))
    expect(await count("so1anaaddress")).toBe(0)
  })

  test("many vaultId parameters are possible, and every row is of one of them", async () => {
    const wanted = vaultIds.slice(3, 125)
    const query = wanted.map((id) => `vaultId=${id}`).join("&")
    expect((await app.walk(`${PATH}?${query}`, everyKey)).map(({ id }) => id)).toEqual([...expected(wanted, {})])
  })

  test("a role that ends hides its vault's rows on the next page", async () => {
    await app.feed([user("user_losing", "org_a", ["vault_0", "vault_7"])])
    const { secret } = await app.key("user_losing")
    const first = (await app.get(`${PATH}?limit=1`, secret)).json
    await app.feed([user("user_losing", "org_a", ["vault_7"])])
    const { data } = (await app.get(`${PATH}?limit=500&cursor=${first.pagination.nextCursor}`, secret)).json
    expect(new Set(data.map(({ vaultId }: { vaultId: string }) => vaultId))).toEqual(new Set(["vault_7"]))
  })

  test("a vault's entity is the present one, also for rows from before it moved", async () => {
    await app.feed([vault("vault_moving", "entity_1"), user("user_moving", "org_a", ["vault_moving"]), transaction("vault_moving", 900)])
    const { secret } = await app.key("user_moving")
    const of = async (id: string) => (await app.walk(`${PATH}?entityId=${id}`, secret)).length
    expect([await of("entity_1"), await of("entity_2")]).toEqual([1, 0])
    await app.feed([vault("vault_moving", "entity_2")])
    expect([await of("entity_1"), await of("entity_2")]).toEqual([0, 1])
  })

  test("invalid filters are rejected, and a key without vault:read gets 403", async () => {
    const code = async (query: string) => codeOf(await app.get(`${PATH}?${query}`, everyKey))
    for (const query of [
      "address=",
      "address=a%20b",
      "hash=",
      "status=x",
      "asset=x",
      "network=X",
      "occurredAfter=x",
      "limit=501",
      "status=failed&status=failed"
    ])
      expect([query, await code(query)]).toEqual([query, "invalid_parameter"])
    expect(await code("vault=vault_0")).toBe("unknown_parameter")
    const { pagination } = (await app.get(`${PATH}?limit=1`, everyKey)).json
    expect(await code(`limit=1&status=failed&cursor=${pagination.nextCursor}`)).toBe("invalid_cursor")
    const { secret } = await app.key("user_every", { scopes: ["webhook:read", "webhook:manage"] })
    expect(codeOf(await app.get(PATH, secret))).toBe("insufficient_scope")
    expect(codeOf(await app.get(`${PATH}/export?format=csv`, secret))).toBe("insufficient_scope")
  })
})

describe("the export of all vaults", () => {
  test("has the rows of the list with the same filters, each with vaultId", async () => {
    const cases: ReadonlyArray<Filters> = [
      {},
      { address: ALICE },
      { address: ALICE, status: "confirmed" },
      { hash: hash(7) },
      { asset: TOKEN, direction: "outbound" },
      { entityId: ["entity_2", "entity_absent"] },
      { vaultId: ["vault_0", "vault_7", "vault_hidden"], occurredUntil: times[4] }
    ]
    for (const chosen of cases) {
      for (const [secret] of callers) {
        const query = queryOf(chosen)
        const answer = await app.get(`${PATH}/export${query}${query === "" ? "?" : "&"}format=ndjson`, secret)
        expect([chosen, answer.status]).toEqual([chosen, 200])
        const rows = answer.text.split("\n").slice(0, -1)
        expect(rows.map((row) => JSON.parse(row))).toEqual([...(await app.walk(`${PATH}${query}`, secret, 500))])
      }
    }
    const csv = await app.get(`${PATH}/export?format=csv`, everyKey)
    expect([csv.status, csv.headers.get("content-type"), csv.text.split("\r\n").length]).toEqual([200, "text/csv; charset=utf-8", 700 + 2])
  })
})
