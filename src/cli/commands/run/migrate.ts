/** Implementation of `custody migrate`. */
import { Console, Effect } from "effect"
import { databaseUrl } from "../../../app/Base.ts"
import * as Database from "../../../runtime/database/Database.ts"
import * as Migrations from "../../../runtime/database/Migrations.ts"
import * as Partitions from "../../../runtime/database/Partitions.ts"

/** Applies pending migrations and prints them. */
export const migrate = Effect.gen(function* () {
  const url = yield* databaseUrl
  const applied = yield* Effect.zipLeft(Migrations.migrate, Partitions.ensure).pipe(
    Effect.provide(Database.layer(url, Database.pools.command))
  )
  yield* Console.log(JSON.stringify({ applied: applied.map(([id, name]) => `${String(id).padStart(4, "0")}_${name}`) }))
}).pipe(Effect.scoped)
