/** Deliveries with their attempts: of a webhook, and of an event. */
import { Send } from "lucide-react"
import { useState } from "react"
import { Link, useSearchParams } from "react-router"
import type { Delivery } from "../../../deliveries/Delivery.ts"
import { post, postOnce } from "../api.ts"
import { useList, useSurroundings, useUser } from "../data.ts"
import { Button } from "../parts/Button.tsx"
import { Id } from "../parts/Copy.tsx"
import { Ask } from "../parts/Dialog.tsx"
import { Select } from "../parts/Field.tsx"
import { attempt, notify } from "../parts/Notices.tsx"
import { Section } from "../parts/Page.tsx"
import { Rows } from "../parts/Rows.tsx"
import { Empty } from "../parts/States.tsx"
import { Result, State } from "../parts/Status.tsx"
import { Time, took } from "../parts/Time.tsx"
import { RequestDialog } from "./Request.tsx"

/** A webhook's deliveries, with filters that the address keeps. */
export const WebhookDeliveries = ({ webhookId }: { readonly webhookId: string }) => {
  const [search, setSearch] = useSearchParams()
  const { data: around } = useSurroundings()
  const [status, kind] = [search.get("status") ?? "", search.get("kind") ?? ""]
  const list = useList<Delivery>(`/v1/webhooks/${webhookId}/deliveries`, { status, kind }, { every: 3_000 })
  const filter = (change: Readonly<Record<string, string>>) =>
    setSearch(
      Object.entries({ status, kind, ...change }).filter(([, value]) => value !== ""),
      { replace: true, preventScrollReset: true }
    )
  return (
    <Section title="Deliveries" lead="Newest first, with each attempt. The list follows what happens.">
      <div className="filters">
        <Select label="Status" value={status} onValue={(value) => filter({ status: value })}>
          <option value="">Any</option>
          {around?.deliveryStatuses.map((one) => (
            <option key={one} value={one}>
              {one.charAt(0) + one.slice(1).toLowerCase()}
            </option>
          ))}
        </Select>
        <Select label="Kind" value={kind} onValue={(value) => filter({ kind: value })}>
          <option value="">Any</option>
          {around?.kinds.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
      </div>
      <Rows
        list={list}
        label="Deliveries"
        keyOf={({ id }) => id}
        empty={
          <Empty icon={Send} title={status === "" && kind === "" ? "Nothing was delivered yet" : "No delivery is like that"}>
            <p>{status === "" && kind === "" ? "The next event that matches shows up here within a second." : "Choose other filters."}</p>
          </Empty>
        }
        row={(delivery) => (
          <DeliveryRow
            delivery={delivery}
            title={delivery.kind}
            link={[`/events/${delivery.eventId}`, "Its event"]}
            refresh={() => list.refetch()}
          />
        )}
      />
    </Section>
  )
}

export interface DeliveryRowProps {
  readonly delivery: Delivery
  /** What tells it from the others of its list. */
  readonly title: string
  readonly link: readonly [to: string, label: string]
  readonly refresh: () => Promise<unknown>
}

const ends: Readonly<Record<string, string>> = {
  EXHAUSTED: "Every attempt of the schedule failed.",
  WEBHOOK_DISABLED: "The webhook was disabled.",
  WEBHOOK_DELETED: "The webhook was deleted.",
  MANUAL: "Somebody canceled it."
}

export const DeliveryRow = ({ delivery, link, refresh, title }: DeliveryRowProps) => {
  const { attempts, createdAt, deliveredAt, failureReason, id, nextAttemptAt, replayedFromDeliveryId, status } = delivery
  const last = attempts.at(-1)
  return (
    <details className="delivery">
      <summary>
        <span className="kind">{title}</span>
        <State value={status} />
        <span className="under">
          {attempts.length === 1 ? "1 attempt" : `${attempts.length} attempts`}
          {last === undefined ? "" : `, ${took(last.latencyMs)}`}
        </span>
        <span className="under when">
          <Time at={createdAt} as="ago" />
        </span>
      </summary>
      <div className="inside">
        <ol className="timeline" aria-label="Attempts">
          {attempts.map((attempt, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: an attempt is its number
            <li key={index}>
              <span className="number">{index + 1}</span>
              <div>
                <p>
                  <Result result={attempt.result} httpStatus={attempt.httpStatus} />{" "}
                  <span className="digits">{took(attempt.latencyMs)}</span> <Time at={attempt.at} />
                </p>
                {attempt.bodySnippet === null || attempt.bodySnippet === "" ? null : <pre className="snippet">{attempt.bodySnippet}</pre>}
              </div>
            </li>
          ))}
          {nextAttemptAt === null ? null : (
            <li className="next">
              <span className="number">{attempts.length + 1}</span>
              <p>
                {Date.parse(nextAttemptAt) <= Date.now() ? (
                  "Now"
                ) : (
                  <span>
                    <Time at={nextAttemptAt} as="ago" />, <Time at={nextAttemptAt} />
                  </span>
                )}
              </p>
            </li>
          )}
        </ol>
        {failureReason === null && deliveredAt === null && replayedFromDeliveryId === null ? null : (
          <p className="under">
            {failureReason === null ? "" : (ends[failureReason] ?? failureReason)}
            {deliveredAt === null ? null : (
              <>
                Delivered <Time at={deliveredAt} />.
              </>
            )}{" "}
            {replayedFromDeliveryId === null ? "" : "Sent again from an earlier delivery."}
          </p>
        )}
        <p className="ids">
          <Id text={id} what="Delivery id" />
          <Link to={link[0]}>{link[1]}</Link>
        </p>
        <DeliveryActions delivery={delivery} refresh={refresh} />
      </div>
    </details>
  )
}

const DeliveryActions = ({
  delivery: { id, nextAttemptAt },
  refresh
}: {
  readonly delivery: Delivery
  readonly refresh: () => Promise<unknown>
}) => {
  const { isOwner } = useUser()
  const [shown, setShown] = useState(false)
  if (!isOwner) return null
  const act = (what: () => Promise<unknown>, said: string) => async () => {
    await what()
    await refresh()
    notify(said)
  }
  return (
    <div className="actions">
      {nextAttemptAt === null ? (
        <Ask
          trigger={<Button>Redeliver</Button>}
          title="Send the event once more?"
          text="A new delivery of the same event, with the webhook's URL and secrets of today. Your endpoint knows the event by its id."
          yes="Redeliver"
          act={act(() => postOnce(`/v1/webhook-deliveries/${id}/redeliver`, crypto.randomUUID()), "Sent again")}
        />
      ) : (
        <>
          <Button onClick={attempt(act(() => post(`/deliveries/${id}/retry-now`), "The next attempt is made now"))}>Retry now</Button>
          <Ask
            trigger={<Button kind="danger">Cancel</Button>}
            title="Cancel the delivery?"
            text="No further attempt is made. An attempt that is under way is finished, and a 2xx still delivers."
            yes="Cancel the delivery"
            danger
            act={act(() => post(`/deliveries/${id}/cancel`), "Canceled")}
          />
        </>
      )}
      <Button kind="quiet" onClick={() => setShown(true)}>
        Request and verification
      </Button>
      <RequestDialog deliveryId={id} open={shown} onClose={() => setShown(false)} />
    </div>
  )
}
