/** Custody records, rule by rule: what changes, which event follows, what the event contains. Decisions D-15, D-17, D-18. */
import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as path from "node:path"
import Ajv2020 from "ajv/dist/2020"
import { Schema } from "effect"
import { schemaOf } from "../../../src/events/log/Envelope.ts"
import { isKind, kinds } from "../../../src/events/log/Kind.ts"
import { parse } from "../../../src/values/Timestamp.ts"
import { useApi } from "../../support/api.ts"
import type { Record } from "../../support/app.ts"
import {
  ALICE,
  address,
  asset,
  BOB,
  balance,
  entity,
  hash,
  network,
  organization,
  smallest,
  transaction,
  user,
  vault
} from "../../support/records.ts"

const app = useApi()
let key = ""
const TOKEN = "ethereum/erc20:0xdac17f958d2ee523a2206206994597c13d831ec7"

beforeAll(async () => {
  await app.feed([
    ...smallest(),
    asset(TOKEN, { decimals: 6, symbol: "USDT" }),
    network("bitcoin"),
    asset("bitcoin/native", { decimals: 8 }),
    vault("vault_b", "entity_a")
  ])
  key = (await app.key("user_a")).secret
})

/** Feeds records one by one and returns, for each, the kinds of the events that it caused. */
const caused = async (...records: ReadonlyArray<Record>) => {
  const found: Array<ReadonlyArray<string>> = []
  for (const record of records) found.push((await recorded([record])).map(({ kind }) => String(kind)))
  return found
}

/** Feeds records as one batch and returns the rows of the event log that this added, in order. */
const recorded = async (records: ReadonlyArray<Record>) => {
  const [{ last } = {}] = await app.sql("SELECT coalesce(max(id), '') AS last FROM events")
  const applied = await app.feed(records)
  const rows = await app.sql("SELECT * FROM events WHERE id > $1 ORDER BY id", [last])
  expect(applied.events).toBe(rows.length)
  return rows
}
const refusal = async (...records: ReadonlyArray<Record>) => {
  const { json, status } = await app.records(records)
  expect(status).toBe(400)
  return json.errors.map(({ field, line, reason }: { field: string; line: number; reason: string }) => `${line} ${field}: ${reason}`)
}

/** A record of each type, and one that changes it. */
const samples: ReadonlyArray<readonly [Record, Record]> = [
  [network("tron"), network("tron", "testnet")],
  [asset("tron/trc20:TXYZ", { network: "tron" }), asset("tron/trc20:TXYZ", { network: "tron", name: "Renamed" })],
  [organization("org_c", ["tron"]), organization("org_c", ["tron", "ethereum"])],
  [entity("entity_c", "org_c"), entity("entity_c", "org_c", { name: "Renamed" })],
  [vault("vault_c", "entity_c", { networks: ["tron"] }), vault("vault_c", "entity_c", { networks: ["tron"], label: "Renamed" })],
  [user("user_c", "org_c", ["vault_c"]), user("user_c", "org_c", [])],
  [
    address("vault_c", "TAddress", { network: "tron", createdAt: "2024-01-01T00:00:00Z" }),
    address("vault_c", "TAddress", { network: "tron", createdAt: "2024-01-02T00:00:00Z" })
  ],
  [transaction("vault_a", 1, { status: "pending" }), transaction("vault_a", 1, { status: "confirmed" })],
  [balance("vault_a", "ethereum/native", "1.50"), balance("vault_a", "ethereum/native", "1.51")]
]

