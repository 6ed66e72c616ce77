/** Implementation of `custody users`. */
import { Duration, Effect, Either, Option, Redacted } from "effect"
import { commandDatabase } from "../../../app/Base.ts"
import { addressOf } from "../../../portal/server/origin.ts"
import { Invitations, VALIDITY } from "../../../portal/signIn/Invitations.ts"
import * as Format from "../../../runtime/settings/Format.ts"
import { Settings } from "../../../runtime/settings/Settings.ts"
import { Usage } from "../exit.ts"
import { printOnce } from "./print.ts"

const LONGEST = Duration.days(30)

/** Invites a user and prints the link. */
export const invite = (given: {
  readonly id: string
  readonly reset: boolean
  readonly now: boolean
  readonly valid: Option.Option<string>
}) =>
  Effect.gen(function* () {
    if (given.now && !given.reset) return yield* new Usage({ message: "--now needs --reset." })
    const text = Option.getOrElse(given.valid, () => Format.showDuration(VALIDITY))
    const validity = Format.duration(text)
    if (Either.isLeft(validity)) return yield* new Usage({ message: `--valid: read “${text}”, expected ${validity.left}.` })
    if (Duration.lessThanOrEqualTo(validity.right, Duration.zero) || Duration.greaterThan(validity.right, LONGEST)) {
      return yield* new Usage({ message: `--valid: read “${text}”, expected a positive duration of at most 30d.` })
    }
    const { token, ...invited } = yield* Effect.flatMap(Invitations, (invitations) =>
      invitations.create(given.id, { reset: given.now ? "now" : given.reset, validity: validity.right })
    ).pipe(Effect.provide(Invitations.layer), Effect.provide(commandDatabase), Effect.scoped)
    // The token follows the #, which browsers do not send, so it appears in no request line and no log.
    const url = `${addressOf(yield* Settings)}/invitation#${Redacted.value(token)}`
    yield* printOnce({ ...invited, url }, "The link is lost: run the command again, which replaces it.")
  })
