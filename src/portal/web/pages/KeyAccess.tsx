/** What a key can see, and why it cannot see a vault: the key's own response from `GET /v1/credential`. */
import { useState } from "react"
import type { Credential } from "../../../client/index.ts"
import { get } from "../api.ts"
import { useOne } from "../data.ts"
import { useForm } from "../form.ts"
import { Button } from "../parts/Button.tsx"
import { TextField } from "../parts/Field.tsx"
import { Section } from "../parts/Page.tsx"
import { Loading, Trouble } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"

const sentences: Readonly<Record<NonNullable<Credential["vault"]>["because"], string>> = {
  visible: "The key can see this vault.",
  unknown: "There is no such vault, or you do not have the Developer role on it. The service never reveals which.",
  scope: "The key lacks the scope vault:read.",
  allowlist: "The key's vault allowlist does not include this vault."
}

export const KeyAccess = ({ keyId }: { readonly keyId: string }) => {
  const { data } = useOne(`/keys/${keyId}/credential`)
  return (
    <Section title="What this key can see">
      {data === undefined ? (
        <Loading lines={2} />
      ) : (
        <dl className="numbers">
          {(
            [
              ["Vaults where you have the Developer role", data.vaults.role],
              ["Of these, in the key's allowlist", data.vaults.allowlist],
              ["Visible to the key", data.vaults.visible]
            ] as const
          ).map(([name, count]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{count}</dd>
            </div>
          ))}
        </dl>
      )}
      <Why keyId={keyId} />
    </Section>
  )
}

const Why = ({ keyId }: { readonly keyId: string }) => {
  const [vaultId, setVaultId] = useState("")
  const [found, setFound] = useState<Credential["vault"]>(undefined)
  const form = useForm(async () => {
    const { vault } = await get(`/keys/${keyId}/credential?vaultId=${encodeURIComponent(vaultId.trim())}`)
    setFound(vault)
  })
  return (
    <form className="form" onSubmit={form.submit}>
      <TextField
        label="Why is a vault not visible?"
        hint="The id of the vault"
        value={vaultId}
        spellCheck={false}
        required
        onValue={(value) => {
          setVaultId(value)
          setFound(undefined)
        }}
      />
      <Trouble error={form.error} />
      <div className="actions">
        <Button type="submit" busy={form.busy}>
          Check
        </Button>
      </div>
      <p role="status">
        {found === undefined ? null : (
          <>
            <Status tone={found.visible ? "good" : "idle"}>{found.visible ? "Visible" : "Not visible"}</Status> {sentences[found.because]}
          </>
        )}
      </p>
    </form>
  )
}
