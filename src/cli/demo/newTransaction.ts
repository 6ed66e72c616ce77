/** New transactions for a demo that has fed all records of its data: a past transfer again, with a new hash, now. */
import { randomBytes } from "node:crypto"
import type { RecordOf } from "../../custody/ledger/Record.ts"
import { Exact } from "./demoBalances.ts"

/**
 * The records of the transfer and of the balance after it, as lines. `held` is the vault's balance before it. Undefined if the vault
 * does not hold what the transfer sends.
 */
export const newTransaction = (past: RecordOf<"transaction">, held: string): ReadonlyArray<string> | undefined => {
  const { amount, asset, direction, hash, vaultId } = past
  const balance = direction === "inbound" ? new Exact(held).plus(amount) : new Exact(held).minus(amount)
  if (balance.isNegative()) return undefined
  const fresh = `${hash.startsWith("0x") ? "0x" : ""}${randomBytes(32).toString("hex")}`
  return [
    JSON.stringify({ ...past, hash: fresh, timestamp: new Date().toISOString() }),
    JSON.stringify({ type: "balance", vaultId, asset, amount: balance.toFixed() })
  ]
}
