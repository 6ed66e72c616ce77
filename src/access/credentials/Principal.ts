/**
 * Who a request acts for: an API key, its user, and what the user may do at this moment. Roles on vaults are not
 * included: every statement that reads a vault checks them (visibility.ts), so they are always current. Spec:
 * Authentication 10, 11. Decisions D-6, D-7.
 */
import { Context, Effect, Option } from "effect"
import type { IPv4, IPv6 } from "ipaddr.js"

/** The scopes of keys. Spec: Authentication 3. */
export const scopes = ["vault:read", "webhook:read", "webhook:manage"] as const
export type Scope = (typeof scopes)[number]

export interface PrincipalState {
  /** The API key, null for a portal session. */
  readonly keyId: string | null
  /** The portal session, null for an API key. */
  readonly sessionId: string | null
  readonly userId: string
  readonly organizationId: string
  readonly scopes: ReadonlySet<string>
  /** Vaults that the key allows; null allows all vaults on which the user has the Developer role. */
  readonly vaultAllowlist: ReadonlyArray<string> | null
  /** Whether the user is an owner of the organization now. Decision D-6. */
  readonly isOwner: boolean
  /** The client's address, which a key's IP allowlist is checked against again while a request stays open. */
  readonly client: IPv4 | IPv6 | undefined
}

/** The owner of idempotency keys: the API key, or the user in the portal. */
export const callerOf = ({ keyId, userId }: PrincipalState): string => keyId ?? userId

/** The authenticated caller of a request. */
export class Principal extends Context.Tag("custody/Principal")<Principal, PrincipalState>() {}

/** The caller of a request from the web portal, signed in there; no API key is required then. */
export class SignedIn extends Context.Tag("custody/SignedIn")<SignedIn, PrincipalState>() {}

/**
 * Confirms the second factor again for an action of a portal session; absent for API keys. A rejection is a defect that
 * carries the problem, because no contract of the API names it; the error boundary turns it into a response.
 */
export class Confirmation extends Context.Tag("custody/Confirmation")<Confirmation, Effect.Effect<void>>() {}

/**
 * Requires the second factor of a portal session before an action that could leak data. `check` runs first and fails where
 * the action would fail, so that an invalid request uses up no code. Does nothing for API keys.
 */
export const requireSecondFactor = <E = never, R = never>(check: Effect.Effect<unknown, E, R> = Effect.void): Effect.Effect<void, E, R> =>
  Effect.withFiberRuntime((fiber) =>
    Option.match(Context.getOption(fiber.currentContext, Confirmation), {
      onNone: () => Effect.void,
      onSome: (confirmed) => Effect.zipRight(check, confirmed)
    })
  )