describe("a record that changes nothing", () => {
  test("causes no event and no new updatedAt, for every type", async () => {
    const stamps = () =>
      app.sql(
        "SELECT (SELECT array_agg(updated_at::text ORDER BY updated_at) FROM (SELECT updated_at FROM networks UNION ALL SELECT updated_at FROM assets UNION ALL SELECT updated_at FROM organizations UNION ALL SELECT updated_at FROM entities UNION ALL SELECT updated_at FROM vaults UNION ALL SELECT updated_at FROM users UNION ALL SELECT updated_at FROM deposit_addresses UNION ALL SELECT updated_at FROM transactions UNION ALL SELECT updated_at FROM balances) x) AS stamps, (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM vault_roles) AS roles"
      )
    for (const [record, changedRecord] of samples) {
      expect((await app.records([record])).json).toMatchObject({ changed: 1, unchanged: 0 })
      const before = await stamps()
      expect((await app.records([record])).json).toEqual({ received: 1, changed: 0, unchanged: 1, stale: 0, staleLines: [], events: 0 })
      // A balance with another time is history; see test/custody/vaults/balances.test.ts.
      const again = record.type === "balance" ? record : { ...record, occurredAt: "2020-01-01T00:00:00Z" }
      expect((await app.records([again, record])).json).toEqual({
        received: 2,
        changed: 0,
        unchanged: 2,
        stale: 0,
        staleLines: [],
        events: 0
      })
      expect(await stamps()).toEqual(before)
      expect((await app.records([changedRecord])).json).toMatchObject({ changed: 1, unchanged: 0 })
    }
  })

  test("another spelling is the same record", async () => {
    await app.feed([
      transaction("vault_a", 2, { asset: TOKEN, amount: "5.5", timestamp: "2024-01-01T00:00:00Z" }),
      balance("vault_a", TOKEN, "5.5"),
      address("vault_a", ALICE, { createdAt: "2024-01-01T00:00:00Z" }),
      user("user_d", "org_a", ["vault_a", "vault_b"])
    ])
    const mixed = TOKEN.replace(/0x(.*)/, (_, digits) => `0x${digits.toUpperCase()}`)
    expect(
      (
        await app.records([
          transaction("vault_a", 2, {
            hash: `0x${hash(2).slice(2).toUpperCase()}`,
            asset: mixed,
            amount: "5.500",
            from: ALICE.toLowerCase(),
            to: BOB.toLowerCase(),
            timestamp: "2024-01-01T00:00:00.000Z"
          }),
          balance("vault_a", mixed, "5.500000"),
          address("vault_a", ALICE.toLowerCase(), { createdAt: "2024-01-01T00:00:00.0Z" }),
          address("vault_a", ALICE),
          user("user_d", "org_a", ["vault_b", "vault_a", "vault_b"])
        ])
      ).json
    ).toEqual({ received: 5, changed: 0, unchanged: 5, stale: 0, staleLines: [], events: 0 })
  })

  test("index, vault and direction distinguish transfers, and network and type distinguish addresses", async () => {
    const before = await app.sql("SELECT count(*)::int AS rows FROM transactions")
    const applied = await app.feed([
      transaction("vault_a", 3),
      transaction("vault_a", 3, { index: 1 }),
      transaction("vault_a", 3, { direction: "outbound" }),
      transaction("vault_b", 3),
      transaction("vault_a", 3, { network: "bitcoin", asset: "bitcoin/native", hash: hash(3) }),
      address("vault_a", "same", { assetType: "erc20" }),
      address("vault_a", "same"),
      address("vault_b", "same"),
      address("vault_a", "same", { network: "bitcoin" })
    ])
    expect(applied).toEqual({ received: 9, changed: 9, unchanged: 0, stale: 0, events: 9 })
    expect(await app.sql("SELECT count(*)::int - 5 AS rows FROM transactions")).toEqual([...before])
    // index is 0 when absent.
    const { index: _index, ...bare } = transaction("vault_a", 3)
    expect((await app.records([bare])).json).toMatchObject({ unchanged: 1 })
  })
})

