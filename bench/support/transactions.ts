/** Confirmed transactions by number, the same ones in every process of a benchmark. */

/** The hash of a transaction. */
export const hashOf = (number: number): string => `0x${number.toString(16).padStart(64, "0")}`

/** A record of the feed: the confirmed transaction with this number, of this vault. */
export const transactionLine = (number: number, vaultId: string): string =>
  JSON.stringify({
    type: "transaction",
    vaultId,
    hash: hashOf(number),
    network: "ethereum",
    status: "confirmed",
    direction: "inbound",
    asset: "ethereum/native",
    amount: "1.5",
    from: "0x52908400098527886e0f7030069857d2e4169ee7",
    to: "0x8617e340b3d01fa5f11f306f4090fd50e238070d",
    timestamp: "2026-01-01T00:00:00Z"
  })

let made = 0

/** Reserves this many numbers of this run for the caller. Returns the first. */
export const reserve = (count: number): number => {
  const first = made + 1
  made += count
  return first
}
