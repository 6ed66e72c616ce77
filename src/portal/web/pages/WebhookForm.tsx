/** Creates and edits a webhook. */
import { useQueryClient } from "@tanstack/react-query"
import { ShieldAlert } from "lucide-react"
import { useRef, useState } from "react"
import { useNavigate, useParams } from "react-router"
import type { CreateWebhook, Webhook, WebhookWithSecret } from "../../../client/index.ts"
import type { PortalContext } from "../../server/PortalApi.ts"
import { ApiProblem, patch, postOnce } from "../api.ts"
import { useOne, usePortalContext } from "../data.ts"
import { useForm } from "../form.ts"
import { Button, LinkButton } from "../parts/Button.tsx"
import { Confirm, type Confirmation } from "../parts/Confirm.tsx"
import { notify } from "../parts/Notices.tsx"
import { Page } from "../parts/Page.tsx"
import { Empty, Failure, Loading, Trouble } from "../parts/States.tsx"
import { useUser } from "../session.ts"
import { WebhookCreated } from "./WebhookCreated.tsx"
import { type Draft, WebhookFields } from "./WebhookFields.tsx"
import { Preview } from "./WebhookPreview.tsx"

const back = ["/webhooks", "Webhooks"] as const

/** A form whose action may require the second factor; the service asks for it after all other checks. */
const useConfirmedForm = (act: (confirmation?: Confirmation) => Promise<void>) => {
  const [confirming, setConfirming] = useState(false)
  const form = useForm(async () => {
    try {
      await act()
    } catch (error) {
      if (!(error instanceof ApiProblem) || error.code !== "second_factor_required") throw error
      setConfirming(true)
    }
  })
  return { form, confirming, stopConfirming: () => setConfirming(false) }
}

export const NewWebhookPage = () => {
  const around = usePortalContext()
  const { email, isOwner } = useUser()
  const [created, setCreated] = useState<WebhookWithSecret | null>(null)
  if (created !== null) return <WebhookCreated webhook={created} />
  return (
    <Page title="New webhook" back={back}>
      {!isOwner ? (
        <Empty icon={ShieldAlert} title="Owners manage webhooks">
          <p>Ask an owner of your organization to create it.</p>
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

/** The body of a creation: nothing is stored yet, and what is empty is left out. */
const creationOf = ({ headers, oauth, ...draft }: Draft): CreateWebhook => ({
  ...draft,
  headers: headers.map(({ name, value }) => ({ name, value: value ?? "" })),
  oauth:
    oauth === null
      ? undefined
      : { ...oauth, clientSecret: oauth.clientSecret ?? "", scope: oauth.scope ?? undefined, audience: oauth.audience ?? undefined }
})

const Create = ({
  around,
  email,
  onCreated
}: {
  readonly around: PortalContext
  readonly email: string
  readonly onCreated: (made: WebhookWithSecret) => void
}) => {
  const client = useQueryClient()
  const [draft, setDraft] = useState<Draft>({
    url: "",
    description: "",
    entityIds: around.entities.length === 1 ? around.entities.map(({ id }) => id) : [],
    eventKinds: ["transaction.confirmed"],
    vaultIds: null,
    notificationEmail: email,
    headers: [],
    oauth: null
  })
  // A request whose response was lost is repeated with the same key: there is one webhook, and its secret is shown.
  const once = useRef({ body: "", key: "" })
  const create = async (confirmation?: Confirmation) => {
    const body = JSON.stringify(draft)
    if (once.current.body !== body) once.current = { body, key: crypto.randomUUID() }
    const made = await postOnce("/v1/webhooks", once.current.key, creationOf(draft), confirmation)
    await client.invalidateQueries({ queryKey: ["/v1/webhooks"] })
    onCreated(made)
  }
  const { confirming, form, stopConfirming } = useConfirmedForm(create)
  return (
    <>
      <form className="form wide" onSubmit={form.submit}>
        <WebhookFields draft={draft} onDraft={setDraft} around={around} wrong={form.wrong} stored={{ headers: [], oauth: null }} fresh />
        <Preview draft={draft} />
        <Trouble error={form.error} />
        <div className="actions">
          <Button kind="main" type="submit" busy={form.busy}>
            Create webhook
          </Button>
          <LinkButton to="/webhooks">Cancel</LinkButton>
        </div>
      </form>
      <Confirm
        title="Confirm it's you"
        text="Events will be sent to this URL, so confirm your second factor."
        yes="Create webhook"
        open={confirming}
        onClose={stopConfirming}
        act={create}
      />
    </>
  )
}

export const EditWebhookPage = () => {
  const { id = "" } = useParams()
  const webhook = useOne(`/v1/webhooks/${id}`)
  const around = usePortalContext()
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

const Edit = ({ around, webhook }: { readonly webhook: Webhook; readonly around: PortalContext }) => {
  const client = useQueryClient()
  const navigate = useNavigate()
  const [draft, setDraft] = useState<Draft>(webhook)
  const save = async (confirmation?: Confirmation) => {
    const { description, eventKinds, headers, oauth, url, vaultIds } = draft
    await patch(`/v1/webhooks/${webhook.id}`, { description, eventKinds, headers, oauth, url, vaultIds }, confirmation)
    await client.invalidateQueries({ queryKey: [`/v1/webhooks/${webhook.id}`] })
    notify("Changes saved")
    await navigate(`/webhooks/${webhook.id}`)
  }
  const { confirming, form, stopConfirming } = useConfirmedForm(save)
  return (
    <Page title="Edit webhook" back={[`/webhooks/${webhook.id}`, webhook.description === "" ? "Webhook" : webhook.description]}>
      <form className="form wide" onSubmit={form.submit}>
        <WebhookFields draft={draft} onDraft={setDraft} around={around} wrong={form.wrong} stored={webhook} fresh={false} />
        <Trouble error={form.error} />
        <div className="actions">
          <Button kind="main" type="submit" busy={form.busy}>
            Save changes
          </Button>
          <LinkButton to={`/webhooks/${webhook.id}`}>Cancel</LinkButton>
        </div>
      </form>
      <Confirm
        title="Confirm it's you"
        text="Events will be sent to another URL, so confirm your second factor."
        yes="Save webhook"
        open={confirming}
        onClose={stopConfirming}
        act={save}
      />
    </Page>
  )
}
