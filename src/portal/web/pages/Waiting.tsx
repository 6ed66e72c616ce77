/** The deliveries that wait for a webhook: their number, and an owner's actions on all of them. */
import type { WebhookWithHealth } from "../../../client/index.ts"
import { post } from "../api.ts"
import { Ask } from "../parts/Dialog.tsx"
import { notify } from "../parts/Notices.tsx"
import { useUser } from "../session.ts"

const counted = (count: number) => `${count.toLocaleString("en-US")} ${count === 1 ? "delivery" : "deliveries"}`

/** The number of waiting deliveries, as a subject and its verb. */
export const waiting = (count: number) => `${counted(count)} ${count === 1 ? "waits" : "wait"}`

export const Waiting = ({
  refresh,
  webhook: { health, id, status }
}: {
  readonly webhook: WebhookWithHealth
  readonly refresh: () => Promise<unknown>
}) => {
  const { isOwner } = useUser()
  const count = health.pendingDeliveries
  if (count === 0) return null
  const act = (what: "retry-waiting" | "cancel-waiting", said: string) => async () => {
    await post(`/webhooks/${id}/${what}`)
    await refresh()
    notify(said)
  }
  return (
    <>
      <span className="under">{waiting(count)}</span>
      {isOwner && status === "ACTIVE" ? (
        <Ask
          label="Retry all"
          title={`Retry ${counted(count)} now?`}
          text={
            health.state === "HOLDING"
              ? "The endpoint is down. It is probed now, and if it returns 2xx, all waiting deliveries are sent, oldest first."
              : "All waiting deliveries are sent now, oldest first and a few at a time. Each attempt uses up one attempt of the delivery's retry schedule."
          }
          yes="Retry all"
          act={act("retry-waiting", health.state === "HOLDING" ? "Probing now" : "Retrying all")}
        />
      ) : null}
      {isOwner ? (
        <Ask
          label="Cancel all"
          kind="danger"
          title={`Cancel ${counted(count)}?`}
          text="No further attempts are made. Attempts in progress finish, and a 2xx response still counts as delivered. A recovery can send these events again for 31 days."
          yes="Cancel all"
          danger
          act={act("cancel-waiting", "Canceling all")}
        />
      ) : null}
    </>
  )
}
