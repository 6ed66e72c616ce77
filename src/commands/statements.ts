/** `custody statements`: seal what is due now. The result is JSON on standard output. C-6. */
import { Command } from "@effect/cli"
import { Console, Effect, Layer } from "effect"
import { commandDatabase } from "../Base.ts"
import { masterKeyLayer } from "../crypto/MasterKey.ts"
import { SigningKeys } from "../crypto/SigningKeys.ts"
import { StatementSealer } from "../statements/StatementSealer.ts"

const seal = Command.make("seal", {}, () =>
  Effect.gen(function* () {
    const { failed, revised, sealed } = yield* Effect.flatMap(StatementSealer, (sealer) => sealer.seal("", Number.POSITIVE_INFINITY)).pipe(
      Effect.provide(Layer.provide(StatementSealer.layer, SigningKeys.layer)),
      Effect.provide(commandDatabase),
      Effect.provide(masterKeyLayer),
      Effect.scoped
    )
    yield* Console.log(JSON.stringify({ sealed, revised, failed }, null, 2))
  })
).pipe(Command.withDescription("Seal the statements that are due, and new revisions of days that late records changed."))

/** The command. */
export const statements = Command.make("statements").pipe(
  Command.withDescription("Daily statements of vaults: seal what is due."),
  Command.withSubcommands([seal])
)
