/**
 * The list of events uses different paths through the indexes: along one vault, along each of the caller's vaults, along
 * the organization's newest events. On every path it shows what a model selects from all rows. Decisions D-2, D-9.
 */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { entity, smallest, user, vault } from "../../support/records.ts"
import { type EventRow, event, insertEvents } from "./eventRows.ts"

const app = useApi()
const kinds = ["transaction.confirmed", "balance.updated", "vault.updated"]
const vaults = Array.from({ length: 80 }, (_, index) => `vault_${String(index).padStart(2, "0")}`)
const entityOf = (vaultId: string) => (Number(vaultId.slice(6)) % 2 === 0 ? "entity_a" : "entity_b")
/** The vault with by far the newest events of the organization, which only the owner sees. */
const [LOUD = ""] = vaults.slice(-1)
const from = Date.parse("2030-01-01T00:00:00.000Z")
const at = (minutes: number) => new Date(from + minutes * 60_000).toISOString()

interface Caller {
  readonly name: string
  readonly owner: boolean
  readonly roles: ReadonlyArray<string>
  readonly allowlist: ReadonlyArray<string> | null
}

const callers: ReadonlyArray<Caller> = [
  { name: "an owner with every vault", owner: true, roles: vaults, allowlist: null },
  { name: "an owner without a vault", owner: true, roles: [], allowlist: null },
  { name: "an owner limited to 50 vaults", owner: true, roles: vaults, allowlist: vaults.slice(0, 50) },
  { name: "an owner limited to 2 vaults", owner: true, roles: vaults, allowlist: vaults.slice(3, 5) },
  { name: "a member with 60 vaults", owner: false, roles: vaults.slice(0, 60), allowlist: null },
  { name: "a member with 60 vaults limited to 40", owner: false, roles: vaults.slice(0, 60), allowlist: vaults.slice(20, 60) },
  { name: "a member with 3 vaults", owner: false, roles: vaults.slice(0, 3), allowlist: null },
  {
    name: "a member with vaults of one entity only",
    owner: false,
    roles: vaults.filter((id) => entityOf(id) === "entity_b").slice(0, 35),
    allowlist: null
  },
  { name: "a member with one vault", owner: false, roles: vaults.slice(7, 8), allowlist: null },
  { name: "a member without a vault", owner: false, roles: [], allowlist: null }
]

const rows: ReadonlyArray<EventRow> = [
  ...Array.from({ length: 700 }, (_, index) => {
    const vaultId = vaults[(index * 31) % 79] ?? ""
    // Some were recorded when their vault belonged to another entity.
    const entityId = index % 23 === 0 ? "entity_c" : entityOf(vaultId)
    return event({ vaultId, entityId, kind: kinds[index % 3] ?? "", occurredAt: at((index * 37) % 211) })
  }),
  ...Array.from({ length: 40 }, (_, index) => {
    const [entityId = "", audience = null] = [
      ["entity_a"],
      ["entity_b"],
      ["entity_a", ["entity_a", "entity_b"]],
      ["entity_c", ["entity_a", "entity_c"]]
    ][index % 4] as [string, ReadonlyArray<string>?]
    return event({ vaultId: null, entityId, audience, kind: "webhook.disabled", occurredAt: at(index * 5) })
  }),
  ...Array.from({ length: 3_400 }, (_, index) => event({ vaultId: LOUD, entityId: entityOf(LOUD), occurredAt: at(1_000 + (index % 500)) }))
]

const sees = ({ allowlist, owner, roles }: Caller, row: EventRow): boolean => {
  const reaches = (entityId: string) => owner || roles.some((id) => entityOf(id) === entityId)
  if (row.vaultId === null) return allowlist === null && [row.entityId, ...(row.audience ?? [])].every(reaches)
  return roles.includes(row.vaultId) && (allowlist === null || allowlist.includes(row.vaultId))
}

const newestFirst = (a: EventRow, b: EventRow) =>
  a.occurredAt === b.occurredAt ? (a.id < b.id ? 1 : -1) : a.occurredAt < b.occurredAt ? 1 : -1

beforeAll(async () => {
  await app.feed(
    [
      ...smallest(),
      entity("entity_b", "org_a"),
      entity("entity_c", "org_a"),
      ...vaults.map((id) => vault(id, entityOf(id))),
      ...callers.map((caller, index) =>
        user(`user_${index}`, "org_a", caller.roles, { organizationRole: caller.owner ? "owner" : "member" })
      )
    ],
    { "x-record-events": "none" }
  )
  await insertEvents(app, rows)
})

const filters: ReadonlyArray<readonly [string, (row: EventRow) => boolean]> = [
  ["", () => true],
  ["kind=vault.updated", (row) => row.kind === "vault.updated"],
  ["kind=webhook.disabled", (row) => row.kind === "webhook.disabled"],
  [`occurredBefore=${at(999)}`, (row) => row.occurredAt <= at(999)],
  [`occurredAfter=${at(50)}&occurredBefore=${at(60)}`, (row) => row.occurredAt >= at(50) && row.occurredAt <= at(60)],
  [`kind=transaction.confirmed&occurredBefore=${at(100)}`, (row) => row.kind === "transaction.confirmed" && row.occurredAt <= at(100)],
  ["entityId=entity_a", (row) => row.entityId === "entity_a"],
  ["entityId=entity_c", (row) => row.entityId === "entity_c"],
  ["entityId=entity_absent", () => false],
  ["entityId=entity_b&kind=vault.updated", (row) => row.entityId === "entity_b" && row.kind === "vault.updated"],
  ["entityId=entity_c&kind=webhook.disabled", (row) => row.entityId === "entity_c" && row.kind === "webhook.disabled"],
  ["entityId=entity_c&vaultId=vault_01", (row) => row.entityId === "entity_c" && row.vaultId === "vault_01"],
  [`entityId=entity_a&occurredBefore=${at(60)}`, (row) => row.entityId === "entity_a" && row.occurredAt <= at(60)],
  ["vaultId=vault_01", (row) => row.vaultId === "vault_01"],
  [`vaultId=${LOUD}&kind=balance.updated`, () => false]
]

for (const [index, caller] of callers.entries()) {
  test(`${caller.name} sees exactly its events, in order, with every filter and page size`, async () => {
    const { secret } = await app.key(`user_${index}`, { vaultIds: caller.allowlist })
    const visible = rows.filter((row) => sees(caller, row)).sort(newestFirst)
    for (const [query, fits] of filters) {
      const expected = visible.filter(fits).map(({ id }) => id)
      for (const limit of expected.length > 1_500 ? [500] : [37, 500]) {
        const shown = (await app.walk(`/v1/webhook-events?${query}`, secret, limit)).map(({ id }) => id)
        expect([query, limit, shown.length, shown]).toEqual([query, limit, expected.length, expected])
      }
    }
  })
}

test("the callers above differ: they see all, much, little and nothing of the log", () => {
  const counts = callers.map((caller) => rows.filter((row) => sees(caller, row)).length)
  expect(Math.max(...counts)).toBeGreaterThan(4_000)
  expect(Math.min(...counts)).toBe(0)
  expect(new Set(counts).size).toBeGreaterThan(6)
})
