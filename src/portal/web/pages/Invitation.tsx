/**
 * Accepts an invitation. The token is after the # of the URL, which browsers do not send; it is removed from the URL as
 * soon as the invitation is accepted.
 */
import { useQuery } from "@tanstack/react-query"
import { useLocation, useNavigate } from "react-router"
import type { InvitationSummary, SessionStatus } from "../../server/PortalApi.ts"
import { postSignIn as post } from "../api.ts"
import { Button, LinkButton } from "../parts/Button.tsx"
import { NewPasswordForm } from "../parts/NewPasswordForm.tsx"
import { SignedOutPage } from "../parts/SignedOutPage.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"
import { useSignedIn } from "../session.ts"

export const InvitationPage = ({ session }: { readonly session: SessionStatus }) => {
  const { hash } = useLocation()
  const token = hash.slice(1)
  const { data, error, refetch } = useQuery({
    queryKey: ["invitation", token],
    queryFn: () => post("/invitation", { token }),
    staleTime: Number.POSITIVE_INFINITY
  })
  if (data === undefined) {
    return (
      <SignedOutPage title="Invitation">
        {error === null ? <Loading /> : <Failure error={error} retry={() => void refetch()} />}
        {error === null ? null : <LinkButton to="/sign-in">Go to sign-in</LinkButton>}
      </SignedOutPage>
    )
  }
  return <Accept invitation={data} token={token} session={session} />
}

const Accept = ({
  invitation,
  session,
  token
}: {
  readonly invitation: InvitationSummary
  readonly token: string
  readonly session: SessionStatus
}) => {
  const signedIn = useSignedIn()
  const navigate = useNavigate()
  const accept = async (chosen: string | null) => {
    await post("/invitation/accept", { token, password: chosen })
    await signedIn()
    await navigate(chosen === null ? "/sign-in" : "/", { replace: true })
  }
  const { email, expiresAt, name, organizationName, reset } = invitation
  return (
    <SignedOutPage
      title={`Welcome, ${name}`}
      lead={
        <>
          You have been invited to the custody portal of <b>{organizationName}</b>. You sign in as <b>{email}</b>.
        </>
      }
    >
      {reset ? (
        <p className="note">This resets your account: your previous password, authenticator and passkeys stop working once you continue.</p>
      ) : null}
      {session.state === "signed_in" ? (
        <p className="note">
          You are signed in as {session.user?.email} in this browser. Continuing signs you in as {email}.
        </p>
      ) : null}
      <NewPasswordForm email={email} minimum={session.passwordMin} save={accept} yes="Create account">
        {session.provider === null ? null : (
          <Button kind="quiet" onClick={() => void accept(null)}>
            Continue with {session.provider} instead of a password
          </Button>
        )}
      </NewPasswordForm>
      <p className="hint">
        The invitation works once, until <Time at={expiresAt} />. Next, you set up a second factor.
      </p>
    </SignedOutPage>
  )
}
