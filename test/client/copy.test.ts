/** A complete copy of a vault, created and kept up to date during writes: nothing is missing or wrong at the end. C-1. */
import { beforeAll, expect, test } from "bun:test"
import fc from "fast-check"
import { applyEvent, catchUp, copyVault, createClient, followEvents, type VaultCopy } from "../../src/client/index.ts"
import { useApi } from "../support/api.ts"
import { ORIGIN, type Record } from "../support/app.ts"
import { ALICE, asset, entity, network, organization, transaction, user, vault } from "../support/records.ts"

const app = useApi()
let key = ""
const VAULT = "vault_a"
const options = () => ({ baseUrl: ORIGIN, fetch: app.fetch, apiKey: key })

beforeAll(async () => {
  await app.feed([
    network("ethereum"),
    asset("ethereum/native"),
    asset("ethereum/erc20:0xdac17f958d2ee523a2206206994597c13d831ec7"),
    organization("org_a", ["ethereum"]),
    entity("entity_a", "org_a"),
    vault(VAULT, "entity_a"),
    vault("vault_b", "entity_a"),
    user("user_a", "org_a", [VAULT, "vault_b"], { organizationRole: "owner" })
  ])
  key = (await app.key("user_a")).secret
})

/** A balance without `asOf`: a later record of the same amount moves that time without an event. */
const amountIn = (balance: string): string => JSON.stringify({ ...JSON.parse(balance), asOf: undefined })

/** The rows of the lists, in no order. */
const lists = async () => {
  const custody = createClient(options())
  const all = async <A>(list: AsyncIterable<A>) => {
    const found: Array<string> = []
    for await (const one of list) found.push(JSON.stringify(one))
    return found.sort()
  }
  return {
    vault: JSON.stringify(await custody.getVault(VAULT)),
    balances: (await all(custody.listBalances(VAULT))).map(amountIn),
    transactions: await all(custody.listTransactions(VAULT, { limit: 500 })),
    addresses: await all(custody.listAddresses(VAULT, { limit: 500 }))
  }
}
const rowsOf = (copy: VaultCopy) => ({
  vault: JSON.stringify(copy.vault),
  balances: [...copy.balances.values()].map((one) => amountIn(JSON.stringify(one))).sort(),
  transactions: [...copy.transactions.values()].map((one) => JSON.stringify(one)).sort(),
  addresses: copy.addresses.map((one) => JSON.stringify(one)).sort()
})

const HASHES = 12,
  START = Date.parse("2025-01-01T00:00:00.000Z")
let moment = 0

/** One change of a vault. */
const change = fc.record({
  what: fc.constantFrom("transaction", "transaction", "transaction", "balance", "address", "vault"),
  vaultId: fc.constantFrom(VAULT, VAULT, "vault_b"),
  number: fc.nat({ max: HASHES - 1 }),
  index: fc.constantFrom(0, 0, 1),
  status: fc.constantFrom("pending", "confirmed", "failed", "replaced", "dropped"),
  memo: fc.constantFrom(undefined, null, "first", "second"),
  amount: fc.nat({ max: 3 })
})
type Change = typeof change extends fc.Arbitrary<infer A> ? A : never

const recordOf = ({ amount, index, memo, number, status, vaultId, what }: Change): Record => {
  const at = new Date(START + ++moment * 1_000).toISOString()
  switch (what) {
    case "transaction":
      // Each record is new, moves the transaction in the list, or corrects another field.
      return transaction(vaultId, number, { index, status, memo, amount: String(amount), timestamp: at })
    case "balance":
      return { type: "balance", vaultId, asset: "ethereum/native", amount: String(amount), occurredAt: at }
    case "address":
      return {
        type: "address",
        vaultId,
        network: "ethereum",
        address: ALICE,
        assetType: "native",
        createdAt: "2025-01-01T00:00:00.000Z"
      }
    case "vault":
      return vault(vaultId, "entity_a", { label: `label ${amount}` })
  }
}

test("a copy made during writes equals the lists at its cursor and follows later events", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(change, { minLength: 1, maxLength: 6 }), { minLength: 4, maxLength: 12 }), async (batches) => {
      const custody = createClient(options())
      // Slow enough for batches to be applied between the pages of the lists.
      const slow = createClient({
        ...options(),
        fetch: async (request) => {
          const url = new URL(request.url)
          if (url.pathname.endsWith("/transactions")) url.searchParams.set("limit", "3")
          return app.fetch(new Request(url.href, request))
        }
      })
      const write = async (some: ReadonlyArray<ReadonlyArray<Change>>) => {
        for (const batch of some) await app.feed(batch.map(recordOf))
      }
      const half = Math.ceil(batches.length / 2)
      const [copy] = await Promise.all([copyVault(slow, VAULT), write(batches.slice(0, half))])
      const following = new AbortController()
      const place = copy.resumeCursor
      await write(batches.slice(half))
      await catchUp(custody, copy)
      expect(rowsOf(copy)).toEqual(await lists())
      // Applying events a second time, in order, does not change the result.
      const { resumeCursor } = copy
      const { data } = await custody.readEventFeed({ after: place, limit: 500 })
      let left = data.length
      if (left > 0)
        for await (const { event } of followEvents(options(), { after: place, signal: following.signal })) {
          applyEvent(copy, event)
          if (--left === 0) following.abort()
        }
      expect(rowsOf(copy)).toEqual(await lists())
      expect(copy.resumeCursor).toBe(resumeCursor)
    }),
    { numRuns: 20, endOnFailure: true }
  )
})
