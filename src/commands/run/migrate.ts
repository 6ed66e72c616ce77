/** Implementation of `custody migrate`. */
import { Console, Effect } from "effect"
import { databaseUrl } from "../../Base.ts"
import * as Database from "../../database/Database.ts"
import * as Migrations from "../../database/Migrations.ts"
import * as Partitions from "../../database/Partitions.ts"
import * as TransactionsMove from "../../database/TransactionsMove.ts"

/** The time between two lines of progress, in ms. */
const EVERY = 1_000

/** Applies pending migrations and prints them, then moves rows that a migration left to be moved, with progress on stderr. */
export const migrate = Effect.gen(function* () {
  const url = yield* databaseUrl
  let reportedAt = Number.NEGATIVE_INFINITY
  const report = ({ percent, rows, waits }: TransactionsMove.Progress) =>
    Effect.suspend(() => {
      if (performance.now() - reportedAt < EVERY) return Effect.void
      reportedAt = performance.now()
      return Console.error(
        waits
          ? "all rows are moved; waiting for long reads of the old table to end"
          : `moving transactions into partitions: ${rows} rows, ${percent} %`
      )
    })
  const [applied, moved] = yield* Effect.zipLeft(Migrations.migrate, Partitions.ensure).pipe(
    Effect.zip(TransactionsMove.move(report)),
    Effect.provide(Database.layer(url, Database.pools.command))
  )
  yield* Console.log(
    JSON.stringify({
      applied: applied.map(([id, name]) => `${String(id).padStart(4, "0")}_${name}`),
      ...(moved === undefined ? {} : { movedTransactions: moved })
    })
  )
}).pipe(Effect.scoped)
