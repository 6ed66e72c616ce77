/**
 * A statement: a vault's balances at the bounds of a UTC day and its movements in between, sealed by a signature and by a
 * hash that includes the previous statement's hash. C-6.
 */
import { createHash } from "node:crypto"
import canonicalize from "canonicalize"
import { Schema } from "effect"
import { amount } from "../../values/Amount.ts"
import { timestamp } from "../../values/Timestamp.ts"

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

/** One asset of a statement. `opening + inbound - outbound + other = closing`. */
export const StatementLine = Schema.Struct({
  asset: text("Asset identifier", "ethereum/native"),
  symbol: text("Ticker", "ETH"),
  opening: amount("Balance when the day began", "10"),
  inbound: amount("Sum of the confirmed inbound transactions of the day", "2.5"),
  outbound: amount("Sum of the confirmed outbound transactions of the day", "1"),
  other: Schema.String.annotations({
    jsonSchema: {
      type: "string",
      pattern: "^-?(0|[1-9][0-9]*)(\\.[0-9]*[1-9])?$",
      description: "Everything else: fees, adjustments, unexplained differences; negative values have a minus sign",
      examples: ["-0.000021"]
    }
  }),
  closing: amount("Balance when the day ended", "11.499979"),
  transactionCount: Schema.Int.annotations({ description: "Confirmed transactions of the day", examples: [4] })
}).annotations({ identifier: "StatementLine" })
export type StatementLine = typeof StatementLine.Type

/** A vault's statement of a day. */
export const Statement = Schema.Struct({
  vaultId: text("The vault", "vault_dkjh7m6gvxzc2wjrphqz46b3br"),
  date: Schema.String.annotations({
    jsonSchema: { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description: "The UTC day", examples: ["2025-03-24"] }
  }),
  revision: Schema.Int.annotations({
    description: "Number of the revision: 1, and one more each time late records change the day",
    examples: [1]
  }),
  sealedAt: timestamp("When it was sealed"),
  previousHash: Schema.NullOr(
    digest("Hash of the statement that was sealed before this one for the vault, whatever its day; null for the first")
  ).annotations({
    description: "Hash of the statement that was sealed before this one for the vault, whatever its day; null for the first",
    examples: ["2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"]
  }),
  hash: digest("SHA-256 (hex) of the statement as RFC 8785 JSON without `hash` and `jws`"),
  assets: Schema.Array(StatementLine).annotations({ description: "One line per asset" }),
  jws: text("Compact JWS (EdDSA) over iss, vaultId, date, revision and hash; verify it with /v1/jwks.json", "eyJhbGciOiJFZERTQSJ9.e30.c2ln")
}).annotations({ identifier: "Statement", title: "Statement" })
export type Statement = typeof Statement.Type

/** The hashed part of a statement. */
export type Sealed = Omit<Statement, "hash" | "jws">

/** SHA-256 (hex) of a statement as RFC 8785 JSON. */
export const hashOf = (statement: Sealed): string =>
  createHash("sha256")
    .update(canonicalize(statement) ?? "")
    .digest("hex")