describe("the event that a change causes", () => {
  test("a transfer between two vaults is two rows and two events, one for each vault", async () => {
    const events = await recorded([transaction("vault_a", 10, { direction: "outbound" }), transaction("vault_b", 10)])
    expect(events.map(({ kind, vault_id: vaultId }) => [kind, vaultId])).toEqual([
      ["transaction.confirmed", "vault_a"],
      ["transaction.confirmed", "vault_b"]
    ])
    for (const [index, other] of ["vault_b", "vault_a"].entries()) expect(String(events[index]?.payload)).not.toContain(other)
  })

  test("addresses, balances and vaults cause their created and updated events, and other records cause none", async () => {
    expect(
      await caused(
        address("vault_a", "fresh", { createdAt: "2024-05-01T00:00:00Z" }),
        address("vault_a", "fresh", { createdAt: "2024-05-02T00:00:00Z" }),
        balance("vault_b", "ethereum/native", "1"),
        balance("vault_b", "ethereum/native", "2"),
        balance("vault_b", "ethereum/native", "0"),
        vault("vault_e", "entity_a"),
        vault("vault_e", "entity_a", { label: "Renamed" }),
        vault("vault_e", "entity_a", { label: "Renamed", networks: ["ethereum", "bitcoin"] }),
        network("base"),
        organization("org_a", ["ethereum", "bitcoin"]),
        user("user_e", "org_a", ["vault_e"])
      )
    ).toEqual([
      ["deposit_address.created"],
      [],
      ["balance.updated"],
      ["balance.updated"],
      ["balance.updated"],
      ["vault.created"],
      ["vault.updated"],
      ["vault.updated"],
      [],
      [],
      []
    ])
  })

  test("events of a batch are recorded in the order of its records, with ascending ids", async () => {
    const events = await recorded([
      balance("vault_a", "ethereum/native", "71"),
      transaction("vault_a", 11, { status: "pending" }),
      transaction("vault_a", 11, { status: "confirmed" }),
      transaction("vault_a", 11, { status: "pending" }),
      transaction("vault_a", 11, { status: "dropped" }),
      balance("vault_a", "ethereum/native", "72")
    ])
    expect(events.map(({ kind }) => kind)).toEqual([
      "balance.updated",
      "transaction.pending",
      "transaction.confirmed",
      "transaction.reorged",
      "transaction.dropped",
      "balance.updated"
    ])
    expect((await app.get(`/v1/vaults/vault_a/transactions?hash=${hash(11)}`, key)).json.data[0].status).toBe("dropped")
    // Consumers order by date, so no two events of one object have the same date.
    for (const type of ["balance", "transaction"]) {
      const dates = events
        .filter(({ kind }) => String(kind).startsWith(type))
        .map(({ payload }): string => JSON.parse(String(payload)).date)
      expect(dates).toEqual([...new Set(dates)].sort())
    }
  })

  test("changes within one tick of the clock keep their order in their dates", async () => {
    const [{ last } = {}] = await app.sql("SELECT coalesce(max(id), '') AS last FROM events")
    for (let batch = 0; batch < 3; batch++) {
      await app.feed(Array.from({ length: 300 }, (_, index) => balance("vault_b", "ethereum/native", String(batch * 300 + index + 1))))
    }
    const rows = await app.sql("SELECT payload FROM events WHERE id > $1 ORDER BY id", [last])
    const events = rows.map(({ payload }): { date: string; data: { balance: { amount: string } } } => JSON.parse(String(payload)))
    expect(events.map(({ data }) => data.balance.amount)).toEqual(Array.from({ length: 900 }, (_, index) => String(index + 1)))
    const dates = events.map(({ date }) => date)
    expect(dates).toEqual([...new Set(dates)].sort())
    expect(Date.parse(dates.at(-1) ?? "")).toBeLessThan(Date.now() + 2_000)
  })

  test("items of the same time are listed by descending record id", async () => {
    const at = new Date(Date.now() + 3_600_000).toISOString()
    const [first, second] = ["0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", "0x00000000219ab540356cBB839Cbe05303d7705Fa"]
    await app.feed([
      ...[13_002, 13_000, 13_001].map((number) => transaction("vault_a", number, { timestamp: at })),
      address("vault_a", first, { createdAt: at }),
      address("vault_a", second, { createdAt: at })
    ])
    const transactions = (await app.get("/v1/vaults/vault_a/transactions?limit=3", key)).json.data
    expect(transactions.map((one: { hash: string }) => one.hash).sort()).toEqual([13_000, 13_001, 13_002].map(hash))
    const ids = transactions.map((one: { id: string }) => one.id)
    expect(ids).toEqual([...ids].sort().reverse())
    const addresses = (await app.get("/v1/vaults/vault_a/addresses?limit=2", key)).json.data
    expect(addresses.map((one: { address: string }) => one.address)).toEqual([second, first])
  })
})

