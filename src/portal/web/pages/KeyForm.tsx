/**
 * Creates and edits an API key. Creating a key, or giving it more access, requires the second factor; the secret is shown
 * once.
 */
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useNavigate, useParams, useSearchParams } from "react-router"
import type { ApiKey } from "../../../access/keys/ApiKeys.ts"
import type { PortalContext } from "../../server/PortalApi.ts"
import { ApiProblem, patch, post } from "../api.ts"
import { useOne, usePortalContext } from "../data.ts"
import { useForm } from "../form.ts"
import { Button, LinkButton } from "../parts/Button.tsx"
import { Code } from "../parts/Code.tsx"
import { Confirm, type Confirmation } from "../parts/Confirm.tsx"
import { Select } from "../parts/Field.tsx"
import { notify } from "../parts/Notices.tsx"
import { Page } from "../parts/Page.tsx"
import { Secret } from "../parts/Secret.tsx"
import { Failure, Loading, Trouble } from "../parts/States.tsx"
import { KeyAccess } from "./KeyAccess.tsx"
import { bodyOf, type Draft, draftOf, emptyDraft, KeyFields } from "./KeyFields.tsx"

const back = ["/keys", "API keys"] as const

type Fresh = ApiKey & { readonly secret: string }

export const NewKeyPage = () => {
  const [search] = useSearchParams()
  const around = usePortalContext()
  const [created, setCreated] = useState<Fresh | null>(null)
  const wanted = search.get("replaces")
  const key = useOne(`/keys/${wanted}`, { enabled: wanted !== null })
  const replaced = key.data?.revokedAt === null ? key.data : undefined
  const error = around.error ?? key.error
  if (created !== null) return <Created created={created} replaced={replaced} />
  return (
    <Page
      title={replaced === undefined ? "New API key" : `Rotate ${replaced.label === "" ? replaced.id : replaced.label}`}
      back={back}
      lead={
        replaced === undefined
          ? "You confirm your second factor when you create the key."
          : "This creates a new key with the same access. The current key keeps working for the time that you choose."
      }
    >
      {around.data === undefined || (wanted !== null && key.data === undefined) ? (
        error === null ? (
          <Loading />
        ) : (
          <Failure error={error} retry={() => void around.refetch()} />
        )
      ) : (
        <Create around={around.data} replaced={replaced} onCreated={setCreated} />
      )}
    </Page>
  )
}

/** How long a rotated key keeps working, in hours. */
const overlaps = [
  ["1", "1 hour"],
  ["24", "24 hours"],
  ["168", "7 days"]
] as const

const HOUR = 3_600_000

interface CreateProps {
  readonly around: PortalContext
  /** The key that is replaced. */
  readonly replaced: ApiKey | undefined
  readonly onCreated: (key: Fresh) => void
}

const Create = ({ around, onCreated, replaced }: CreateProps) => {
  const client = useQueryClient()
  const [draft, setDraft] = useState<Draft>(() => (replaced === undefined ? emptyDraft() : { ...draftOf(replaced), expiry: "365" }))
  const [overlap, setOverlap] = useState("24")
  const [confirming, setConfirming] = useState(false)
  const create = async (confirmation: Confirmation) => {
    const created = await post("/keys", { ...bodyOf(draft), confirmation })
    const until = new Date(Date.now() + Number(overlap) * HOUR).toISOString()
    // Never later: an earlier expiry stays.
    if (replaced !== undefined && (replaced.expiresAt === null || replaced.expiresAt > until))
      client.setQueryData([`/keys/${replaced.id}`], await patch(`/keys/${replaced.id}`, { expiresAt: until }))
    await client.invalidateQueries({ queryKey: ["/keys"] })
    onCreated(created)
  }
  // Sent without the second factor first: the service checks the form before it asks for one.
  const form = useForm(async () => {
    try {
      await create({})
    } catch (error) {
      if (!(error instanceof ApiProblem) || error.code !== "second_factor_required") throw error
      setConfirming(true)
    }
  })
  return (
    <form className="form wide" onSubmit={form.submit}>
      <KeyFields draft={draft} onDraft={setDraft} around={around} wrong={form.wrong} />
      {replaced === undefined ? null : (
        <Select label="The current key expires in" value={overlap} onValue={setOverlap}>
          {overlaps.map(([hours, label]) => (
            <option key={hours} value={hours}>
              {label}
            </option>
          ))}
        </Select>
      )}
      <Trouble error={form.error} />
      <div className="actions">
        <Button kind="main" type="submit" busy={form.busy}>
          Create key
        </Button>
        <LinkButton to="/keys">Cancel</LinkButton>
      </div>
      <Confirm
        title="Confirm it's you"
        text="A key reads custody data on your behalf, so confirm your second factor."
        yes="Create key"
        open={confirming}
        onClose={() => setConfirming(false)}
        act={create}
      />
    </form>
  )
}

