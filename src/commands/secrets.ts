/**
 * `custody secrets reencrypt`: the last step of a rotation of the master key. First every process gets the new key as
 * MASTER_KEY and the old one as MASTER_KEY_PREVIOUS; then this moves everything that is sealed at rest to the new key;
 * then MASTER_KEY_PREVIOUS can go. Decision D-25.
 */
import { Command } from "@effect/cli"
import { SqlClient } from "@effect/sql"
import { Console, Effect, Layer } from "effect"
import { commandDatabase, masterKey } from "../App.ts"
import { sealedAnswers } from "../http/Idempotency.ts"
import { MasterKey } from "../http/MasterKey.ts"
import { type Resealed, reseal } from "../http/reseal.ts"
import { sealedSecondFactors } from "../portal/SecondFactor.ts"
import { sealedSecrets } from "../webhooks/Secret.ts"
import { NotReencrypted } from "./exit.ts"

/** Everything that is sealed at rest, by the name under which the command tells of it. */
export const sealedColumns = {
  webhookSecrets: sealedSecrets,
  idempotencyAnswers: sealedAnswers,
  portalSecondFactors: sealedSecondFactors
} as const

const progress = (name: string) => (soFar: Resealed) =>
  Effect.sync(() => {
    if (process.stderr.isTTY) process.stderr.write(`\r${name}: ${soFar.checked} checked, ${soFar.reencrypted} moved\u001b[K`)
  })

const reencryptAll = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const master = yield* MasterKey
  const pass = Effect.all(
    {
      webhookSecrets: reseal(sql, master, sealedColumns.webhookSecrets, progress("webhook secrets")),
      idempotencyAnswers: reseal(sql, master, sealedColumns.idempotencyAnswers, progress("kept answers")),
      portalSecondFactors: reseal(sql, master, sealedColumns.portalSecondFactors, progress("second factors"))
    },
    { concurrency: 1 }
  )
  const done = yield* pass
  yield* Effect.sync(() => process.stderr.isTTY && process.stderr.write("\r\u001b[K"))
  yield* Console.log(JSON.stringify(done, null, 2))
  const unreadable = Object.values(done).reduce((sum, one) => sum + one.unreadable, 0)
  if (unreadable > 0) {
    return yield* new NotReencrypted({
      message:
        `${unreadable} values were sealed under another key than MASTER_KEY and MASTER_KEY_PREVIOUS, and were left as they are. ` +
        "Set MASTER_KEY_PREVIOUS to the key that they were sealed under and run this again."
    })
  }
  // What appears sealed under the previous key behind the first pass was written by a process that does not know the new one.
  const late = Object.values(yield* pass).reduce((sum, one) => sum + one.reencrypted + one.unreadable, 0)
  if (late > 0) {
    return yield* new NotReencrypted({
      message:
        `${late} values were sealed under the previous key while this ran: a process still has it as its MASTER_KEY. ` +
        "Restart every process with the new key as MASTER_KEY and the previous one as MASTER_KEY_PREVIOUS, and run this again."
    })
  }
})

const reencrypt = Command.make("reencrypt", {}, () =>
  reencryptAll.pipe(Effect.provide(Layer.merge(commandDatabase, masterKey)), Effect.scoped)
).pipe(
  Command.withDescription(
    "Move everything that is sealed at rest from MASTER_KEY_PREVIOUS to MASTER_KEY, while the service runs; can be ended and run again at any time. Prints counts as JSON."
  )
)

export const secrets = Command.make("secrets").pipe(
  Command.withDescription("Secrets at rest: reencrypt"),
  Command.withSubcommands([reencrypt])
)
