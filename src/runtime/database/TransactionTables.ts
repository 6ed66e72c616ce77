/**
 * The table that a statement on one vault's transactions names: the vault's partition. A cached plan on the whole table locks
 * and opens every partition at each execution before it prunes those that it does not need. Only Postgres can compute which
 * partition a vault belongs to. That never changes, so it is queried once per vault. Decision D-60.
 */
import type { SqlClient, SqlError } from "@effect/sql"
import { Effect, Schema } from "effect"
import { LRUCache } from "lru-cache"
import { decodeRows } from "./decodeRows.ts"

/** The table of all vaults' transactions. */
export const ALL = "transactions"
/** Vaults whose partition is remembered. */
const REMEMBERED = 50_000

/** Statements that name partitions; a connection prepares each in one variant per partition. The others name the whole table. */
const FREQUENT = 4
/** How many times a statement runs before it is one of them. */
const OFTEN = 50

const decodeNames = decodeRows(Schema.Struct({ name: Schema.String }))

export class TransactionTables {
  readonly #known = new LRUCache<string, string>({ max: REMEMBERED })
  readonly #runs = new LRUCache<string, number>({ max: 1_000 })
  readonly #frequent = new Set<string>()

  /** The partition of a vault, which need not exist. */
  of(sql: SqlClient.SqlClient, vaultId: string): Effect.Effect<string, SqlError.SqlError> {
    const known = this.#known.get(vaultId)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.map(
      decodeNames(sql`
        SELECT ${ALL}::text || '_' || lpad(n::text, 2, '0') AS name FROM generate_series(0, 31) n
        WHERE satisfies_hash_partition(${ALL}::regclass, 32, n, ${vaultId}::text)`),
      ([partition]) => {
        if (partition === undefined) throw new Error(`no partition has the transactions of ${vaultId}`)
        this.#known.set(vaultId, partition.name)
        return partition.name
      }
    )
  }

  /** The same for one of several statements, identified by `statement`, of which only the most frequent name partitions. */
  ofFrequent(sql: SqlClient.SqlClient, vaultId: string, statement: string): Effect.Effect<string, SqlError.SqlError> {
    if (!this.#frequent.has(statement)) {
      if (this.#frequent.size === FREQUENT) return Effect.succeed(ALL)
      const runs = (this.#runs.get(statement) ?? 0) + 1
      this.#runs.set(statement, runs)
      if (runs < OFTEN) return Effect.succeed(ALL)
      this.#frequent.add(statement)
    }
    return this.of(sql, vaultId)
  }
}
