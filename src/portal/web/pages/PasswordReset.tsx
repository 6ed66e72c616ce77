/**
 * A new password by e-mail: the page that asks for a link, and the page of a link. The token is after the # of the URL, which
 * browsers do not send; it is removed from the URL as soon as the password is changed.
 */
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { Navigate, useLocation, useNavigate } from "react-router"
import type { SessionStatus } from "../../server/PortalApi.ts"
import { postSignIn as post } from "../api.ts"
import { useForm } from "../form.ts"
import { Button, LinkButton } from "../parts/Button.tsx"
import { TextField } from "../parts/Field.tsx"
import { NewPasswordForm } from "../parts/NewPasswordForm.tsx"
import { SignedOutPage } from "../parts/SignedOutPage.tsx"
import { Failure, Loading, Trouble } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"
import { useSignedIn } from "../session.ts"

export const ForgottenPasswordPage = ({ session }: { readonly session: SessionStatus }) => {
  const [email, setEmail] = useState("")
  const [asked, setAsked] = useState(false)
  const form = useForm(async () => {
    await post("/password-reset/request", { email })
    setAsked(true)
  })
  if (!session.resetsPasswords) return <Navigate to="/sign-in" replace />
  return asked ? (
    <SignedOutPage
      title="Check your e-mail"
      lead={
        <>
          If <b>{email}</b> has an account, a link to choose a new password is on its way. It works once, for 30 minutes.
        </>
      }
    >
      <p className="hint">
        Nothing there? Look in the spam folder, and check that this is the address of your account. Otherwise ask an owner of your
        organization to invite you.
      </p>
      <LinkButton to="/sign-in">Back to sign-in</LinkButton>
    </SignedOutPage>
  ) : (
    <SignedOutPage title="Forgot your password?" lead="Enter the address of your account to get a link for a new password.">
      <form className="form" onSubmit={form.submit}>
        <TextField label="E-mail address" type="email" autoComplete="username" required value={email} onValue={setEmail} />
        <Trouble error={form.error} />
        <Button kind="main" type="submit" busy={form.busy}>
          Send the link
        </Button>
        <LinkButton kind="quiet" to="/sign-in">
          Back to sign-in
        </LinkButton>
      </form>
      <p className="hint">You still need your authenticator or a backup code to sign in.</p>
    </SignedOutPage>
  )
}

export const PasswordResetPage = ({ session }: { readonly session: SessionStatus }) => {
  const { hash } = useLocation()
  const navigate = useNavigate()
  const signedIn = useSignedIn()
  const token = hash.slice(1)
  const [isDone, setIsDone] = useState(false)
  const { data, error, refetch } = useQuery({
    queryKey: ["password-reset", token],
    queryFn: () => post("/password-reset", { token }),
    enabled: !isDone,
    staleTime: Number.POSITIVE_INFINITY
  })
  const save = async (password: string) => {
    await post("/password-reset/confirm", { token, password })
    setIsDone(true)
    await navigate("/password-reset", { replace: true })
    await signedIn()
  }
  if (isDone) {
    return (
      <SignedOutPage title="Password changed" lead="All sessions of your account have ended. Sign in with the new password.">
        <LinkButton kind="main" to="/sign-in">
          Go to sign-in
        </LinkButton>
      </SignedOutPage>
    )
  }
  if (data === undefined) {
    return (
      <SignedOutPage title="New password">
        {error === null ? <Loading /> : <Failure error={error} retry={() => void refetch()} />}
        {error === null || !session.resetsPasswords ? null : <LinkButton to="/forgotten-password">Ask for a new link</LinkButton>}
        {error === null ? null : <LinkButton to="/sign-in">Go to sign-in</LinkButton>}
      </SignedOutPage>
    )
  }
  return (
    <SignedOutPage
      title="New password"
      lead={
        <>
          For <b>{data.email}</b>. All sessions of the account end; its authenticator and passkeys stay.
        </>
      }
    >
      <NewPasswordForm email={data.email} minimum={session.passwordMin} save={save} yes="Change password" />
      <p className="hint">
        The link works once, until <Time at={data.expiresAt} />.
      </p>
    </SignedOutPage>
  )
}
