/**
 * A statement: what a vault held of each asset at the bounds of a UTC day, and what moved in between, sealed by a hash
 * that names the statement sealed before it and by a signature. C-6.
 */
import { createHash } from "node:crypto"
import canonicalize from "canonicalize"
import { Schema } from "effect"
import { Amount } from "../values/Amount.ts"
import { Timestamp } from "../values/Timestamp.ts"

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
const amount = (description: string) => Amount.annotations({ description })

/** One asset of a statement. `opening + inbound - outbound + other = closing`. */
export const StatementLine = Schema.Struct({
  asset: text("Asset identifier", "ethereum/native"),
  symbol: text("Ticker", "ETH"),
  opening: amount("Balance when the day began"),
  inbound: amount("Sum of the confirmed inbound transactions of the day"),
  outbound: amount("Sum of the confirmed outbound transactions of the day"),
  other: Schema.String.annotations({
    description: "What is left: fees, adjustments, and whatever needs explaining; below zero with a minus sign",
    jsonSchema: { type: "string", pattern: "^-?(0|[1-9][0-9]*)(\\.[0-9]*[1-9])?$", examples: ["-0.000021"] }
  }),
  closing: amount("Balance when the day ended"),
  transactionCount: Schema.Int.annotations({ description: "Confirmed transactions of the day" })
}).annotations({ identifier: "StatementLine" })
export type StatementLine = typeof StatementLine.Type

/** A vault's statement of a day. */
export const Statement = Schema.Struct({
  vaultId: text("The vault", "vault_dkjh7m6gvxzc2wjrphqz46b3br"),
  date: Schema.String.annotations({
    description: "The UTC day",
    jsonSchema: { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", examples: ["2025-03-24"] }
  }),
  revision: Schema.Int.annotations({ description: "1, and one more each time that late records changed the day" }),
  sealedAt: Timestamp.annotations({ description: "When it was sealed" }),
  previousHash: Schema.NullOr(digest("Hash of the vault's statement sealed just before, whatever its day; null for the first")).annotations(
    {
      description: "Hash of the vault's statement sealed just before, whatever its day; null for the first"
    }
  ),
  hash: digest("SHA-256 (hex) of the statement as RFC 8785 JSON without `hash` and `jws`"),
  assets: Schema.Array(StatementLine).annotations({ description: "A line for each asset" }),
  jws: text("Compact JWS (EdDSA) over iss, vaultId, date, revision and hash; verify it with /v1/jwks.json", "eyJhbGciOiJFZERTQSJ9.e30.c2ln")
}).annotations({ identifier: "Statement", title: "Statement" })
export type Statement = typeof Statement.Type

/** What is hashed of a statement. */
export type Sealed = Omit<Statement, "hash" | "jws">

/** SHA-256 (hex) of a statement as RFC 8785 JSON. */
export const hashOf = (statement: Sealed): string =>
  createHash("sha256")
    .update(canonicalize(statement) ?? "")
    .digest("hex")
