/** Looks for API keys that expire soon, as a worker does; run as a program, in a process that a failpoint can kill. */
import "./failpoints.ts"
import { Effect, Layer, Redacted } from "effect"
import { ExpiringKeys } from "../../src/delivery/notices/ExpiringKeys.ts"
import * as Database from "../../src/runtime/database/Database.ts"

export const announceKeys = (databaseUrl: string): Promise<{ readonly announced: number; readonly failed: number }> =>
  Effect.runPromise(
    Effect.flatMap(ExpiringKeys, ({ announce }) => announce).pipe(
      Effect.provide(Layer.provide(ExpiringKeys.layer, Database.layer(Redacted.make(databaseUrl), Database.pools.command)))
    )
  )

if (import.meta.main) console.log(JSON.stringify(await announceKeys(process.env["DATABASE_URL"] ?? "")))
