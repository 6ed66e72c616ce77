/** Exports: names of files, columns, and amounts for spreadsheets and for programs. C-11. */
import { beforeAll, describe, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { asset, hash, smallest, transaction, transactionId, user, vault } from "../../support/records.ts"

const USDC = "ethereum/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
const app = useApi()
let key = ""

/** Vaults with names that file systems, headers or readers could misread. */
const labels: ReadonlyArray<readonly [id: string, label: string, fallback: string, whole?: string]> = [
  ["vault_plain", "Exchange Hot Wallet", "Exchange-Hot-Wallet"],
  ["vault_accents", "Zürich Börse", "Zurich-Borse", "Z%C3%BCrich-B%C3%B6rse"],
  ["vault_kanji", "金庫", "vault_kanji", "%E9%87%91%E5%BA%AB"],
  ["vault_path", '../../etc/"x"; filename=a\\b', "etc-x-filename-a-b"],
  ["vault_bidi", "pay\u202Evsc.exe", "pay-vsc.exe"],
  ["vault_emoji", "🏦", "vault_emoji"],
  ["vault_long", "a".repeat(256), "a".repeat(50)]
]

beforeAll(async () => {
  await app.feed(
    [
      ...smallest(),
      asset(USDC, { symbol: "USDC", decimals: 6 }),
      vault("vault_a", "entity_a", { label: "Treasury, main" }),
      ...labels.map(([id, label]) => vault(id, "entity_a", { label })),
      user("user_a", "org_a", ["vault_a", ...labels.map(([id]) => id)]),
      transaction("vault_a", 1, {
        asset: USDC,
        amount: "1250.5",
        direction: "outbound",
        timestamp: "2024-03-01T10:00:00.000Z",
        fee: { asset: "ethereum/native", amount: "0.000000000000000021" },
        blockNumber: "19505152",
        blockHash: hash(7),
        memo: '=HYPERLINK("https://a.example", 1)',
        externalId: "+41"
      }),
      transaction("vault_a", 2, { timestamp: "2024-03-02T10:00:00.000Z", memo: "-1" })
    ],
    { "x-record-events": "none" }
  )
  key = (await app.key("user_a")).secret
})

const exported = (query: string, id = "vault_a") => app.get(`/v1/vaults/${id}/transactions/export?${query}`, key)
const listed = async () => (await app.walk("/v1/vaults/vault_a/transactions", key)).toReversed()

describe("an export", () => {
  test("as CSV has every field of a transaction, its vault and its asset's symbol", async () => {
    const [older, newer] = await listed()
    const { text } = await exported("format=csv")
    expect(text).toBe(
      [
        "hash,network,status,direction,asset,amount,from,to,timestamp,symbol,id,updatedAt,vaultId,vaultLabel,fee,feeAsset,blockNumber,blockHash,memo,externalId",
        `${hash(2)},ethereum,confirmed,inbound,ethereum/native,'1,${newer?.from},${newer?.to},2024-03-02T10:00:00.000Z,ETH,${newer?.id},${newer?.updatedAt},vault_a,"Treasury, main",,,,,'-1,`,
        `${hash(1)},ethereum,confirmed,outbound,${USDC},'1250.5,${older?.from},${older?.to},2024-03-01T10:00:00.000Z,USDC,${older?.id},${older?.updatedAt},vault_a,"Treasury, main",'0.000000000000000021,ethereum/native,19505152,${hash(7)},"'=HYPERLINK(""https://a.example"", 1)",'+41`,
        ""
      ].join("\r\n")
    )
    expect(newer?.id).toBe(transactionId("vault_a", 2))
  })

  test("with plain amounts has them as digits, and formulas still with an apostrophe", async () => {
    const { text } = await exported("format=csv&amounts=plain")
    expect(text).toBe((await exported("format=csv")).text.replaceAll(/,'(?=\d)/g, ","))
    expect(text).toContain(",1250.5,")
    expect(text).toContain(",0.000000000000000021,ethereum/native,")
    expect(text).toContain(",'-1,")
    expect(text).toContain(`"'=HYPERLINK(`)
    expect((await exported("format=csv&amounts=spreadsheet")).text).toBe((await exported("format=csv")).text)
    const refused = await exported("format=csv&amounts=excel")
    expect([refused.status, refused.json.errors[0].field]).toEqual([400, "amounts"])
  })

  test("as NDJSON has the list's transactions, whatever the amounts", async () => {
    const rows = (await listed()).toReversed().map((row) => `${JSON.stringify(row)}\n`)
    for (const query of ["format=ndjson", "format=ndjson&amounts=plain"]) expect((await exported(query)).text).toBe(rows.join(""))
  })

  test("has a file name of the vault's label and the period, safe for every client", async () => {
    for (const [id, , fallback, whole] of labels) {
      const { headers } = await exported("format=csv&occurredAfter=2024-01-01T00:00:00Z&occurredBefore=2024-03-31T23:59:59Z", id)
      const end = "-transactions-2024-01-01-to-2024-03-31.csv"
      expect(headers.get("content-disposition")).toBe(
        `attachment; filename="${fallback}${end}"${whole === undefined ? "" : `; filename*=UTF-8''${whole}${end}`}`
      )
    }
    expect((await exported("format=ndjson", "vault_plain")).headers.get("content-disposition")).toMatch(
      /^attachment; filename="Exchange-Hot-Wallet-transactions-to-\d{4}-\d{2}-\d{2}\.ndjson"$/
    )
  })
})
