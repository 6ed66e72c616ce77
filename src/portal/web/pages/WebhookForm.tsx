/** Creating and editing a webhook. */
import { useQueryClient } from "@tanstack/react-query"
import { ShieldAlert } from "lucide-react"
import { useRef, useState } from "react"
import { useNavigate, useParams } from "react-router"
import type { CreatedWebhook, Webhook } from "../../../webhooks/Webhook.ts"
import { patch, postOnce } from "../api.ts"
import { type Surroundings, useOne, useSurroundings, useUser } from "../data.ts"
import { useForm } from "../form.ts"
import { Button, LinkButton } from "../parts/Button.tsx"
import { Choices, TextField } from "../parts/Field.tsx"
import { notify } from "../parts/Notices.tsx"
import { Page } from "../parts/Page.tsx"
import { Secret } from "../parts/Secret.tsx"
import { Empty, Failure, Loading, Trouble } from "../parts/States.tsx"
import { VaultChoice } from "../parts/VaultChoice.tsx"

interface Draft {
  readonly url: string
  readonly description: string
  readonly entityIds: ReadonlyArray<string>
  readonly eventKinds: ReadonlyArray<string>
  readonly vaultIds: ReadonlyArray<string> | null
  readonly notificationEmail: string
}

const back = ["/webhooks", "Webhooks"] as const

export const NewWebhookPage = () => {
  const around = useSurroundings()
  const { email, isOwner } = useUser()
  const [created, setCreated] = useState<CreatedWebhook | null>(null)
  if (created !== null) {
    return (
      <Page title="Your new webhook" back={back} lead={created.url}>
        <Secret title="Signing secret" what="Signing secret" secret={created.secret}>
          <p className="hint">
            Your endpoint verifies with it that a request comes from here. A lost secret cannot be retrieved, only rotated.
          </p>
        </Secret>
        <LinkButton kind="main" to={`/webhooks/${created.id}`}>
          I have stored it
        </LinkButton>
      </Page>
    )
  }
  return (
    <Page title="New webhook" back={back}>
      {!isOwner ? (
        <Empty icon={ShieldAlert} title="Owners manage webhooks">
          <p>Ask an owner of your organization.</p>
        </Empty>
      ) : around.data === undefined ? (
        around.error === null ? (
          <Loading />
        ) : (
          <Failure error={around.error} retry={() => void around.refetch()} />
        )
      ) : (
        <Create around={around.data} email={email} onCreated={setCreated} />
      )}
    </Page>
  )
}

const Create = ({
  around,
  email,
  onCreated
}: {
  readonly around: Surroundings
  readonly email: string
  readonly onCreated: (made: CreatedWebhook) => void
}) => {
  const client = useQueryClient()
  const [draft, setDraft] = useState<Draft>({
    url: "",
    description: "",
    entityIds: around.entities.length === 1 ? around.entities.map(({ id }) => id) : [],
    eventKinds: ["transaction.confirmed"],
    vaultIds: null,
    notificationEmail: email
  })
  // An answer that gets lost is asked for again with the same key: there is one webhook, and its secret is shown.
  const once = useRef({ body: "", key: "" })
  const form = useForm(async () => {
    const body = JSON.stringify(draft)
    if (once.current.body !== body) once.current = { body, key: crypto.randomUUID() }
    const made = await postOnce<CreatedWebhook>("/v1/webhooks", once.current.key, draft)
    await client.invalidateQueries({ queryKey: ["/v1/webhooks"] })
    onCreated(made)
  })
  return (
    <form className="form wide" onSubmit={form.submit}>
      <Fields draft={draft} onDraft={setDraft} around={around} wrong={form.wrong} fresh />
      <Trouble error={form.error} />
      <div className="actions">
        <Button kind="main" type="submit" busy={form.busy}>
          Create the webhook
        </Button>
        <LinkButton to="/webhooks">Leave</LinkButton>
      </div>
    </form>
  )
}

