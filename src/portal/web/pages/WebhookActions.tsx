/** What an owner can do with a webhook. */
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useNavigate } from "react-router"
import type { PingResult, Webhook } from "../../../webhooks/Webhook.ts"
import { patch, post, postOnce, remove } from "../api.ts"
import { useSurroundings } from "../data.ts"
import { Button, LinkButton } from "../parts/Button.tsx"
import { Code } from "../parts/Code.tsx"
import { Ask, Dialog } from "../parts/Dialog.tsx"
import { notify } from "../parts/Notices.tsx"
import { Secret } from "../parts/Secret.tsx"
import { Trouble } from "../parts/States.tsx"
import { Result } from "../parts/Status.tsx"
import { Countdown, took } from "../parts/Time.tsx"

interface Rotated {
  readonly secret: string
  readonly previousSecretExpiresAt: string
}

export const WebhookActions = ({ refresh, webhook }: { readonly webhook: Webhook; readonly refresh: () => Promise<unknown> }) => {
  const client = useQueryClient()
  const navigate = useNavigate()
  const { data: around } = useSurroundings()
  const [rotated, setRotated] = useState<Rotated | null>(null)
  const path = `/v1/webhooks/${webhook.id}`
  const name = webhook.description === "" ? "this webhook" : webhook.description
  const hours = Math.round((around?.rotationGraceSeconds ?? 86_400) / 360) / 10
  const setStatus = async (status: "ACTIVE" | "DISABLED") => {
    await patch(path, { status })
    await refresh()
    notify(status === "ACTIVE" ? "Enabled" : "Disabled")
  }
  return (
    <>
      <div className="actions bar">
        <Ping webhookId={webhook.id} />
        <LinkButton to={`/webhooks/${webhook.id}/edit`}>Edit</LinkButton>
        <Ask
          trigger={<Button>Rotate secret</Button>}
          title="Rotate the signing secret?"
          text={`You are shown a new secret, once. The one before signs along for ${hours} hours, so that your endpoint can change over without a gap.`}
          yes="Rotate"
          act={async () => {
            setRotated(await postOnce<Rotated>(`${path}/rotate-secret`, crypto.randomUUID()))
            await refresh()
          }}
        />
        {webhook.status === "ACTIVE" ? (
          <Ask
            trigger={<Button>Disable</Button>}
            title={`Disable ${name}?`}
            text="Nothing is sent to it any more, and what waits is canceled. Events that happen meanwhile are in the log, but are not sent later by themselves."
            yes="Disable"
            act={() => setStatus("DISABLED")}
          />
        ) : (
          <Ask
            trigger={<Button kind="main">Enable</Button>}
            title={`Enable ${name}?`}
            text="Events are sent to it again from now on."
            yes="Enable"
            act={() => setStatus("ACTIVE")}
          />
        )}
        <Ask
          trigger={<Button kind="danger">Delete</Button>}
          title={`Delete ${name}?`}
          text="What waits is canceled. Its deliveries stay readable with their events. This cannot be undone."
          yes="Delete the webhook"
          danger
          act={async () => {
            await remove(path)
            await navigate("/webhooks")
            client.removeQueries({ queryKey: [path] })
            await client.invalidateQueries({ queryKey: ["/v1/webhooks"] })
            notify("Deleted")
          }}
        />
      </div>
      <Dialog title="New signing secret" open={rotated !== null} onClose={() => setRotated(null)} wide>
        {rotated === null ? null : (
          <Secret title="Secret" what="Signing secret" secret={rotated.secret}>
            <p className="hint">
              The one before signs along for <Countdown until={rotated.previousSecretExpiresAt} />.
            </p>
          </Secret>
        )}
        <div className="actions end">
          <Button kind="main" onClick={() => setRotated(null)}>
            I have stored it
          </Button>
        </div>
      </Dialog>
    </>
  )
}

/** Sends a signed test event, and shows what came of it. */
const Ping = ({ webhookId }: { readonly webhookId: string }) => {
  const [open, setOpen] = useState(false)
  const [result, setResult] = useState<PingResult | null>(null)
  const [error, setError] = useState<unknown>(null)
  const ping = async () => {
    setOpen(true)
    setResult(null)
    setError(null)
    await post<PingResult>(`/v1/webhooks/${webhookId}/ping`).then(setResult, setError)
  }
  return (
    <>
      <Button onClick={() => void ping()}>Send a ping</Button>
      <Dialog title="Ping" lead="A signed test event, sent now; it is not in the log." open={open} onClose={() => setOpen(false)}>
        <div aria-live="polite">
          <Trouble error={error} />
          {result === null ? (
            error === null ? (
              <p className="hint">Waiting for your endpoint…</p>
            ) : null
          ) : (
            <>
              <p className="outcome">
                <Result result={result.result} httpStatus={result.httpStatus} />
                <span>{result.success ? "Your endpoint took it." : "Your endpoint did not take it."}</span>
                <span className="digits">{took(result.latencyMs)}</span>
              </p>
              {result.bodySnippet === null || result.bodySnippet === "" ? null : (
                <Code title="Beginning of the answer" text={result.bodySnippet} />
              )}
            </>
          )}
        </div>
        <div className="actions end">
          <Button disabled={result === null && error === null} onClick={() => void ping()}>
            Once more
          </Button>
          <Button kind="main" onClick={() => setOpen(false)}>
            Close
          </Button>
        </div>
      </Dialog>
    </>
  )
}
