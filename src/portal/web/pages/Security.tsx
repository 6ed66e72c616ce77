/** Sign-in methods: password, backup codes, passkeys. Every change requires the second factor. */
import { startRegistration } from "@simplewebauthn/browser"
import { useState } from "react"
import { post, remove } from "../api.ts"
import { useOne } from "../data.ts"
import { Button } from "../parts/Button.tsx"
import { Confirm, type Confirmation } from "../parts/Confirm.tsx"
import { Ask, Dialog } from "../parts/Dialog.tsx"
import { TextField } from "../parts/Field.tsx"
import { notify } from "../parts/Notices.tsx"
import { Section } from "../parts/Page.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"
import { passkeyProblem, passkeysPossible } from "../passkeys.ts"
import { useSession } from "../session.ts"
import { BackupCodes } from "./Enrolment.tsx"

export const PasswordSection = () => {
  const { data: session } = useSession()
  const [current, setCurrent] = useState("")
  const [next, setNext] = useState("")
  const [confirming, setConfirming] = useState(false)
  const minimum = session?.passwordMin ?? 12
  const change = async (confirmation: Confirmation) => {
    await post("/password", { current, next, confirmation })
    setCurrent("")
    setNext("")
    notify("Password changed. Your other sessions have ended.")
  }
  return (
    <Section title="Password">
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          setConfirming(true)
        }}
      >
        <TextField label="Current password" type="password" autoComplete="current-password" required value={current} onValue={setCurrent} />
        <TextField
          label="New password"
          hint={`At least ${minimum} characters.`}
          type="password"
          autoComplete="new-password"
          minLength={minimum}
          required
          value={next}
          onValue={setNext}
        />
        <div className="actions">
          <Button type="submit">Change password</Button>
        </div>
      </form>
      <Confirm
        title="Confirm it's you"
        text="Confirm your second factor to change the password. Your other sessions end."
        yes="Change password"
        open={confirming}
        onClose={() => setConfirming(false)}
        act={change}
      />
    </Section>
  )
}

export const BackupCodesSection = () => {
  const left = useOne("/backup-codes")
  const [confirming, setConfirming] = useState(false)
  const [codes, setCodes] = useState<ReadonlyArray<string> | null>(null)
  const renew = async (confirmation: Confirmation) => {
    const { backupCodes } = await post("/backup-codes", { confirmation })
    setCodes(backupCodes)
    await left.refetch()
  }
  return (
    <Section
      title="Backup codes"
      lead={
        left.data === undefined
          ? "Each works once instead of your authenticator."
          : `${left.data.left} left. Each works once instead of your authenticator.`
      }
      actions={<Button onClick={() => setConfirming(true)}>New backup codes</Button>}
    >
      <Confirm
        title="Confirm it's you"
        text="New codes replace your current ones."
        yes="Create new codes"
        open={confirming}
        onClose={() => setConfirming(false)}
        act={renew}
      />
      <Dialog
        title="Your new backup codes"
        lead="They are shown only now. The previous codes no longer work."
        open={codes !== null}
        onClose={() => setCodes(null)}
      >
        <BackupCodes codes={codes ?? []} />
        <div className="actions end">
          <Button kind="main" onClick={() => setCodes(null)}>
            I have stored them
          </Button>
        </div>
      </Dialog>
    </Section>
  )
}

export const PasskeysSection = () => {
  const passkeys = useOne("/passkeys")
  const [name, setName] = useState("")
  const [confirming, setConfirming] = useState(false)
  const add = async (confirmation: Confirmation) => {
    const { challengeId, options } = await post("/passkeys/options", { confirmation })
    const response = await startRegistration({ optionsJSON: options }).catch((error) => {
      throw passkeyProblem(error)
    })
    await post("/passkeys", { name, answer: { challengeId, response } })
    setName("")
    await passkeys.refetch()
    notify("Passkey added")
  }
  const take = (id: string) => async () => {
    await remove(`/passkeys/${id}`)
    await passkeys.refetch()
    notify("Passkey removed")
  }
  return (
    <Section title="Passkeys" lead="A passkey signs you in without password and code, and confirms changes.">
      {passkeys.data === undefined ? (
        passkeys.error === null ? (
          <Loading lines={2} />
        ) : (
          <Failure error={passkeys.error} retry={() => void passkeys.refetch()} />
        )
      ) : passkeys.data.data.length === 0 ? null : (
        <ul className="rows" aria-label="Passkeys">
          {passkeys.data.data.map((one) => (
            <li key={one.id}>
              <article className="row session">
                <div className="what">
                  <h3>{one.name}</h3>
                  <p className="under">
                    Added <Time at={one.createdAt} as="day" />
                  </p>
                </div>
                <p className="under">
                  {one.lastUsedAt === null ? (
                    "Never used"
                  ) : (
                    <>
                      Last used <Time at={one.lastUsedAt} as="ago" />
                    </>
                  )}
                </p>
                <div className="actions">
                  <Ask
                    label="Remove"
                    kind="danger"
                    title={`Remove ${one.name}?`}
                    text="You can no longer sign in with it. Remove it from your device, too."
                    yes="Remove passkey"
                    danger
                    act={take(one.id)}
                  />
                </div>
              </article>
            </li>
          ))}
        </ul>
      )}
      {passkeysPossible() ? (
        <form
          className="form"
          onSubmit={(event) => {
            event.preventDefault()
            setConfirming(true)
          }}
        >
          <TextField
            label="Passkey name"
            hint="For example, the device that stores it."
            maxLength={100}
            required
            value={name}
            onValue={setName}
          />
          <div className="actions">
            <Button type="submit">Add passkey</Button>
          </div>
        </form>
      ) : (
        <p className="hint">This browser cannot use passkeys at this address.</p>
      )}
      <Confirm
        title="Confirm it's you"
        text="Confirm your second factor to add a passkey."
        yes="Continue"
        open={confirming}
        onClose={() => setConfirming(false)}
        act={add}
      />
    </Section>
  )
}
