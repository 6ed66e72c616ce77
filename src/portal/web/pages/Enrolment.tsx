/** Setting up the second factor: an authenticator app, and backup codes for the day it is lost. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { encode } from "uqr"
import type { Enrolment } from "../../SecondFactor.ts"
import { post } from "../api.ts"
import { SESSION } from "../data.ts"
import { useForm } from "../form.ts"
import { Alone } from "../parts/Alone.tsx"
import { Button } from "../parts/Button.tsx"
import { CopyButton } from "../parts/Copy.tsx"
import { TextField } from "../parts/Field.tsx"
import { Failure, Loading, Trouble } from "../parts/States.tsx"

/** The text as a QR code, black on white in both colour schemes, as cameras expect it. */
const QrCode = ({ label, text }: { readonly text: string; readonly label: string }) => {
  const { data, size } = encode(text, { border: 2 })
  const path = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : []))).join("")
  return (
    <svg className="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shapeRendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}

export const EnrolmentPage = () => {
  const { data, error, refetch } = useQuery({
    queryKey: ["enrolment"],
    queryFn: () => post<Enrolment>("/enrolment"),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false
  })
  return (
    <Alone title="Set up a second factor" lead="Everything here needs one beside your password. Scan the code with an authenticator app.">
      {data === undefined ? (
        error === null ? (
          <Loading />
        ) : (
          <Failure error={error} retry={() => void refetch()} />
        )
      ) : (
        <Steps enrolment={data} />
      )}
    </Alone>
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
      <QrCode text={uri} label="QR code for your authenticator app; the same secret follows as text" />
      <details>
        <summary>Type it in instead</summary>
        <p className="text">
          <code>{secret.replaceAll(/(.{4})(?=.)/g, "$1 ")}</code>
          <CopyButton text={secret} what="Secret" />
        </p>
      </details>
      <div className="backup">
        <h2>Backup codes</h2>
        <p className="hint">Each works once in the place of a code. Keep them where you keep passwords; they are shown this once.</p>
        <BackupCodes codes={backupCodes} />
      </div>
      <TextField
        label="The code that the app shows now"
        autoComplete="one-time-code"
        inputMode="numeric"
        className="code"
        required
        value={code}
        onValue={setCode}
        error={form.wrong["code"]}
      />
      {form.wrong["code"] === undefined ? <Trouble error={form.error} /> : null}
      <Button kind="main" type="submit" busy={form.busy}>
        I have kept the backup codes, go on
      </Button>
    </form>
  )
}

/** Backup codes in the one moment in which they can be seen. */
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
