/** Access to the web portal for the demo's owner. */
import { Effect, Redacted } from "effect"
import { Invitations, VALIDITY } from "../../portal/signIn/Invitations.ts"

/** The link, and whether it is an invitation; in a later run the account may exist already. */
export interface PortalLink {
  readonly url: string
  readonly invited: boolean
}

/** A new invitation for the user, or the portal itself if one was accepted. `address` is the portal's. */
export const portalLink = (userId: string, address: string) =>
  Effect.flatMap(Invitations, (invitations) => invitations.create(userId, { reset: false, validity: VALIDITY })).pipe(
    Effect.map(({ token }): PortalLink => ({ url: `${address}/invitation#${Redacted.value(token)}`, invited: true })),
    Effect.catchTag("InvalidInvitation", () => Effect.succeed<PortalLink>({ url: address, invited: false }))
  )
