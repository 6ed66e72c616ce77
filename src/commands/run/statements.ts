/** Implementation of `custody statements`. C-6. */
import { Console, Effect, Layer } from "effect"
import { commandDatabase } from "../../Base.ts"
import { masterKeyLayer } from "../../crypto/MasterKey.ts"
import { SigningKeys } from "../../crypto/SigningKeys.ts"
import { StatementSealer } from "../../statements/StatementSealer.ts"

/** Seals statements that are due and prints counts. */
export const seal = Effect.gen(function* () {
  const { failed, revised, sealed } = yield* Effect.flatMap(StatementSealer, (sealer) => sealer.seal("", Number.POSITIVE_INFINITY)).pipe(
    Effect.provide(Layer.provide(StatementSealer.layer, SigningKeys.layer)),
    Effect.provide(commandDatabase),
    Effect.provide(masterKeyLayer),
    Effect.scoped
  )
  yield* Console.log(JSON.stringify({ sealed, revised, failed }, null, 2))
})
