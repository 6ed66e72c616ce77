/** Setting up the second factor: an authenticator app, and backup codes in case it is lost. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import type { Enrolment } from "../../signIn/SecondFactor.ts"
import { postSignIn as post } from "../api.ts"
import { useForm } from "../form.ts"
import { Button } from "../parts/Button.tsx"
import { CopyButton } from "../parts/Copy.tsx"
import { CodeField } from "../parts/Field.tsx"
import { QrImage } from "../parts/QrImage.tsx"
import { SignedOutPage } from "../parts/SignedOutPage.tsx"
import { Failure, Loading, Trouble } from "../parts/States.tsx"
import { SESSION } from "../session.ts"

export const EnrolmentPage = () => {
  const { data, error, refetch } = useQuery({
    queryKey: ["enrolment"],
    queryFn: () => post("/enrolment"),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false
  })
  return (
    <SignedOutPage
      title="Set up a second factor"
      lead="The portal requires a second factor in addition to your password. Scan the code with an authenticator app."
    >
      {data === undefined ? (
        error === null ? (
          <Loading />
        ) : (
          <Failure error={error} retry={() => void refetch()} />
        )
      ) : (
        <Steps enrolment={data} />
      )}
    </SignedOutPage>
  )
}

const Steps = ({ enrolment: { backupCodes, secret, uri } }: { readonly enrolment: Enrolment }) => {
  const client = useQueryClient()
  const [code, setCode] = useState("")
  const form = useForm(async () => {
    await post("/enrolment/confirm", { code })
    await client.invalidateQueries({ queryKey: SESSION })
  })
  return (
    <form className="form" onSubmit={form.submit}>
      <QrImage text={uri} label="QR code for your authenticator app; the same secret follows as text" />
      <details>
        <summary>Enter the secret manually</summary>
        <p className="text">
          <code>{secret.replaceAll(/(.{4})(?=.)/g, "$1 ")}</code>
          <CopyButton text={secret} what="Secret" />
        </p>
      </details>
      <div className="backup">
        <h2>Backup codes</h2>
        <p className="hint">Each code works once instead of your authenticator. Store them with your passwords: they are shown only now.</p>
        <BackupCodes codes={backupCodes} />
      </div>
      <CodeField label="Code from the app" value={code} onValue={setCode} error={form.wrong["code"]} />
      {form.wrong["code"] === undefined ? <Trouble error={form.error} /> : null}
      <Button kind="main" type="submit" busy={form.busy}>
        I have stored the backup codes
      </Button>
    </form>
  )
}

/** Backup codes, shown only once. */
export const BackupCodes = ({ codes }: { readonly codes: ReadonlyArray<string> }) => (
  <>
    <ul className="codes" aria-label="Backup codes">
      {codes.map((one) => (
        <li key={one}>
          <code>{one}</code>
        </li>
      ))}
    </ul>
    <CopyButton text={codes.join("\n")} what="Backup codes" label="Copy all" />
  </>
)
