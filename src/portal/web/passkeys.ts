/** What pages need to know of passkeys, beside the library that speaks to the browser. */
import type { startAuthentication } from "@simplewebauthn/browser"
import { ApiProblem } from "./api.ts"

/** What a browser asks its authenticator with. */
export interface PasskeyOptions {
  readonly challengeId: string
  readonly options: Parameters<typeof startAuthentication>[0]["optionsJSON"]
}

/** Passkeys are bound to a name; under a bare address a browser has none. */
export const passkeysPossible = (): boolean => "credentials" in navigator && !/^[\d.]+$|^\[/.test(location.hostname)

/** What went wrong with a browser's passkey, in words. */
export const passkeyProblem = (error: unknown): unknown =>
  error instanceof ApiProblem ? error : new Error("The browser did not use a passkey. Try again, or use a code.")
