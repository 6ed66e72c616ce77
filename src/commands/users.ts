/** `custody users`: who may sign in to the web portal. Results are JSON on standard output. */
import { Args, Command, Options } from "@effect/cli"
import { Console, Duration, Effect, Either, Redacted } from "effect"
import { commandDatabase } from "../Base.ts"
import { Invitations, VALIDITY } from "../portal/Invitations.ts"
import { addressOf } from "../portal/origin.ts"
import * as Format from "../settings/Format.ts"
import { Settings } from "../settings/Settings.ts"
import { Usage } from "./exit.ts"

const LONGEST = Duration.days(30)

const invite = Command.make(
  "invite",
  {
    id: Args.text({ name: "id" }).pipe(Args.withDescription("id of a user from the record feed, user_…")),
    reset: Options.boolean("reset").pipe(
      Options.withDescription("reset an existing account: removes its password, authenticator, passkeys and sessions")
    ),
    valid: Options.text("valid").pipe(
      Options.withDescription("how long the link is valid, such as 24h; at most 30d"),
      Options.withDefault(Format.showDuration(VALIDITY))
    )
  },
  (given) =>
    Effect.gen(function* () {
      const validity = Format.duration(given.valid)
      if (Either.isLeft(validity)) return yield* new Usage({ message: `--valid: read “${given.valid}”, expected ${validity.left}.` })
      if (Duration.lessThanOrEqualTo(validity.right, Duration.zero) || Duration.greaterThan(validity.right, LONGEST)) {
        return yield* new Usage({ message: `--valid: read “${given.valid}”, expected a positive duration of at most 30d.` })
      }
      const { token, ...invited } = yield* Effect.flatMap(Invitations, (invitations) =>
        invitations.create(given.id, { reset: given.reset, validity: validity.right })
      ).pipe(Effect.provide(Invitations.layer), Effect.provide(commandDatabase), Effect.scoped)
      // After the #, which browsers keep to themselves: the token is in no request line and no log.
      const url = `${addressOf(yield* Settings)}/invitation#${Redacted.value(token)}`
      yield* Console.log(JSON.stringify({ ...invited, url }, null, 2))
    })
).pipe(Command.withDescription("Invite a user to the web portal. Prints a link that works once and is shown only once."))

export const users = Command.make("users").pipe(
  Command.withDescription("Users of the web portal: invite."),
  Command.withSubcommands([invite])
)
