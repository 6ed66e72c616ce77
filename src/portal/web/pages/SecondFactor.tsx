/** The second step of signing in. */
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { postSignIn as post } from "../api.ts"
import { useForm } from "../form.ts"
import { Button } from "../parts/Button.tsx"
import { CodeField } from "../parts/Field.tsx"
import { attempt } from "../parts/Notices.tsx"
import { SignedOutPage } from "../parts/SignedOutPage.tsx"
import { Trouble } from "../parts/States.tsx"
import { SESSION } from "../session.ts"

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
    <SignedOutPage title="Second factor" lead="Enter the current code of your authenticator app.">
      <form className="form" onSubmit={form.submit}>
        <CodeField label="Code" hint="Six digits, or one of your backup codes." value={code} onValue={setCode} error={form.wrong["code"]} />
        {form.wrong["code"] === undefined ? <Trouble error={form.error} /> : null}
        <Button kind="main" type="submit" busy={form.busy}>
          Continue
        </Button>
        <Button kind="quiet" onClick={attempt(leave)}>
          Use another account
        </Button>
      </form>
    </SignedOutPage>
  )
}
