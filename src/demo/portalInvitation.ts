/** The way into the web portal for the demo's owner. */
import { Effect, Redacted } from "effect"
import { Invitations, VALIDITY } from "../portal/Invitations.ts"

/** Where to go, and whether it is an invitation; in a later run there may be an account already. */
export interface Way {
  readonly url: string
  readonly invited: boolean
}

/** A fresh invitation of the user; the portal itself once one was accepted. `address` is the portal's. */
export const way = (userId: string, address: string) =>
  Effect.flatMap(Invitations, (invitations) => invitations.create(userId, { reset: false, validity: VALIDITY })).pipe(
    Effect.map(({ token }): Way => ({ url: `${address}/invitation#${Redacted.value(token)}`, invited: true })),
    Effect.catchTag("InvalidInvitation", () => Effect.succeed<Way>({ url: address, invited: false }))
  )