export const EditWebhookPage = () => {
  const { id = "" } = useParams()
  const webhook = useOne<Webhook>(`/v1/webhooks/${id}`)
  const around = useSurroundings()
  const error = webhook.error ?? around.error
  if (webhook.data === undefined || around.data === undefined) {
    return (
      <Page title="Edit webhook" back={back}>
        {error === null ? <Loading /> : <Failure error={error} />}
      </Page>
    )
  }
  return <Edit webhook={webhook.data} around={around.data} />
}

const Edit = ({ around, webhook }: { readonly webhook: Webhook; readonly around: Surroundings }) => {
  const client = useQueryClient()
  const navigate = useNavigate()
  const [draft, setDraft] = useState<Draft>(webhook)
  const form = useForm(async () => {
    const { description, eventKinds, url, vaultIds } = draft
    await patch(`/v1/webhooks/${webhook.id}`, { description, eventKinds, url, vaultIds })
    await client.invalidateQueries({ queryKey: [`/v1/webhooks/${webhook.id}`] })
    notify("Saved")
    await navigate(`/webhooks/${webhook.id}`)
  })
  return (
    <Page title="Edit webhook" back={[`/webhooks/${webhook.id}`, webhook.description === "" ? "Webhook" : webhook.description]}>
      <form className="form wide" onSubmit={form.submit}>
        <Fields draft={draft} onDraft={setDraft} around={around} wrong={form.wrong} fresh={false} />
        <Trouble error={form.error} />
        <div className="actions">
          <Button kind="main" type="submit" busy={form.busy}>
            Save
          </Button>
          <LinkButton to={`/webhooks/${webhook.id}`}>Leave</LinkButton>
        </div>
      </form>
    </Page>
  )
}

interface FieldsProps {
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly around: Surroundings
  readonly wrong: Readonly<Record<string, string>>
  /** Whether it is being created: entities and the address for notices are chosen then. */
  readonly fresh: boolean
}

const Fields = ({ around, draft, fresh, onDraft, wrong }: FieldsProps) => {
  const set = (change: Partial<Draft>) => onDraft({ ...draft, ...change })
  // A list's sentence stands at its field; what is wrong with one of its members, too.
  const of = (field: string) => Object.entries(wrong).find(([name]) => name === field || name.startsWith(`${field}.`))?.[1]
  return (
    <>
      <TextField
        label="URL"
        hint="https, a public host name, port 443 or 8443. It answers 2xx within 10 seconds."
        type="url"
        required
        placeholder="https://hooks.example.com/custody"
        value={draft.url}
        onValue={(url) => set({ url })}
        error={of("url")}
      />
      <TextField
        label="Description"
        hint="For people; empty is fine."
        maxLength={1_000}
        value={draft.description}
        onValue={(description) => set({ description })}
        error={of("description")}
      />
      {fresh ? (
        <Choices
          legend="Entities"
          hint={`The units of your organization whose events it receives. Each can have ${around.activePerEntity} active webhooks.`}
          choices={around.entities.map(({ id, name }) => ({ value: id, label: name }))}
          chosen={draft.entityIds}
          onChosen={(entityIds) => set({ entityIds })}
          error={of("entityIds")}
        />
      ) : null}
      <Choices
        legend="Event kinds"
        hint="It receives what is ticked, and nothing else."
        choices={around.kinds.map(({ name, scope, when }) => ({
          value: name,
          label: name,
          hint: `${when}${scope === "entity" ? ". Passes any vault filter" : ""}`
        }))}
        chosen={draft.eventKinds}
        onChosen={(eventKinds) => set({ eventKinds })}
        error={of("eventKinds")}
      />
      <VaultChoice
        legend="Vault filter"
        all="Events of every vault of these entities"
        some="Only events of these vaults"
        vaults={around.vaults.filter(({ entityId }) => draft.entityIds.includes(entityId))}
        chosen={draft.vaultIds}
        onChosen={(vaultIds) => set({ vaultIds })}
        error={of("vaultIds")}
      />
      {fresh ? (
        <TextField
          label="E-mail address for notices"
          hint="Told when deliveries keep failing, and when the webhook is disabled for it."
          type="email"
          required
          value={draft.notificationEmail}
          onValue={(notificationEmail) => set({ notificationEmail })}
          error={of("notificationEmail")}
        />
      ) : null}
    </>
  )
}
