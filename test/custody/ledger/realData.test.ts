/** The real custody records of `data/`, loaded by the command line and read back through the API. */
import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"
import { useApi } from "../../support/api.ts"
import { cli, type Record } from "../../support/app.ts"
import { transaction } from "../../support/records.ts"

const file = path.resolve(import.meta.dir, "../../../data/real-custody.ndjson")
const records: ReadonlyArray<Record> = fs
  .readFileSync(file, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line))
const of = (type: string) => records.filter((record) => record.type === type)
const text = (value: unknown) => String(value)

const app = useApi()
/** A key for each organization, of a user with the Developer role on all its vaults. */
const keys: Array<{ readonly secret: string; readonly vaults: ReadonlyArray<string> }> = []
let loaded: Awaited<ReturnType<typeof cli>>

beforeAll(async () => {
  loaded = await cli(["load", file], app.env)
  for (const { id } of of("organization")) {
    const entities = of("entity").filter((one) => one.organizationId === id)
    const vaults = of("vault").filter((one) => entities.some((entity) => entity.id === one.entityId))
    const ids = vaults.map((one) => text(one.id))
    const vaultRoles = ids.map((vaultId) => ({ vaultId, role: "developer" }))
    const reader = {
      type: "user",
      id: `user_all_${text(id).slice(4, 10)}`,
      organizationId: id,
      email: "all@example.com",
      name: "All",
      status: "active",
      organizationRole: "member",
      vaultRoles
    }
    await app.feed([reader])
    keys.push({ secret: (await app.key(reader.id)).secret, vaults: ids })
  }
})

describe("the real custody records", () => {
  test("load without loss, and change nothing when loaded again", async () => {
    expect([loaded.code, loaded.stderr]).toEqual([0, ""])
    const events = of("address").length + of("transaction").length + of("balance").length + of("vault").length
    expect(JSON.parse(loaded.stdout)).toEqual({ received: 8_028, changed: 8_028, unchanged: 0, stale: 0, staleLines: [], events })
    const again = await cli(["load", file], app.env)
    expect(JSON.parse(again.stdout)).toEqual({ received: 8_028, changed: 0, unchanged: 8_028, stale: 0, staleLines: [], events: 0 })
    expect(await app.sql("SELECT count(*)::int AS events FROM events")).toEqual([{ events }])
  })

  test("are counted by vault as in the file, and each organization sees its own only", async () => {
    const counts: Array<unknown> = []
    for (const { secret, vaults } of keys) {
      expect((await app.walk("/v1/vaults", secret)).map(({ id }) => id).sort()).toEqual([...vaults].sort())
      for (const vault of vaults) {
        for (const [list, type] of [
          ["transactions", "transaction"],
          ["addresses", "address"],
          ["balances", "balance"]
        ] as const) {
          const found = (await app.walk(`/v1/vaults/${vault}/${list}`, secret, 500)).length
          expect([vault, list, found]).toEqual([vault, list, of(type).filter((one) => one.vaultId === vault).length])
          counts.push(found)
        }
      }
    }
    expect(counts).toHaveLength(33)
  })

  test("every transaction is returned with every field as it was fed", async () => {
    const line = (vault: unknown, { amount, asset, direction, from, hash, network, status, timestamp, to }: Record) =>
      [vault, hash, network, status, direction, asset, amount, from, to, timestamp].join(" ")
    const found: Array<string> = []
    for (const { secret, vaults } of keys) {
      for (const vault of vaults) {
        for (const row of await app.walk(`/v1/vaults/${vault}/transactions`, secret, 500)) found.push(line(vault, row))
      }
    }
    expect(found.sort()).toEqual(
      of("transaction")
        .map((one) => line(one.vaultId, one))
        .sort()
    )
  })

  test("paging through any list returns each row exactly once, at any limit", async () => {
    for (const { secret, vaults } of keys) {
      const lists = [
        "/v1/vaults",
        "/v1/assets",
        "/v1/networks",
        ...vaults.flatMap((id) => ["balances", "transactions", "addresses"].map((list) => `/v1/vaults/${id}/${list}`))
      ]
      await Promise.all(
        lists.map(async (list) => {
          const whole = await app.walk(list, secret, 500)
          const expected = JSON.stringify(whole)
          for (const limit of whole.length <= 60 ? [1, 7, 100] : [7, 100]) {
            if (JSON.stringify(await app.walk(list, secret, limit)) !== expected)
              throw new Error(`${list} at limit ${limit} differs from limit 500`)
          }
        })
      )
    }
  })

  test("paging returns each existing row exactly once while new rows are written", async () => {
    const [owner] = keys
    const busiest = of("transaction").reduce(
      (counts, one) => counts.set(text(one.vaultId), (counts.get(text(one.vaultId)) ?? 0) + 1),
      new Map<string, number>()
    )
    const [vault = ""] = [...busiest].sort(([, a], [, b]) => b - a)[0] ?? []
    const list = `/v1/vaults/${vault}/transactions?network=ethereum`
    const secret = owner?.secret ?? ""
    const before = await app.walk(list, secret, 500)
    const times = [...new Set(before.map(({ timestamp }) => timestamp))]
    let writing = true,
      written = 0
    const writer = (async () => {
      while (writing) {
        // Newer than everything, at a time shared by many rows, and older than everything.
        const batch = Array.from({ length: 30 }, (_, index) =>
          transaction(vault, 5_000_000 + written + index, {
            timestamp: [new Date().toISOString(), times[index % times.length], "2015-08-01T00:00:00.000Z"][index % 3]
          })
        )
        await app.feed(batch)
        written += batch.length
      }
    })()
    try {
      // However slow the machine, enough was written during the walks to be significant.
      for (const limit of [7, 100, 500]) {
        for (const enough = written + 120; written < enough; ) {
          const seen = (await app.walk(list, secret, limit)).map((row) => JSON.stringify(row))
          const old = new Set(before.map((row) => JSON.stringify(row)))
          const isNew = (row: string) => Number.parseInt(JSON.parse(row).hash, 16) >= 5_000_000 && /^0x0{40}/.test(JSON.parse(row).hash)
          expect(seen.filter((row) => !isNew(row))).toEqual(before.map((row) => JSON.stringify(row)))
          expect(seen.filter(isNew).length).toBe(new Set(seen.filter(isNew)).size)
          expect(old.size).toBeGreaterThan(1_000)
        }
      }
    } finally {
      writing = false
      await writer
    }
    expect(written).toBeGreaterThan(300)
  })
})
