/** `custody users`: users of the web portal. Results are JSON on standard output. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { Effect } from "effect"
import { base } from "./base.ts"

const invite = Command.make(
  "invite",
  {
    id: Args.text({ name: "id" }).pipe(Args.withDescription("id of a user from the record feed, user_…")),
    reset: Options.boolean("reset").pipe(
      Options.withDescription(
        "reset an existing account: when the link is used, removes its password, authenticator, passkeys and sessions"
      )
    ),
    now: Options.boolean("now").pipe(
      Options.withDescription("with --reset: remove them at once, because somebody else got into the account")
    ),
    valid: Options.text("valid").pipe(
      Options.withDescription("how long the link is valid, such as 24h; at most 30d, and 72h by default"),
      Options.optional
    )
  },
  (given) =>
    Effect.flatMap(
      Effect.promise(() => import("./run/users.ts")),
      ({ invite }) => invite(given)
    )
).pipe(
  Command.withDescription("Invite a user to the web portal. Prints a link that works once and is shown only once."),
  Command.provide(base)
)

export const users = Command.make("users").pipe(
  Command.withDescription("Invite users to the web portal."),
  Command.withSubcommands([invite])
)
