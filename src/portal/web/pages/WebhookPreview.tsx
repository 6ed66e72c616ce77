/** What the webhook in the form would have received in the last 31 days. C-7. */
import { useEffect, useState } from "react"
import { Link } from "react-router"
import type { WebhookPreview } from "../../../client/index.ts"
import { post } from "../api.ts"
import { Button } from "../parts/Button.tsx"
import { Trouble } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"
import type { Draft } from "./WebhookFields.tsx"

export const Preview = ({ draft: { entityIds, eventKinds, vaultIds } }: { readonly draft: Draft }) => {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const [found, setFound] = useState<WebhookPreview | null>(null)
  const asked = JSON.stringify({ entityIds, eventKinds, vaultIds })
  // biome-ignore lint/correctness/useExhaustiveDependencies: clears the result when the request changes
  useEffect(() => setFound(null), [asked])
  const look = async () => {
    setBusy(true)
    setError(null)
    try {
      setFound(await post("/v1/webhooks/preview", JSON.parse(asked)))
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <div className="preview">
      <Button busy={busy} onClick={() => void look()}>
        What would it have received?
      </Button>
      <Trouble error={error} />
      <div role="status">{found === null ? null : <Found found={found} />}</div>
    </div>
  )
}

const Found = ({ found: { byKind, count, countedUpTo, newest } }: { readonly found: WebhookPreview }) => (
  <>
    <p>
      {count >= countedUpTo
        ? `${countedUpTo.toLocaleString()} events or more`
        : count === 1
          ? "1 event"
          : `${count.toLocaleString()} events`}{" "}
      in the last 31 days
      {count === 0
        ? "."
        : `: ${Object.entries(byKind)
            .filter(([, events]) => events > 0)
            .map(([kind, events]) => `${events.toLocaleString()} ${kind}`)
            .join(", ")}.`}
    </p>
    {newest.length === 0 ? null : (
      <ul aria-label="Newest events">
        {newest.map(({ id, kind, occurredAt }) => (
          <li key={id} className="under">
            <Link to={`/events/${id}`}>{kind}</Link> <Time at={occurredAt} />
          </li>
        ))}
      </ul>
    )}
  </>
)
