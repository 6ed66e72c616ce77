/** Chooses a password for an account, entered twice. */
import { type ReactNode, useState } from "react"
import { useForm } from "../form.ts"
import { Button } from "./Button.tsx"
import { TextField } from "./Field.tsx"
import { Trouble } from "./States.tsx"

export interface NewPasswordFormProps {
  /** The account's address, for password managers. */
  readonly email: string
  /** Shortest password, in characters. */
  readonly minimum: number
  readonly save: (password: string) => Promise<void>
  /** The label of the button. */
  readonly yes: string
  readonly children?: ReactNode
}

export const NewPasswordForm = ({ children, email, minimum, save, yes }: NewPasswordFormProps) => {
  const [password, setPassword] = useState("")
  const [again, setAgain] = useState("")
  const [differs, setDiffers] = useState(false)
  const form = useForm(async () => {
    setDiffers(password !== again)
    if (password === again) await save(password)
  })
  return (
    <form className="form" onSubmit={form.submit}>
      <input type="text" name="username" autoComplete="username" value={email} readOnly hidden />
      <TextField
        label="Choose a password"
        hint={`At least ${minimum} characters. A few unrelated words make a good one.`}
        type="password"
        autoComplete="new-password"
        minLength={minimum}
        required
        value={password}
        onValue={setPassword}
        error={form.wrong["password"]}
      />
      <TextField
        label="Confirm password"
        type="password"
        autoComplete="new-password"
        required
        value={again}
        onValue={setAgain}
        error={differs && password !== again ? "The passwords do not match." : undefined}
      />
      {Object.keys(form.wrong).length === 0 ? <Trouble error={form.error} /> : null}
      <Button kind="main" type="submit" busy={form.busy}>
        {yes}
      </Button>
      {children}
    </form>
  )
}
