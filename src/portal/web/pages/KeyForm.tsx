/**
 * Creating and editing an API key. A key is created, and can do more than before, with a fresh confirmation of the second
 * factor; its secret is shown once.
 */
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useNavigate, useParams } from "react-router"
import type { ApiKey } from "../../../credentials/ApiKeys.ts"
import { ApiProblem, patch, post } from "../api.ts"
import { type Surroundings, useOne, useSurroundings } from "../data.ts"
import { useForm } from "../form.ts"
import { Button, LinkButton } from "../parts/Button.tsx"
import { Code } from "../parts/Code.tsx"
import { Confirm, type Confirmation } from "../parts/Confirm.tsx"
import { notify } from "../parts/Notices.tsx"
import { Page } from "../parts/Page.tsx"
import { Secret } from "../parts/Secret.tsx"
import { Failure, Loading, Trouble } from "../parts/States.tsx"
import { bodyOf, type Draft, draftOf, emptyDraft, KeyFields } from "./KeyFields.tsx"

const back = ["/keys", "API keys"] as const

export const NewKeyPage = () => {
  const around = useSurroundings()
  const [created, setCreated] = useState<(ApiKey & { readonly secret: string }) | null>(null)
  if (created !== null) return <Created created={created} />
  return (
    <Page title="New API key" back={back} lead="You confirm your second factor at the end, for this very key.">
      {around.data === undefined ? (
        around.error === null ? (
          <Loading />
        ) : (
          <Failure error={around.error} retry={() => void around.refetch()} />
        )
      ) : (
        <Create around={around.data} onCreated={setCreated} />
      )}
    </Page>
  )
}

type Fresh = ApiKey & { readonly secret: string }

const Create = ({ around, onCreated }: { readonly around: Surroundings; readonly onCreated: (key: Fresh) => void }) => {
  const client = useQueryClient()
  const [draft, setDraft] = useState<Draft>(emptyDraft)
  const [confirming, setConfirming] = useState(false)
  const [refusal, setRefusal] = useState<ApiProblem | null>(null)
  const act = async (confirmation: Confirmation) => {
    try {
      const created = await post<Fresh>("/keys", { ...bodyOf(draft), confirmation })
      await client.invalidateQueries({ queryKey: ["/keys"] })
      onCreated(created)
    } catch (error) {
      // What is wrong with the key is told beside the key; the confirmation was not used up.
      if (!(error instanceof ApiProblem) || error.code !== "invalid_body") throw error
      setRefusal(error)
    }
  }
  return (
    <form
      className="form wide"
      onSubmit={(event) => {
        event.preventDefault()
        setRefusal(null)
        setConfirming(true)
      }}
    >
      <KeyFields draft={draft} onDraft={setDraft} around={around} wrong={refusal?.fields ?? {}} />
      <Trouble error={refusal} />
      <div className="actions">
        <Button kind="main" type="submit">
          Create the key
        </Button>
        <LinkButton to="/keys">Leave</LinkButton>
      </div>
      <Confirm
        title="Confirm that it is you"
        text="A key can read custody data in your name, so your second factor is asked for again."
        yes="Create the key"
        open={confirming}
        onClose={() => setConfirming(false)}
        act={act}
      />
    </form>
  )
}

const Created = ({ created }: { readonly created: Fresh }) => {
  const path = created.scopes.includes("vault:read")
    ? "/v1/vaults"
    : created.scopes.includes("webhook:read")
      ? "/v1/webhooks"
      : "/v1/openapi.json"
  return (
    <Page title="Your new key" heading={created.label === "" ? "Your new key" : `Your new key: ${created.label}`} back={back}>
      <Secret title="Secret" what="Secret" secret={created.secret}>
        <Code title="Try it" text={`export KEY='…the secret…'\ncurl -s -H "Authorization: Bearer $KEY" ${location.origin}${path}`} />
      </Secret>
      <LinkButton kind="main" to="/keys">
        I have stored it
      </LinkButton>
    </Page>
  )
}

export const EditKeyPage = () => {
  const { id } = useParams()
  const keys = useOne<{ readonly data: ReadonlyArray<ApiKey> }>("/keys")
  const around = useSurroundings()
  const key = keys.data?.data.find((one) => one.id === id)
  const error = keys.error ?? around.error
  if (key === undefined || around.data === undefined) {
    const gone = keys.data !== undefined && key === undefined ? new ApiProblem(404, "not_found", "You have no such key.") : error
    return (
      <Page title="API key" back={back}>
        {gone === null ? <Loading /> : <Failure error={gone} />}
      </Page>
    )
  }
  return <Edit apiKey={key} around={around.data} />
}

const Edit = ({ apiKey: key, around }: { readonly apiKey: ApiKey; readonly around: Surroundings }) => {
  const client = useQueryClient()
  const navigate = useNavigate()
  const [draft, setDraft] = useState<Draft>(() => draftOf(key))
  const [confirming, setConfirming] = useState(false)
  const save = async (confirmation: Confirmation) => {
    await patch(`/keys/${key.id}`, { ...bodyOf(draft), confirmation })
    await client.invalidateQueries({ queryKey: ["/keys"] })
    notify("Saved")
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
      lead="Changes work from the next request on. The secret stays; to replace it, create a new key and revoke this one."
    >
      <form className="form wide" onSubmit={form.submit}>
        <KeyFields draft={draft} onDraft={setDraft} around={around} wrong={form.wrong} />
        <Trouble error={form.error} />
        <div className="actions">
          <Button kind="main" type="submit" busy={form.busy}>
            Save
          </Button>
          <LinkButton to="/keys">Leave</LinkButton>
        </div>
      </form>
      <Confirm
        title="Confirm that it is you"
        text="With this change the key can do more than before, so your second factor is asked for again."
        yes="Save the key"
        open={confirming}
        onClose={() => setConfirming(false)}
        act={save}
      />
    </Page>
  )
}
