/** Sends a signed test event of a chosen kind, and shows the endpoint's response. */
import { Send } from "lucide-react"
import { useState } from "react"
import type { PingResult } from "../../../client/index.ts"
import { post } from "../api.ts"
import { usePortalContext } from "../data.ts"
import { useFew } from "../list.ts"
import { Button } from "../parts/Button.tsx"
import { Code } from "../parts/Code.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { Select } from "../parts/Field.tsx"
import { Trouble } from "../parts/States.tsx"
import { Result } from "../parts/Status.tsx"
import { took } from "../parts/Time.tsx"

/** The kind of a plain test, which is no sample of a recorded event. */
const PING = "webhook.ping"

interface TestEventProps {
  /** The webhook to test; without it, the user chooses one. */
  readonly webhookId?: string
  /** The kind of the event; without it, the user chooses one. */
  readonly kind?: string
  readonly main?: boolean
}

export const TestEvent = ({ kind, main = false, webhookId }: TestEventProps) => {
  const kinds = usePortalContext().data?.kinds ?? []
  const [open, setOpen] = useState(false)
  const [chosen, setChosen] = useState<string>(kind ?? PING)
  const [to, setTo] = useState(webhookId ?? "")
  const [state, setState] = useState<"ready" | "waiting" | PingResult>("ready")
  const [error, setError] = useState<unknown>(null)
  const send = async () => {
    setState("waiting")
    setError(null)
    const eventKind = kinds.find(({ name }) => name === chosen)?.name
    await post(`/v1/webhooks/${to}/ping`, { eventKind }).then(setState, (failure) => {
      setState("ready")
      setError(failure)
    })
  }
  return (
    <>
      <Button kind={main ? "main" : "plain"} onClick={() => setOpen(true)}>
        <Send aria-hidden size={15} /> {kind === undefined ? "Send a test event" : "Send a sample"}
      </Button>
      <Dialog
        title="Test event"
        lead="A signed event, sent now. It is not recorded in the event log."
        open={open}
        onClose={() => setOpen(false)}
      >
        {webhookId === undefined ? <WebhookChoice value={to} onValue={setTo} /> : null}
        <Select
          label="Event kind"
          hint={
            chosen === PING
              ? "A plain test."
              : "A complete event whose ids name nothing and whose amounts are 0, with the header X-Service-Test and data.test."
          }
          value={chosen}
          onValue={setChosen}
        >
          {[PING, ...kinds.map(({ name }) => name)].map((kind) => (
            <option key={kind}>{kind}</option>
          ))}
        </Select>
        <div aria-live="polite">
          <Trouble error={error} />
          {state === "ready" ? null : state === "waiting" ? (
            <p className="hint">Waiting for your endpoint…</p>
          ) : (
            <>
              <p className="outcome">
                <Result result={state.result} httpStatus={state.httpStatus} />
                <span>
                  {state.success
                    ? "The endpoint accepted the event"
                    : state.result === "auth_error"
                      ? "Nothing was sent to the endpoint"
                      : "The endpoint did not accept the event"}
                </span>
                <span className="digits">{took(state.latencyMs)}</span>
              </p>
              {state.detail === null ? null : <p className="hint">Reason: {state.detail}.</p>}
              {state.bodySnippet === null || state.bodySnippet === "" ? null : <Code title="Response body" text={state.bodySnippet} />}
            </>
          )}
        </div>
        <div className="actions end">
          <Button onClick={() => setOpen(false)}>Close</Button>
          <Button kind="main" busy={state === "waiting"} disabled={to === ""} onClick={() => void send()}>
            Send
          </Button>
        </div>
      </Dialog>
    </>
  )
}

const WebhookChoice = (props: { readonly value: string; readonly onValue: (webhookId: string) => void }) => {
  const { data: webhooks } = useFew("/v1/webhooks", 100)
  return (
    <Select label="Webhook" {...(webhooks?.length === 0 ? { hint: "There is no webhook yet." } : {})} {...props}>
      <option value="">Choose one</option>
      {webhooks?.map(({ description, id, url }) => (
        <option key={id} value={id}>
          {description === "" ? url : description}
        </option>
      ))}
    </Select>
  )
}
