/** Passkeys for pages, on top of the browser library. */
import { ApiProblem } from "./api.ts"

/** Passkeys are bound to a name; under an IP address there are none. */
export const passkeysPossible = (): boolean => "credentials" in navigator && !/^[\d.]+$|^\[/.test(location.hostname)

/** The message for a failed passkey. */
export const passkeyProblem = (error: unknown): unknown =>
  error instanceof ApiProblem ? error : new Error("The browser did not use a passkey. Try again, or use a code.")
