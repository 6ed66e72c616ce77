/** Lists of balances while an asset gets another symbol, by which they are sorted. Decision D-2. */
import { beforeAll, expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { codeOf } from "../../support/problem.ts"
import { asset, balance, smallest } from "../../support/records.ts"

const app = useApi()
const ids = [0, 1, 2, 3, 4].map((number) => `ethereum/erc20:t${number}`)
const lists = [
  "/v1/vaults/vault_a/balances?",
  `/v1/vaults/vault_a/balances?at=${new Date().toISOString()}&`,
  "/v1/vaults/vault_a/balances?network=ethereum&",
  "/v1/balances?",
  "/v1/balances?sumBy=asset&"
]
let key = ""

const rename = (id: string, symbol: string) => app.feed([asset(id, { symbol })])
beforeAll(async () => {
  await app.feed([
    ...smallest(),
    ...ids.map((id, number) => asset(id, { symbol: `S${number}` })),
    ...ids.map((id) => ({ ...balance("vault_a", id, "1"), occurredAt: "2024-01-01T00:00:00Z" }))
  ])
  key = (await app.key("user_a")).secret
})

/** The assets of a list in pages of two, with something done after the first page. */
const read = async (list: string, meanwhile: () => Promise<unknown>) => {
  const first = (await app.get(`${list}limit=2`, key)).json
  await meanwhile()
  const rest = await app.get(`${list}limit=500&cursor=${first.pagination.nextCursor}`, key)
  return { rest, assets: [...first.data, ...(rest.json.data ?? [])].map((row: { readonly asset: string }) => row.asset) }
}

test.each(lists)("%s goes on after an asset that got another symbol", async (list) => {
  const { assets } = await read(list, () => rename(ids[1] ?? "", "ZZ"))
  await rename(ids[1] ?? "", "S1")
  // The renamed one is at its new place, too.
  expect([...new Set(assets)]).toEqual(ids)
})

test.each(lists)("%s rejects a cursor whose long symbol is another one now", async (list) => {
  const long = `S1${'"'.repeat(60)}`
  await rename(ids[1] ?? "", long)
  expect((await read(list, async () => {})).assets).toEqual(ids)
  const { rest } = await read(list, () => rename(ids[1] ?? "", "S1"))
  expect([rest.status, codeOf(rest)]).toEqual([400, "invalid_cursor"])
})
