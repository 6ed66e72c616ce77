/**
 * A statement: a vault's balances at the bounds of a UTC day and its movements in between, sealed by a signature and by a
 * hash that includes the previous statement's hash. Events carry it in short. C-6, C-10.
 */
import { Schema } from "effect"
import { amount } from "./Amount.ts"
import { day } from "./Day.ts"
import { timestamp } from "./Timestamp.ts"

const text = (description: string, example: string) => Schema.String.annotations({ description, examples: [example] })
const digest = (description: string) =>
  Schema.String.annotations({
    description,
    jsonSchema: {
      type: "string",
      pattern: "^[0-9a-f]{64}$",
      description,
      examples: ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]
    }
  })

/** One asset of a statement. `closing = opening + inbound - outbound - fees + other`. */
export const StatementLine = Schema.Struct({
  asset: text("Asset identifier", "ethereum/native"),
  symbol: text("Ticker", "ETH"),
  opening: amount("Balance when the day began", "10"),
  inbound: amount("Sum of the confirmed inbound transactions of the day", "2.5"),
  outbound: amount("Sum of the confirmed outbound transactions of the day", "1"),
  fees: amount("Sum of the fees of the confirmed and failed transactions of the day", "0.000021"),
  other: Schema.String.annotations({
    jsonSchema: {
      type: "string",
      pattern: "^-?(0|[1-9][0-9]*)(\\.[0-9]*[1-9])?$",
      description: "Everything else: adjustments, unexplained differences; negative values have a minus sign",
      examples: ["-0.5"]
    }
  }),
  closing: amount("Balance when the day ended", "10.999979"),
  transactionCount: Schema.Int.annotations({ description: "Confirmed transactions of the day", examples: [4] })
}).annotations({ identifier: "StatementLine" })
export type StatementLine = typeof StatementLine.Type

const vaultId = text("The vault", "vault_dkjh7m6gvxzc2wjrphqz46b3br")
const date = day("The UTC day")
const revision = Schema.Int.annotations({
  description: "Number of the revision: 1, and one more each time late records change the day",
  examples: [1]
})
const sealedAt = timestamp("When it was sealed")
const previousHash = Schema.NullOr(
  digest("Hash of the statement that was sealed before this one for the vault, whatever its day; null for the first")
).annotations({
  description: "Hash of the statement that was sealed before this one for the vault, whatever its day; null for the first",
  examples: ["2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"]
})
const hash = digest("SHA-256 (hex) of the statement as RFC 8785 JSON without `hash` and `jws`")

/** A vault's statement of a day. */
export const Statement = Schema.Struct({
  vaultId,
  date,
  revision,
  sealedAt,
  previousHash,
  hash,
  assets: Schema.Array(StatementLine).annotations({ description: "One line per asset" }),
  jws: text("Compact JWS (EdDSA) over iss, vaultId, date, revision and hash; verify it with /v1/jwks.json", "eyJhbGciOiJFZERTQSJ9.e30.c2ln")
}).annotations({ identifier: "Statement", title: "Statement" })
export type Statement = typeof Statement.Type

/** What a vault's statements of a period add up to. C-10. */
export const StatementSummary = Schema.Struct({
  vaultId,
  from: day("First day: not before the vault's first statement"),
  to: day("Last day"),
  firstHash: digest("Hash of the first day's newest revision"),
  lastHash: digest("Hash of the last day's newest revision"),
  assets: Schema.Array(StatementLine).annotations({
    description: "One line per asset: the first day's opening, the sums of the days, and the last day's closing"
  })
}).annotations({ identifier: "StatementSummary" })
export type StatementSummary = typeof StatementSummary.Type

/** A statement in an event, without its lines. C-10. */
export const SealedStatement = Schema.Struct({ date, revision, hash, previousHash, sealedAt })

/** What late records changed a statement. C-10. */
export const Because = Schema.Struct({
  transactionIds: Schema.Array(text("Transaction", "tx_01jz0000000000000000000000")).annotations({
    description: "Transactions of the day that were recorded or changed since"
  }),
  assets: Schema.Array(text("Asset identifier", "ethereum/native")).annotations({
    description: "Assets with another balance, recorded since for the day or an earlier one"
  }),
  more: Schema.Int.annotations({
    description: "How many more there are: at most 20 are named",
    jsonSchema: { type: "integer", minimum: 0, description: "How many more there are: at most 20 are named", examples: [0] }
  })
})
export type Because = typeof Because.Type
