/**
 * Balances over the years for the demo: what each vault must have held after each of its transactions. A vault that sent
 * more than it received began with the difference.
 */
import { Decimal } from "decimal.js"
import type { RecordOf } from "../../custody/ledger/Record.ts"

type Transaction = RecordOf<"transaction">
type Balance = RecordOf<"balance">

/** Amounts have up to 78 digits before and after the point. */
export const Exact = Decimal.clone({ precision: 200 })

const plus = (sum: Decimal, { amount, direction }: Transaction): Decimal =>
  direction === "inbound" ? sum.plus(new Exact(amount)) : sum.minus(new Exact(amount))

/** Balance records of one asset of a vault, oldest first: one for each time at which it has transactions, and the first balance. */
const balancesOfAsset = (transactions: ReadonlyArray<Transaction>, since: string): ReadonlyArray<Balance> => {
  const [{ asset, vaultId } = { asset: "", vaultId: "" }] = transactions
  const sums = new Map<string, Decimal>()
  let sum = new Exact(0),
    least = sum
  for (const one of transactions.toSorted((a, b) => (a.timestamp < b.timestamp ? -1 : 1))) {
    sum = plus(sum, one)
    sums.set(one.timestamp, sum)
  }
  for (const each of sums.values()) least = Decimal.min(least, each)
  const first: ReadonlyArray<readonly [string, Decimal]> = least.isZero() ? [] : [[since, new Exact(0)]]
  return [...first, ...sums].map(([occurredAt, held]) => ({
    type: "balance",
    vaultId,
    asset,
    amount: held.minus(least).toFixed(),
    occurredAt
  }))
}

/** Balance records by vault and asset, each oldest first. `since` is the time of a vault's first balances. */
export const balancesOf = (
  transactions: ReadonlyArray<Transaction>,
  since: (vaultId: string) => string
): ReadonlyArray<ReadonlyArray<Balance>> =>
  [...Map.groupBy(transactions, ({ asset, vaultId }) => `${vaultId} ${asset}`).values()].map((list) =>
    balancesOfAsset(list, since(list[0]?.vaultId ?? ""))
  )