const Created = ({ created, replaced }: { readonly created: Fresh; readonly replaced: ApiKey | undefined }) => {
  const path = created.scopes.includes("vault:read")
    ? "/v1/vaults"
    : created.scopes.includes("webhook:read")
      ? "/v1/webhooks"
      : "/v1/openapi.json"
  return (
    <Page title="API key created" heading={created.label === "" ? "API key created" : `API key created: ${created.label}`} back={back}>
      <Secret title="Secret" what="Secret" secret={created.secret}>
        <Code
          title="Try it"
          text={`export CUSTODY_URL=${location.origin} CUSTODY_API_KEY='…the secret…'\ncurl -s -H "Authorization: Bearer $CUSTODY_API_KEY" "$CUSTODY_URL${path}"`}
        />
      </Secret>
      {replaced === undefined ? null : (
        <p className="note">The previous key keeps working for the time that you chose. Deploy the new one before it expires.</p>
      )}
      <LinkButton kind="main" to="/keys">
        I have stored it
      </LinkButton>
    </Page>
  )
}

export const EditKeyPage = () => {
  const { id = "" } = useParams()
  const key = useOne(`/keys/${id}`)
  const around = usePortalContext()
  const error = key.error ?? around.error
  if (key.data === undefined || around.data === undefined) {
    return (
      <Page title="API key" back={back}>
        {error === null ? <Loading /> : <Failure error={error} />}
      </Page>
    )
  }
  return <Edit apiKey={key.data} around={around.data} />
}

const Edit = ({ apiKey: key, around }: { readonly apiKey: ApiKey; readonly around: PortalContext }) => {
  const client = useQueryClient()
  const navigate = useNavigate()
  const [draft, setDraft] = useState<Draft>(() => draftOf(key))
  const [confirming, setConfirming] = useState(false)
  const save = async (confirmation: Confirmation) => {
    client.setQueryData([`/keys/${key.id}`], await patch(`/keys/${key.id}`, { ...bodyOf(draft), confirmation }))
    await client.invalidateQueries({ queryKey: ["/keys"] })
    notify("Changes saved")
    await navigate("/keys")
  }
  const form = useForm(async () => {
    try {
      await save({})
    } catch (error) {
      if (!(error instanceof ApiProblem) || error.code !== "second_factor_required") throw error
      setConfirming(true)
    }
  })
  return (
    <Page
      title={key.label === "" ? "API key" : key.label}
      back={back}
      lead="Changes apply from the next request on. The secret stays the same; rotate the key to replace it."
    >
      <form className="form wide" onSubmit={form.submit}>
        <KeyFields draft={draft} onDraft={setDraft} around={around} wrong={form.wrong} />
        <Trouble error={form.error} />
        <div className="actions">
          <Button kind="main" type="submit" busy={form.busy}>
            Save changes
          </Button>
          <LinkButton to="/keys">Cancel</LinkButton>
        </div>
      </form>
      {key.revokedAt === null ? <KeyAccess keyId={key.id} /> : null}
      <Confirm
        title="Confirm it's you"
        text="This change gives the key more access, so confirm your second factor."
        yes="Save changes"
        open={confirming}
        onClose={() => setConfirming(false)}
        act={save}
      />
    </Page>
  )
}