describe("the event envelope", () => {
  test("carries exactly the envelope's fields, and data is what the read API returns", async () => {
    const occurredAt = "2024-07-01T10:11:12.345Z"
    const events = await recorded([
      { ...vault("vault_f", "entity_a", { label: "F – ü", networks: ["ethereum"] }), occurredAt },
      { ...user("user_a", "org_a", ["vault_a", "vault_b", "vault_f"], { organizationRole: "owner" }) },
      { ...transaction("vault_f", 20, { asset: TOKEN, amount: "12.340000", status: "pending" }), occurredAt },
      { ...address("vault_f", BOB.toLowerCase()), occurredAt },
      { ...balance("vault_f", TOKEN, "12.340"), occurredAt },
      { ...vault("vault_f", "entity_a", { label: "F2", networks: ["ethereum"] }), occurredAt }
    ])
    const read = async (path: string) => (await app.get(path, key)).json
    const data = [
      { vaultId: "vault_f", vault: { ...(await read("/v1/vaults/vault_f")), label: "F – ü" } },
      { vaultId: "vault_f", transaction: (await read("/v1/vaults/vault_f/transactions")).data[0], previous: null },
      { vaultId: "vault_f", depositAddress: (await read("/v1/vaults/vault_f/addresses")).data[0] },
      { vaultId: "vault_f", balance: (await read("/v1/vaults/vault_f/balances")).data[0] },
      { vaultId: "vault_f", vault: await read("/v1/vaults/vault_f") }
    ]
    expect(data[1]).toMatchObject({ transaction: { amount: "12.34", status: "pending" } })
    for (const [index, event] of events.entries()) {
      const envelope = JSON.parse(String(event.payload))
      expect(Object.keys(envelope)).toEqual(["id", "kind", "schemaVersion", "date", "entityId", "vaultIds", "data"])
      expect(envelope).toEqual({
        id: event.id,
        kind: event.kind,
        schemaVersion: 1,
        date: occurredAt,
        entityId: "entity_a",
        vaultIds: ["vault_f"],
        data: data[index]
      })
      // Byte for byte, with the keys in the order of the read API.
      expect(JSON.stringify(envelope.data)).toBe(JSON.stringify(data[index]))
      expect(event).toMatchObject({
        organization_id: "org_a",
        entity_id: "entity_a",
        vault_id: "vault_f",
        schema_version: 1
      })
      expect((event.occurred_at as Date).toISOString()).toBe(occurredAt)
    }
  })

  test("date is the time of recording if the record has none", async () => {
    const before = Date.now()
    const [event] = await recorded([balance("vault_a", "ethereum/native", "81")])
    const date = Date.parse(JSON.parse(String(event?.payload)).date)
    expect(date).toBeGreaterThanOrEqual(before)
    expect(date).toBeLessThanOrEqual(Date.now())
  })

  test("every recorded envelope fits the schema that its kind publishes", async () => {
    const rows = await app.sql("SELECT kind, payload FROM events")
    const seen = new Set<string>()
    for (const { kind, payload } of rows) {
      if (typeof kind !== "string" || !isKind(kind)) throw new Error(`${kind} is no kind`)
      const fits = Schema.decodeUnknownEither(schemaOf(kind) as Schema.Schema<unknown>, { onExcessProperty: "error" })
      expect([payload, fits(JSON.parse(String(payload)))._tag]).toEqual([payload, "Right"])
      seen.add(kind)
    }
    expect([...seen].sort()).toEqual(
      Object.keys(kinds)
        .filter(
          (kind) =>
            !/^(webhook|statement|api_key)\./.test(kind) && !["failed", "replaced", "updated"].some((end) => kind === `transaction.${end}`)
        )
        .sort()
    )
  })
})

