/**
 * Who a request acts for: a key, the user that it is bound to, and what the user may do at this moment. The
 * roles on vaults are not here; every statement that reads a vault asks for them itself (visibility.ts), so
 * they are live to the row. Spec: Authentication 10, 11. Decisions D-6, D-7.
 */
import { Context, Effect, Option } from "effect"

/** What a key may be used for. Spec: Authentication 3. */
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
  /** Vaults that the key allows; null allows all that the user's roles reach. */
  readonly vaultAllowlist: ReadonlyArray<string> | null
  /** Whether the user is an owner of the organization now. Decision D-6. */
  readonly isOwner: boolean
}

/** Whose idempotency keys a caller's are: the API key's, or the user's in the portal. */
export const callerOf = ({ keyId, userId }: PrincipalState): string => keyId ?? userId

/** The authenticated caller of a request. */
export class Principal extends Context.Tag("custody/Principal")<Principal, PrincipalState>() {}

/** The caller of a request that came through the web portal and is signed in there: no API key is asked for in its place. */
export class SignedIn extends Context.Tag("custody/SignedIn")<SignedIn, PrincipalState>() {}

/**
 * Confirms the second factor again for an act of a portal session; absent where a key acts. A refusal is a defect that holds the
 * problem, which the error boundary answers: no contract of the API names it.
 */
export class Confirmation extends Context.Tag("custody/Confirmation")<Confirmation, Effect.Effect<void>>() {}

/** Asks a session for its second factor, before an act that could be a way out for data. Keys are asked for nothing. */
export const confirmAct: Effect.Effect<void> = Effect.withFiberRuntime((fiber) =>
  Option.getOrElse(Context.getOption(fiber.currentContext, Confirmation), () => Effect.void)
)
