/** Sign-in with a password and a code, a passkey, or the identity provider. */
import { startAuthentication } from "@simplewebauthn/browser"
import { Fingerprint, LogIn } from "lucide-react"
import { useState } from "react"
import { Link, useLocation } from "react-router"
import type { SessionStatus, User } from "../../server/PortalApi.ts"
import { postSignIn as post } from "../api.ts"
import { useForm } from "../form.ts"
import { Button } from "../parts/Button.tsx"
import { TextField } from "../parts/Field.tsx"
import { SignedOutPage } from "../parts/SignedOutPage.tsx"
import { Trouble } from "../parts/States.tsx"
import { passkeyProblem, passkeysPossible } from "../passkeys.ts"
import { useSignedIn } from "../session.ts"

const viaProvider = async () => {
  const { url } = await post("/sign-in/provider")
  location.assign(url)
}

export interface SignInProps {
  readonly session: SessionStatus
  /** The user whose session has expired, if any: their page waits behind this one. */
  readonly ended: User | null
}

export const SignInPage = ({ ended, session: { provider, resetsPasswords } }: SignInProps) => {
  const { search } = useLocation()
  const [email, setEmail] = useState(ended?.email ?? "")
  const [password, setPassword] = useState("")
  const [other, setOther] = useState<unknown>(
    new URLSearchParams(search).has("error")
      ? new Error(
          `The sign-in with ${provider ?? "the identity provider"} failed. Try again. If you have no account here, ask an owner of your organization to ${
            resetsPasswords ? "invite you" : "request an invitation from the operator of this service"
          }.`
        )
      : null
  )
  const signedIn = useSignedIn()
  const form = useForm(async () => {
    setOther(null)
    await post("/sign-in", { email, password })
    await signedIn()
  })
  const attempt = (method: () => Promise<unknown>) => () => {
    setOther(null)
    method().catch(setOther)
  }
  const withPasskey = async () => {
    const { challengeId, options } = await post("/sign-in/passkey/options")
    const response = await startAuthentication({ optionsJSON: options }).catch((failure) => {
      throw passkeyProblem(failure)
    })
    await post("/sign-in/passkey", { challengeId, response })
    await signedIn()
  }
  return (
    <SignedOutPage
      title={ended === null ? "Sign in" : "Sign in again"}
      lead={ended === null ? undefined : "Your session has expired. Sign in to continue where you left off; your input is kept."}
    >
      <form className="form" onSubmit={form.submit}>
        <TextField label="E-mail address" type="email" autoComplete="username" required value={email} onValue={setEmail} />
        <TextField label="Password" type="password" autoComplete="current-password" required value={password} onValue={setPassword} />
        <Trouble error={form.error ?? other} />
        <Button kind="main" type="submit" busy={form.busy}>
          Sign in
        </Button>
        {resetsPasswords ? (
          <p className="under">
            <Link to="/forgotten-password">Forgot your password?</Link>
          </p>
        ) : null}
      </form>
      {passkeysPossible() || provider !== null ? <p className="or">or</p> : null}
      <div className="form">
        {passkeysPossible() ? (
          <Button onClick={attempt(withPasskey)}>
            <Fingerprint aria-hidden size={16} /> Sign in with a passkey
          </Button>
        ) : null}
        {provider === null ? null : (
          <Button onClick={attempt(viaProvider)}>
            <LogIn aria-hidden size={16} /> Sign in with {provider}
          </Button>
        )}
      </div>
      <p className="hint">
        {resetsPasswords ? (
          "No account? Ask an owner of your organization to invite you. Lost your second factor? Ask an owner to request an invitation from the operator of this service."
        ) : (
          <>
            No account, or lost your password or second factor? Ask an owner of your organization to request an invitation from the operator
            of this service, who runs <code>custody users invite</code>, for an existing account with <code>--reset</code>.
          </>
        )}
      </p>
    </SignedOutPage>
  )
}
