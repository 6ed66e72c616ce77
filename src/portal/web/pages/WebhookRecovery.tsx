/** Recovering missed events: how many there are, starting a recovery, and its progress. */
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { post, postOnce } from "../api.ts"
import { useOne } from "../data.ts"
import { useFew } from "../list.ts"
import { Button } from "../parts/Button.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { notify } from "../parts/Notices.tsx"
import { Segments } from "../parts/Segments.tsx"
import { Trouble } from "../parts/States.tsx"
import { State } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"

const spans = [
  [24, "24 hours"],
  [168, "7 days"],
  [744, "31 days"]
] as const

const listOf = (webhookId: string) => `/v1/webhooks/${webhookId}/recoveries` as const
const counted = (count: number) => count.toLocaleString("en-US")

/** Lets the user choose a period, shows how many events were missed, and starts the recovery. */
export const StartRecovery = ({
  onClose,
  open,
  webhookId
}: {
  readonly webhookId: string
  readonly open: boolean
  readonly onClose: () => void
}) => {
  const client = useQueryClient()
  const [hours, setHours] = useState(24)
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const missed = `/webhooks/${webhookId}/missed?hours=${hours}` as const
  const { data } = useOne(missed, { enabled: open, every: 5_000 })
  const start = async () => {
    if (data === undefined) return
    setBusy(true)
    setError(null)
    try {
      await postOnce(listOf(webhookId), crypto.randomUUID(), { since: data.since })
      notify("Recovery started")
      onClose()
      // The events that were counted are now being sent.
      client.removeQueries({ predicate: ({ queryKey: [path] }) => String(path).startsWith(`/webhooks/${webhookId}/missed`) })
      // The dialog does not wait for this, which a busy service may reject at first.
      await client.invalidateQueries({ queryKey: [listOf(webhookId)] })
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog
      title="Recover missed events"
      lead="Sends every event that this webhook never received: its delivery failed or was canceled, or the webhook was disabled, did not exist or did not subscribe to its kind. New events are sent first."
      open={open}
      onClose={onClose}
    >
      <Segments label="Recorded in the last" choices={spans} chosen={hours} onChosen={setHours} />
      <p aria-live="polite">
        {data === undefined
          ? "Counting…"
          : data.count === 0
            ? data.isAll
              ? "Nothing was missed."
              : "Nothing was missed lately. Older events are too many to count, and will be sent if they were missed."
            : `${data.count >= data.countedUpTo || !data.isAll ? "At least " : ""}${counted(data.count)} ${data.count === 1 ? "event" : "events"} will be sent.`}
      </p>
      <Trouble error={error} />
      <div className="actions end">
        <Button onClick={onClose}>Close</Button>
        <Button kind="main" disabled={busy || data === undefined || (data.isAll && data.count === 0)} onClick={() => void start()}>
          Recover
        </Button>
      </div>
    </Dialog>
  )
}

/** The webhook's running recovery, with an owner's actions on it; nothing if none is running. */
export const RunningRecovery = ({ isOwner, webhookId }: { readonly webhookId: string; readonly isOwner: boolean }) => {
  const client = useQueryClient()
  const [error, setError] = useState<unknown>(null)
  const { data } = useFew(listOf(webhookId), 1, 2_000)
  const recovery = data?.find(({ status }) => status === "RUNNING" || status === "PAUSED")
  if (recovery === undefined) return null
  const { created, delivered, pending } = recovery.progress
  const act = (verb: "pause" | "resume" | "cancel") => async () => {
    setError(null)
    await post(`/v1/webhook-recoveries/${recovery.id}/${verb}`).catch(setError)
    await client.invalidateQueries({ queryKey: [listOf(webhookId)] })
  }
  return (
    <div className="note" aria-live="polite">
      <p>
        Recovery of missed events since <Time at={recovery.since} /> <State value={recovery.status} /> {counted(created)} created,{" "}
        {counted(delivered)} delivered, {counted(pending)} waiting.
      </p>
      <Trouble error={error} />
      {isOwner ? (
        <div className="actions">
          {recovery.status === "RUNNING" ? <Button onClick={() => void act("pause")()}>Pause recovery</Button> : null}
          {recovery.status === "PAUSED" ? <Button onClick={() => void act("resume")()}>Resume recovery</Button> : null}
          <Button onClick={() => void act("cancel")()}>Cancel recovery</Button>
        </div>
      ) : null}
    </div>
  )
}
