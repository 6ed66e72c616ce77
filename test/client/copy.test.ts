/**
 * A complete copy of a vault, created and kept up to date during writes, restarts and a restored backup: nothing is missing or
 * wrong at the end. `bun run faults` runs 200 seeds. C-1, C-9.
 */
import { beforeAll, expect, test } from "bun:test"
import fc from "fast-check"
import { applyEvent, CustodyError, catchUp, copyVault, createClient, followEvents, type VaultCopy } from "../../src/client/index.ts"
import { useApi } from "../support/api.ts"
import { ORIGIN, type Record } from "../support/app.ts"
import { ALICE, asset, entity, network, organization, transaction, user, vault } from "../support/records.ts"
import { copyDatabase, dropDatabase } from "../support/servers.ts"

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
  fee: fc.constantFrom(undefined, null, "0.1", "0.25"),
  late: fc.constantFrom(0, 0, 0, 1),
  amount: fc.nat({ max: 3 })
})
type Change = typeof change extends fc.Arbitrary<infer A> ? A : never

const recordOf = ({ amount, fee, index, late, memo, number, status, vaultId, what }: Change): Record => {
  const at = new Date(START + ++moment * 1_000).toISOString()
  // Some records arrive late: after one that happened later.
  const occurredAt = new Date(START + (moment - late * 20) * 1_000).toISOString()
  switch (what) {
    case "transaction":
      // Each record is new, moves the transaction in the list, or corrects another field.
      return transaction(vaultId, number, {
        index,
        status,
        memo,
        fee: fee == null ? fee : { asset: "ethereum/native", amount: fee },
        amount: String(amount),
        timestamp: at,
        occurredAt
      })
    case "balance":
      return { type: "balance", vaultId, asset: "ethereum/native", amount: String(amount), occurredAt }
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
      return vault(vaultId, "entity_a", { label: `label ${amount}`, occurredAt })
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

/** Applies what was recorded since. A copy whose cursor is gone is taken anew, as docs/operations.md says. */
const follow = async (copy: VaultCopy): Promise<VaultCopy> => {
  const custody = createClient(options())
  try {
    await catchUp(custody, copy)
    return copy
  } catch (error) {
    if (!(error instanceof CustodyError) || error.code !== "cursor_gone") throw error
    return copyVault(custody, VAULT)
  }
}

const LONG = process.env["CUSTODY_FAULTS"] === "long"

test("a copy stays at its cursor while the key does not see its vault", async () => {
  const custody = createClient(options())
  const roles = (...vaults: ReadonlyArray<string>) => app.feed([user("user_a", "org_a", vaults, { organizationRole: "owner" })])
  const copy = await copyVault(custody, VAULT)
  const { resumeCursor } = copy
  await roles("vault_b")
  await app.feed([transaction(VAULT, 77)])
  const error = await catchUp(custody, copy).catch((error: unknown) => error)
  expect([error instanceof CustodyError && error.code, copy.resumeCursor]).toEqual(["not_found", resumeCursor])
  await roles(VAULT, "vault_b")
  await catchUp(custody, copy)
  expect(rowsOf(copy)).toEqual(await lists())
})

test(
  "a copy survives restarts and a restored backup, with corrections and late records",
  async () => {
    const batch = fc.array(change, { minLength: 1, maxLength: 6 })
    const part = fc.array(batch, { minLength: 1, maxLength: 4 })
    let runs = 0,
      gone = 0
    await fc.assert(
      fc.asyncProperty(part, part, part, async (before, lost, after) => {
        const then = ++runs % 3 === 0 ? "restart" : "restore"
        const backup = `${app.databaseUrl}_backup`
        let copy = await copyVault(createClient(options()), VAULT)
        for (const some of before) await app.feed(some.map(recordOf))
        // Some readers have seen all that the backup has, others not.
        if (before.length % 2 === 0) copy = await follow(copy)
        await app.restart(then === "restore" ? () => copyDatabase(app.databaseUrl, backup) : undefined)
        for (const some of lost) await app.feed(some.map(recordOf))
        copy = await follow(copy)
        expect(rowsOf(copy)).toEqual(await lists())
        if (then === "restore") await app.restart(() => copyDatabase(backup, app.databaseUrl))
        for (const some of after) await app.feed(some.map(recordOf))
        const followed = await follow(copy)
        if (followed !== copy) gone++
        expect(rowsOf(followed)).toEqual(await lists())
      }),
      { numRuns: LONG ? 200 : 8, endOnFailure: true }
    )
    expect(gone).toBeGreaterThan(0)
    await dropDatabase(`${app.databaseUrl}_backup`)
  },
  LONG ? 1_200_000 : 300_000
)