describe("invalid records", () => {
  const wrong: ReadonlyArray<readonly [Record, string, unknown]> = [
    [network("x"), "kind", "devnet"],
    [asset("ethereum/erc20:0x1"), "decimals", 79],
    [asset("ethereum/erc20:0x1"), "decimals", 1.5],
    [asset("ethereum/erc20:0x1"), "symbol", ""],
    [asset("ethereum/erc20:0x1"), "name", "\ud800"],
    [organization("org_x", []), "networks", "ethereum"],
    [organization("org_x", []), "id", "organization_x"],
    [organization("org_x", []), "networks", ["ethereum", "ethereum"]],
    [entity("entity_x", "org_a"), "name", 5],
    [vault("vault_x", "entity_a"), "label", "a\u0000b"],
    [vault("vault_x", "entity_a"), "createdAt", "2024-02-30T00:00:00Z"],
    [vault("vault_x", "entity_a"), "id", "vault_"],
    [user("user_x", "org_a", []), "status", "asleep"],
    [user("user_x", "org_a", []), "organizationRole", "admin"],
    [address("vault_a", "a"), "address", "with space"],
    [address("vault_a", "a"), "assetType", "ERC20"],
    [transaction("vault_a", 1), "amount", 1],
    [transaction("vault_a", 1), "amount", "1e18"],
    [transaction("vault_a", 1), "amount", "-0"],
    [transaction("vault_a", 1), "index", -1],
    [transaction("vault_a", 1), "index", 2_147_483_648],
    [transaction("vault_a", 1), "status", "done"],
    [transaction("vault_a", 1), "direction", "in"],
    [transaction("vault_a", 1), "timestamp", "2024-01-01T00:00:00+01:00"],
    [transaction("vault_a", 1), "timestamp", 1_719_835_200],
    [transaction("vault_a", 1), "hash", ""],
    [transaction("vault_a", 1), "occurredAt", "yesterday"],
    [balance("vault_a", "ethereum/native", "1"), "asset", "ethereum"]
  ]
  test("each type names missing, unknown and wrong fields", async () => {
    for (const [record, field, value] of wrong) {
      const found = await refusal({ ...record, [field]: value })
      expect([field, value, found.length, found[0].startsWith(`1 ${field}: must`)]).toEqual([field, value, 1, true])
    }
    for (const record of new Map(wrong.map(([record]) => [record.type, record])).values()) {
      expect(await refusal({ ...record, colour: "red" })).toEqual(["1 colour: is not a field of this type"])
      for (const field of Object.keys(record)) {
        if (field === "type" || (record.type === "transaction" && field === "index")) continue
        const { [field]: _gone, ...rest } = record
        expect([record.type, field, await refusal(rest as Record)]).toEqual([record.type, field, [`1 ${field}: is missing`]])
      }
    }
    for (const [record, field, value, reason] of [
      [transaction("vault_a", 1), "status", "CONFIRMED", "one of pending, confirmed, failed, replaced, dropped"],
      [transaction("vault_a", 1), "fee", 3, "an object or null"],
      [transaction("vault_a", 1), "memo", 3, "a string or null"],
      [{ type: "network", name: "testing", kind: "main" }, "kind", "main", "one of mainnet, testnet"]
    ] as const)
      expect(await refusal({ ...record, [field]: value })).toEqual([`1 ${field}: must be ${reason}`])
    expect(await refusal({ type: "wallet" })).toEqual([
      "1 type: must be one of network, asset, organization, entity, vault, user, address, transaction, balance"
    ])
    expect(await refusal({ type: "__proto__" })).toHaveLength(1)
  })

  test("the served JSON Schema accepts every valid record and none of the wrong ones", async () => {
    const send = (token: string) => app.send("platform", "/platform/v1/records/schema", { headers: { authorization: `Bearer ${token}` } })
    expect((await send(key)).status).toBe(401)
    const served = await (await send(app.env.PLATFORM_TOKEN ?? "")).json()
    const formats = { "date-time": (text: string) => parse(text) !== undefined }
    const fits = new Ajv2020({ formats, allErrors: true }).compile(served as object)
    const file = fs.readFileSync(path.resolve(import.meta.dir, "../../../data/real-custody.ndjson"), "utf8")
    const real = file
      .trimEnd()
      .split("\n")
      .map((line): Record => JSON.parse(line))
    const rich = { fee: { asset: TOKEN, amount: "0.10" }, blockNumber: "0", blockHash: "0x1", memo: "ä\u{1f600}", externalId: null }
    const valid = [...real, ...samples.flat(), transaction("vault_a", 1, { ...rich, occurredAt: "2024-01-01T00:00:00.123456Z" })]
    expect(new Set(valid.map(({ type }) => type)).size).toBe(9)
    for (const record of valid) expect([record, fits(record)]).toEqual([record, true])
    // A lone surrogate is not text that a portable pattern can describe.
    for (const [record, field, value] of wrong.filter(([, , value]) => value !== "\ud800")) {
      const { [field]: _gone, ...rest } = record
      const optional = field === "index" || field === "occurredAt"
      for (const bad of [{ ...record, [field]: value }, { ...record, colour: "red" }, ...(optional ? [] : [rest])])
        expect([bad, fits(bad)]).toEqual([bad, false])
    }
    // Errors name the field at fault, and nothing of other types.
    for (const [bad, places] of [
      [{ ...balance("vault_a", "ethereum/native", "x"), colour: "red" }, ["", "/amount"]],
      [{ type: "wallet" }, ["/type"]],
      [{}, [""]]
    ] as const) {
      expect(fits(bad)).toBe(false)
      expect(fits.errors?.length).toBeLessThan(5)
      const named = (fits.errors ?? []).filter(({ keyword }) => keyword !== "if")
      expect([bad, [...new Set(named.map(({ instancePath }) => instancePath))].sort()]).toEqual([bad, [...places]])
    }
  })

  test("a record may refer only to what was recorded before", async () => {
    for (const [record, field, id] of [
      [asset("mars/native"), "network", "mars"],
      [organization("org_x", ["mars"]), "networks", "mars"],
      [entity("entity_x", "org_nowhere"), "organizationId", "org_nowhere"],
      [vault("vault_x", "entity_nowhere"), "entityId", "entity_nowhere"],
      [vault("vault_x", "entity_a", { networks: ["mars"] }), "networks", "mars"],
      [user("user_x", "org_nowhere", []), "organizationId", "org_nowhere"],
      [user("user_x", "org_a", ["vault_nowhere"]), "vaultRoles", "vault_nowhere"],
      [address("vault_nowhere", "a"), "vaultId", "vault_nowhere"],
      [address("vault_a", "a", { network: "mars" }), "network", "mars"],
      [transaction("vault_nowhere", 1), "vaultId", "vault_nowhere"],
      [transaction("vault_a", 1, { network: "mars" }), "network", "mars"],
      [transaction("vault_a", 1, { asset: "ethereum/erc20:0x9" }), "asset", "ethereum/erc20:0x9"],
      [balance("vault_nowhere", "ethereum/native", "1"), "vaultId", "vault_nowhere"],
      [balance("vault_a", "ethereum/erc20:0x9", "1"), "asset", "ethereum/erc20:0x9"]
    ] as const) {
      expect(await refusal(record)).toEqual([`1 ${field}: refers to ${id}, which was not recorded before`])
    }
    // “Before” includes earlier lines of the same batch, but not later ones.
    expect((await app.records([network("mars"), asset("mars/native")])).status).toBe(200)
    expect(await refusal(asset("venus/native"), network("venus"))).toEqual(["1 network: refers to venus, which was not recorded before"])
  })

  test("amounts must fit the asset's decimals, assets their network, roles and entities their organization", async () => {
    await app.feed([organization("org_z", ["ethereum"]), entity("entity_z", "org_z"), vault("vault_z", "entity_z")])
    expect(await refusal(transaction("vault_a", 60, { asset: TOKEN, amount: "0.0000001" }))).toEqual([
      "1 amount: has more fraction digits than the asset's 6 decimals"
    ])
    expect(await refusal(balance("vault_a", TOKEN, "1.0000000"))).toEqual([
      "1 amount: has more fraction digits than the asset's 6 decimals"
    ])
    expect(await refusal(transaction("vault_a", 60, { network: "bitcoin" }))).toEqual(["1 asset: is not an asset of bitcoin"])
    expect(await refusal(asset("ethereum/native", { network: "bitcoin" }))).toEqual(["1 id: must begin with its network, bitcoin/"])
    expect(await refusal(user("user_a", "org_a", ["vault_z"]))).toEqual(["1 vaultRoles: vault_z belongs to another organization"])
    expect(await refusal(user("user_a", "org_z", []))).toEqual([
      "1 organizationId: cannot move to another organization; it belongs to org_a"
    ])
    expect(await refusal(entity("entity_a", "org_z"))).toEqual([
      "1 organizationId: cannot move to another organization; it belongs to org_a"
    ])
    expect(await refusal(vault("vault_a", "entity_z"))).toEqual([
      "1 organizationId: cannot move to another organization; it belongs to org_a"
    ])
  })
})

describe("amounts", () => {
  test("an amount is exact from the record to the database, the API and the event", async () => {
    const amounts = [
      "115792089237316195423570985008687907853269984665640564039457.584007913129639935",
      "0.000000000000000001",
      "2455041.424650514344217245",
      "9007199254740993",
      "0",
      "100000000000000000000000000000000000000000000000000000000000000000000000000000"
    ]
    for (const [index, amount] of amounts.entries()) {
      const events = await recorded([transaction("vault_b", 80_000 + index, { amount }), balance("vault_b", "ethereum/native", amount)])
      const transactions = await app.get(`/v1/vaults/vault_b/transactions?hash=${hash(80_000 + index)}`, key)
      const balances = await app.get("/v1/vaults/vault_b/balances?network=ethereum", key)
      expect([transactions.json.data[0].amount, balances.json.data[0].amount]).toEqual([amount, amount])
      for (const event of events) expect(String(event.payload)).toContain(`"amount":"${amount}"`)
      expect(await app.sql("SELECT amount::text FROM transactions WHERE hash = $1", [hash(80_000 + index)])).toEqual([{ amount }])
    }
  })
})
