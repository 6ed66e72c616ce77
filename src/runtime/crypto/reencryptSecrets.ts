/**
 * Re-encrypts stored values from the previous master key to the current one, in batches, while the service runs. A value
 * is replaced only if it is unchanged since it was read, so concurrent writes of the service are kept. Values that are
 * already done are skipped, so an interrupted run can be repeated. Decision D-25.
 */
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { Bytes, decodeRows } from "../database/decodeRows.ts"
import { whileUnavailable } from "../database/unavailable.ts"
import type { Purpose, Sealing } from "./MasterKey.ts"

/** A column of encrypted values, which may be null: their purpose, and how each value is identified and bound. */
export interface SealedColumn {
  readonly purpose: Purpose
  readonly table: string
  readonly column: string
  /** Columns of the primary key with their types. */
  readonly key: ReadonlyArray<readonly [name: string, type: "text" | "bigint"]>
  /** The context that a value is bound to, as an SQL expression over its row. */
  readonly context: string
}

/** The counts for a column. */
export interface Reencrypted {
  /** Values that were read. */
  readonly checked: number
  /** Values re-encrypted with the current key. */
  readonly reencrypted: number
  /** Values that neither key decrypts; they are left unchanged. */
  readonly unreadable: number
}

/** Values that one statement reads or writes. */
const BATCH = 500

/** Waits for locked rows and for a database that restarts. */
const retryWhileUnavailable = whileUnavailable("1 second", "30 seconds")

const Row = Schema.Struct({ key: Schema.Array(Schema.String), context: Schema.String, sealed: Bytes })
const decode = decodeRows(Row)

/** Re-encrypts a column. `onBatch` gets the progress. Fails with the database's error if Postgres stays unavailable. */
export const reencrypt = (
  sql: SqlClient.SqlClient,
  master: Sealing,
  of: SealedColumn,
  onBatch: (soFar: Reencrypted) => Effect.Effect<void> = () => Effect.void
) => {
  const names = of.key.map(([name]) => name).join(", ")
  const table = sql.literal(of.table),
    column = sql.literal(of.column)

  const read = (after: ReadonlyArray<string> | undefined) =>
    decode(sql`
      SELECT ARRAY[${sql.literal(of.key.map(([name]) => `${name}::text`).join(", "))}] AS key, ${sql.literal(of.context)} AS context, ${column} AS sealed
      FROM ${table} WHERE ${column} IS NOT NULL ${
        after === undefined
          ? sql.literal("")
          : sql`AND (${sql.literal(names)}) > (${sql.csv(of.key.map(([, type], index) => sql`${after[index] ?? ""}::${sql.literal(type)}`))})`
      } ORDER BY ${sql.literal(names)} LIMIT ${BATCH}`)

  const write = (rows: ReadonlyArray<typeof Row.Type & { readonly resealed: Buffer }>) => {
    const columns = of.key.map(([, type], index) => sql`${rows.map(({ key }) => key[index] ?? "")}::${sql.literal(type)}[]`)
    const matches = of.key.map(([name], index) => `t.${name} = n.key${index}`).join(" AND ")
    return sql`
      UPDATE ${table} t SET ${column} = n.resealed
      FROM unnest(${sql.csv(columns)}, ${rows.map(({ sealed }) => sealed)}::bytea[], ${rows.map(({ resealed }) => resealed)}::bytea[])
        AS n (${sql.literal(of.key.map((_, index) => `key${index}`).join(", "))}, sealed, resealed)
      WHERE ${sql.literal(matches)} AND t.${column} = n.sealed RETURNING 1`
  }

  return Effect.gen(function* () {
    let done: Reencrypted = { checked: 0, reencrypted: 0, unreadable: 0 }
    for (let after: ReadonlyArray<string> | undefined; ; ) {
      const rows = yield* retryWhileUnavailable(read(after))
      const old = rows.filter(({ context, sealed }) => !master.isCurrent(of.purpose, sealed, context))
      const opened = old.flatMap((row) => {
        const plain = master.open(of.purpose, row.sealed, row.context)
        return plain === undefined ? [] : [{ ...row, resealed: master.seal(of.purpose, plain, row.context) }]
      })
      const written = opened.length === 0 ? [] : yield* retryWhileUnavailable(write(opened))
      done = {
        checked: done.checked + rows.length,
        reencrypted: done.reencrypted + written.length,
        unreadable: done.unreadable + old.length - opened.length
      }
      yield* onBatch(done)
      if (rows.length < BATCH) return done
      after = rows.at(-1)?.key
    }
  })
}
