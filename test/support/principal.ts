/** Callers for tests of parts that take one. */
import type { PrincipalState } from "../../src/access/credentials/Principal.ts"

/** An API key of `user_a` of `org_a` without scopes, with what is given instead. */
export const principalOf = (given: Partial<PrincipalState> = {}): PrincipalState => ({
  keyId: "key_a",
  userId: "user_a",
  organizationId: "org_a",
  sessionId: null,
  scopes: new Set(),
  vaultAllowlist: null,
  isOwner: false,
  client: undefined,
  ...given
})
