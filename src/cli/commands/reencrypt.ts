/** `custody secrets`: stored secrets. */
import * as Command from "@effect/cli/Command"
import { Effect } from "effect"
import { base } from "./base.ts"

const reencrypt = Command.make("reencrypt", {}, () =>
  Effect.flatMap(
    Effect.promise(() => import("./run/reencrypt.ts")),
    ({ reencrypt }) => reencrypt
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
