/** Sends a signed test event now, and shows the endpoint's response. */
import { Send } from "lucide-react"
import { useState } from "react"
import type { PingResult } from "../../../client/index.ts"
import { post } from "../api.ts"
import { Button } from "../parts/Button.tsx"
import { Code } from "../parts/Code.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { Trouble } from "../parts/States.tsx"
import { Result } from "../parts/Status.tsx"
import { took } from "../parts/Time.tsx"

export const TestEvent = ({ main = false, webhookId }: { readonly webhookId: string; readonly main?: boolean }) => {
  const [open, setOpen] = useState(false)
  const [result, setResult] = useState<PingResult | null>(null)
  const [error, setError] = useState<unknown>(null)
  const send = async () => {
    setOpen(true)
    setResult(null)
    setError(null)
    await post(`/v1/webhooks/${webhookId}/ping`).then(setResult, setError)
  }
  return (
    <>
      <Button kind={main ? "main" : "plain"} onClick={() => void send()}>
        <Send aria-hidden size={15} /> Send a test event
      </Button>
      <Dialog
        title="Test event"
        lead="A signed event of the kind webhook.ping, sent now. It is not recorded in the event log."
        open={open}
        onClose={() => setOpen(false)}
      >
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
                <span>{result.success ? "The endpoint accepted the event" : "The endpoint did not accept the event"}</span>
                <span className="digits">{took(result.latencyMs)}</span>
              </p>
              {result.bodySnippet === null || result.bodySnippet === "" ? null : <Code title="Response body" text={result.bodySnippet} />}
            </>
          )}
        </div>
        <div className="actions end">
          <Button disabled={result === null && error === null} onClick={() => void send()}>
            Send again
          </Button>
          <Button kind="main" onClick={() => setOpen(false)}>
            Close
          </Button>
        </div>
      </Dialog>
    </>
  )
}
