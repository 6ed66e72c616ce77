/** Signing in: a password and then a code, a passkey, or the platform's identity provider. */
import { startAuthentication } from "@simplewebauthn/browser"
import { Fingerprint, LogIn } from "lucide-react"
import { useState } from "react"
import { useLocation } from "react-router"
import { post } from "../api.ts"
import { type Standing, useSignedIn } from "../data.ts"
import { useForm } from "../form.ts"
import { Alone } from "../parts/Alone.tsx"
import { Button } from "../parts/Button.tsx"
import { type PasskeyOptions, passkeyProblem, passkeysPossible } from "../parts/Confirm.tsx"
import { TextField } from "../parts/Field.tsx"
import { Trouble } from "../parts/States.tsx"

const viaProvider = async () => {
  const { url } = await post<{ readonly url: string }>("/sign-in/provider")
  location.assign(url)
}

export const SignInPage = ({ standing: { provider } }: { readonly standing: Standing }) => {
  const { search } = useLocation()
  const [email, setEmail] = useState("")
  const [password, setPassword] = useState("")
  const [other, setOther] = useState<unknown>(
    new URLSearchParams(search).has("error")
      ? new Error(
          `${provider ?? "The identity provider"} signed nobody in who has an account here. Ask an owner of your organization for an invitation.`
        )
      : null
  )
  const signedIn = useSignedIn()
  const form = useForm(async () => {
    setOther(null)
    await post("/sign-in", { email, password })
    await signedIn()
  })
  const attempt = (way: () => Promise<unknown>) => () => {
    setOther(null)
    way().catch(setOther)
  }
  const withPasskey = async () => {
    const { challengeId, options } = await post<PasskeyOptions>("/sign-in/passkey/options")
    const response = await startAuthentication({ optionsJSON: options }).catch((failure) => {
      throw passkeyProblem(failure)
    })
    await post("/sign-in/passkey", { challengeId, response })
    await signedIn()
  }
  return (
    <Alone title="Sign in">
      <form className="form" onSubmit={form.submit}>
        <TextField label="E-mail address" type="email" autoComplete="username" required value={email} onValue={setEmail} />
        <TextField label="Password" type="password" autoComplete="current-password" required value={password} onValue={setPassword} />
        <Trouble error={form.error ?? other} />
        <Button kind="main" type="submit" busy={form.busy}>
          Sign in
        </Button>
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
            <LogIn aria-hidden size={16} /> Sign in at {provider}
          </Button>
        )}
      </div>
      <p className="hint">No account, or no second factor any more? An owner of your organization can have you invited.</p>
    </Alone>
  )
}
