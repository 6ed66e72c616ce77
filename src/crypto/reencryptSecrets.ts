/**
 * Moving sealed values from the previous master key to the current one, a batch at a time, while the service runs. A
 * value is replaced only where it is still the one that was read, so what the service writes meanwhile stays; what is
 * done already is left alone, so a run that was ended anywhere is simply run again. Decision D-25.
 */
import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { whileUnavailable } from "../database/unavailable.ts"
import type { Purpose, Sealing } from "./MasterKey.ts"

/** A column of sealed values: what they are sealed for, and how each is told apart and bound. */
export interface SealedColumn {
  readonly purpose: Purpose
  readonly table: string
  readonly column: string
  /** Columns of the primary key with their types. */
  readonly key: ReadonlyArray<readonly [name: string, type: "text" | "bigint"]>
  /** The context that a value was sealed with, as an SQL expression over its row. */
  readonly context: string
}

/** What was found in a column. */
export interface Reencrypted {
  /** Values looked at. */
  readonly checked: number
  /** Values moved to the current key. */
  readonly reencrypted: number
  /** Values that neither key opens; they were left as they are. */
  readonly unreadable: number
}

/** Values that one statement reads or writes. */
const BATCH = 500

/** A row that somebody holds, or a database that restarts, is waited for. */
const patiently = whileUnavailable("1 second", "30 seconds")

interface Row {
  readonly key: ReadonlyArray<string>
  readonly context: string
  readonly sealed: Buffer
}

/** Moves a column's values. `onBatch` is told how far it is. Fails with the database's error when it stays away. */
export const reencrypt = (
  sql: SqlClient.SqlClient,
  master: Sealing,
  of: SealedColumn,
  onBatch: (soFar: Reencrypted) => Effect.Effect<void> = () => Effect.void
) => {
  const names = of.key.map(([name]) => name).join(", ")
  const table = sql.literal(of.table),
    column = sql.literal(of.column)

  const read = (after: ReadonlyArray<string> | undefined) => sql<Row>`
    SELECT ARRAY[${sql.literal(of.key.map(([name]) => `${name}::text`).join(", "))}] AS key, ${sql.literal(of.context)} AS context, ${column} AS sealed
    FROM ${table} ${
      after === undefined
        ? sql.literal("")
        : sql`WHERE (${sql.literal(names)}) > (${sql.csv(of.key.map(([, type], index) => sql`${after[index] ?? ""}::${sql.literal(type)}`))})`
    } ORDER BY ${sql.literal(names)} LIMIT ${BATCH}`

  const write = (rows: ReadonlyArray<Row & { readonly resealed: Buffer }>) => {
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
      const rows = yield* patiently(read(after))
      const old = rows.filter(({ context, sealed }) => !master.isCurrent(of.purpose, sealed, context))
      const opened = old.flatMap((row) => {
        const plain = master.open(of.purpose, row.sealed, row.context)
        return plain === undefined ? [] : [{ ...row, resealed: master.seal(of.purpose, plain, row.context) }]
      })
      const written = opened.length === 0 ? [] : yield* patiently(write(opened))
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
