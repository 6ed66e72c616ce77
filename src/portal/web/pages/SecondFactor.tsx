/** The second step of signing in. */
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { post } from "../api.ts"
import { SESSION } from "../data.ts"
import { useForm } from "../form.ts"
import { Alone } from "../parts/Alone.tsx"
import { Button } from "../parts/Button.tsx"
import { TextField } from "../parts/Field.tsx"
import { attempt } from "../parts/Notices.tsx"
import { Trouble } from "../parts/States.tsx"

export const SecondFactorPage = () => {
  const client = useQueryClient()
  const [code, setCode] = useState("")
  const form = useForm(async () => {
    await post("/sign-in/second-factor", { code })
    await client.invalidateQueries({ queryKey: SESSION })
  })
  const leave = async () => {
    await post("/sign-out")
    await client.invalidateQueries({ queryKey: SESSION })
  }
  return (
    <Alone title="Second factor" lead="Enter the code that your authenticator app shows now.">
      <form className="form" onSubmit={form.submit}>
        <TextField
          label="Code"
          hint="Six digits, or one of your backup codes."
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
          Go on
        </Button>
        <Button kind="quiet" onClick={attempt(leave)}>
          Sign in as somebody else
        </Button>
      </form>
    </Alone>
  )
}
