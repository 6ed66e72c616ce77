/** Asks for the second factor for one action: a code of the authenticator, a backup code, or a passkey. */
import { startAuthentication } from "@simplewebauthn/browser"
import { useQuery } from "@tanstack/react-query"
import { Fingerprint } from "lucide-react"
import { type FormEvent, useState } from "react"
import { get, post } from "../api.ts"
import { passkeyProblem, passkeysPossible } from "../passkeys.ts"
import { Button } from "./Button.tsx"
import { Dialog } from "./Dialog.tsx"
import { CodeField } from "./Field.tsx"
import { Trouble } from "./States.tsx"

/** Proof of the second factor. */
export interface Confirmation {
  readonly code?: string
  readonly passkey?: unknown
}

export interface ConfirmProps {
  readonly title: string
  readonly text: string
  readonly yes: string
  readonly open: boolean
  readonly onClose: () => void
  /** Runs the confirmed action; its error is shown here unless it is not about the confirmation. */
  readonly act: (confirmation: Confirmation) => Promise<unknown>
}

export const Confirm = ({ act, onClose, open, text, title, yes }: ConfirmProps) => {
  const [code, setCode] = useState("")
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const { data: passkeys } = useQuery({
    queryKey: ["/passkeys"],
    queryFn: () => get("/passkeys"),
    enabled: open && passkeysPossible()
  })
  const run = async (confirm: () => Promise<Confirmation>) => {
    setBusy(true)
    setError(null)
    try {
      await act(await confirm())
      onClose()
    } catch (failure) {
      setError(failure)
    } finally {
      setCode("")
      setBusy(false)
    }
  }
  const withCode = (event: FormEvent) => {
    event.preventDefault()
    void run(async () => ({ code }))
  }
  const withPasskey = () =>
    run(async () => {
      const { challengeId, options } = await post("/confirmation/passkey")
      const response = await startAuthentication({ optionsJSON: options }).catch((failure) => {
        throw passkeyProblem(failure)
      })
      return { passkey: { challengeId, response } }
    })
  return (
    <Dialog title={title} lead={text} open={open} onClose={onClose}>
      <form onSubmit={withCode} className="form">
        <CodeField
          label="Authenticator code"
          hint="Six digits that you have not used yet, or a backup code."
          value={code}
          onValue={setCode}
        />
        <Trouble error={error} />
        <div className="actions end">
          {(passkeys?.data.length ?? 0) > 0 ? (
            <Button onClick={withPasskey} disabled={busy}>
              <Fingerprint aria-hidden size={16} /> Use a passkey
            </Button>
          ) : null}
          <Button kind="main" type="submit" busy={busy} disabled={code.trim() === ""}>
            {yes}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
