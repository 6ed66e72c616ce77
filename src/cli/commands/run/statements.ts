/** Implementation of `custody statements`. C-6. */
import { Console, Effect, Layer } from "effect"
import { commandDatabase } from "../../../app/Base.ts"
import { StatementSealer } from "../../../custody/statements/StatementSealer.ts"
import { masterKeyLayer } from "../../../runtime/crypto/MasterKey.ts"
import { publish, SigningKeys } from "../../../runtime/crypto/SigningKeys.ts"
import { NotSealed } from "../exit.ts"

/** Seals statements that are due and prints counts. */
export const seal = Effect.gen(function* () {
  const { failed, revised, sealed } = yield* Effect.zipRight(
    publish(),
    Effect.flatMap(StatementSealer, (sealer) => sealer.seal("", Number.POSITIVE_INFINITY))
  ).pipe(
    Effect.provide(Layer.provide(StatementSealer.layer, SigningKeys.layer)),
    Effect.provide(commandDatabase),
    Effect.provide(masterKeyLayer),
    Effect.scoped
  )
  yield* Console.log(JSON.stringify({ sealed, revised, failed }, null, 2))
  if (failed > 0)
    return yield* new NotSealed({
      message: `Vaults whose statements could not be sealed: ${failed}. The log says why; run the command again.`
    })
})
