/** `custody secrets`: stored secrets. */
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { Effect } from "effect"
import { base } from "./base.ts"

const reencrypt = Command.make(
  "reencrypt",
  {
    keyLost: Options.boolean("key-lost").pipe(
      Options.withDescription("use MASTER_KEY from now on although the key that the database is used with is lost")
    )
  },
  ({ keyLost }) =>
    Effect.flatMap(
      Effect.promise(() => import("./run/reencrypt.ts")),
      ({ reencrypt }) => reencrypt(keyLost)
    )
).pipe(
  Command.withDescription(
    "Re-encrypt everything at rest from MASTER_KEY_PREVIOUS to MASTER_KEY while the service runs. Can be interrupted and run again at any time. Prints counts as JSON."
  ),
  Command.provide(base)
)

export const secrets = Command.make("secrets").pipe(
  Command.withDescription("Re-encrypt stored secrets."),
  Command.withSubcommands([reencrypt])
)
