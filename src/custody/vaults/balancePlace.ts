/**
 * The place of an asset in lists of balances, in a cursor: its number and its symbol when the page was read, by which the list is
 * sorted and which can change before the next page. A symbol that is too long for a cursor is kept as a hash. Decision D-2.
 */
import { createHash } from "node:crypto"
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import type { Key } from "../../http/Page.ts"
import { type Problem, problem } from "../../http/Problem.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"

/** Bytes of a symbol in JSON that fit into a cursor beside the longest other values. */
const FITS = 60

const decode = decodeRows(Schema.Struct({ symbol: Schema.String }))
const digest = (symbol: string) => `#${createHash("sha256").update(symbol).digest("base64url").slice(0, 16)}`

/** The first values of a cursor's key. */
export const placeOf = ({ number, symbol }: { readonly number: string; readonly symbol: string }): readonly [string, string] => [
  number,
  Buffer.byteLength(JSON.stringify(symbol)) > FITS ? digest(symbol) : `=${symbol}`
]

/** A key with its symbol. Fails with `invalid_cursor` if the symbol was too long for the cursor and is another one now. */
export const resolvePlace = (sql: SqlClient.SqlClient, after: Key | null): Effect.Effect<Key | null, Problem<"invalid_cursor">> => {
  if (after === null) return Effect.succeed(null)
  const [number = "", kept = "", ...rest] = after
  if (kept.startsWith("=")) return Effect.succeed([number, kept.slice(1), ...rest])
  return Effect.flatMap(Effect.orDie(decode(sql`SELECT a.symbol FROM assets a WHERE a.number = ${number}::bigint`)), ([found]) =>
    found !== undefined && digest(found.symbol) === kept
      ? Effect.succeed([number, found.symbol, ...rest])
      : problem("invalid_cursor", "The symbol of the last asset changed since the cursor was returned. Read the list from its beginning.", {
          fields: [{ in: "query", field: "cursor", code: "invalid_cursor", detail: "must be of a list whose last symbol is unchanged" }]
        })
  )
}
