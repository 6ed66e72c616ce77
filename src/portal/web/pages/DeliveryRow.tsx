/** A delivery: a row that expands to its attempts and actions. */
import { type ReactNode, useEffect, useRef, useState } from "react"
import { Link, useHref, useLocation } from "react-router"
import type { Delivery } from "../../../client/index.ts"
import { post, postOnce } from "../api.ts"
import { deliveryPath } from "../parts/attempts.ts"
import { Button } from "../parts/Button.tsx"
import { CopyButton, Id } from "../parts/Copy.tsx"
import { Ask } from "../parts/Dialog.tsx"
import { type EventData, EventSummary } from "../parts/EventSummary.tsx"
import { attempt, notify } from "../parts/Notices.tsx"
import { Result, State } from "../parts/Status.tsx"
import { Time, took, useNow } from "../parts/Time.tsx"
import { useUser } from "../session.ts"
import { RequestDialog } from "./RequestDialog.tsx"

export interface DeliveryRowProps {
  readonly delivery: Delivery
  /** What distinguishes it from others in the list. */
  readonly title: string
  /** The data of its event, unless the page shows it already. */
  readonly data: EventData | undefined
  readonly symbolOf: (asset: string) => string
  readonly links: ReactNode
  readonly refresh: () => Promise<unknown>
}

const ends: Readonly<Record<string, string>> = {
  EXHAUSTED: "Every attempt of the schedule failed.",
  WEBHOOK_DISABLED: "Canceled because the webhook was disabled.",
  WEBHOOK_DELETED: "Canceled because the webhook was deleted.",
  EXPIRED: "Canceled: its event left the log of 31 days.",
  MANUAL: "Canceled manually."
}

/** Why a delivery is held: in its row, and in its details. */
const heldWords: Readonly<Record<string, readonly [row: string, details: string]>> = {
  PAUSED: ["paused", "Held: the webhook or its recovery is paused."],
  DOWN: ["endpoint is down", "Held: the endpoint is down and is probed."],
  TURN: ["queued", "Queued: it is sent in its turn."]
}
const heldWordsOf = ({ heldBecause }: Delivery) => heldWords[heldBecause ?? ""]

/** What the page's address names of a delivery: null if it is about another, 0 for the delivery, or the number of an attempt. */
const useNamed = ({ id }: Delivery): number | null => {
  const [named, attemptNumber] = useLocation().hash.slice(1).split(".")
  return named === id ? Number(attemptNumber ?? 0) : null
}

export const DeliveryRow = ({ data, delivery, links, refresh, symbolOf, title }: DeliveryRowProps) => {
  const { attempts, createdAt, id, status } = delivery
  const last = attempts.at(-1)
  const named = useNamed(delivery)
  const address = useHref(deliveryPath(delivery))
  const row = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (named === null || row.current === null) return
    row.current.open = true
    const attempt = row.current.querySelectorAll("li")[named - 1]
    ;(attempt ?? row.current).scrollIntoView({ block: "center" })
  }, [named])
  return (
    <details className="delivery" ref={row}>
      <summary>
        <span className="what">
          <span className="kind">{title}</span>
          {data === undefined ? null : <EventSummary data={data} symbolOf={symbolOf} />}
        </span>
        <State value={status} />
        <span className="under tries">
          {attempts.length === 1 ? "1 attempt" : `${attempts.length} attempts`}
          {status === "HELD" ? `, ${heldWordsOf(delivery)?.[0] ?? "held"}` : last === undefined ? "" : `, ${took(last.latencyMs)}`}
        </span>
        <span className="under when">
          <Time at={createdAt} as="ago" />
        </span>
      </summary>
      <div className="inside">
        <Attempts delivery={delivery} named={named} />
        <End delivery={delivery} />
        <p className="ids">
          <Id text={id} what="Delivery id" />
          <CopyButton text={new URL(address, location.href).href} what="Link to this delivery" label="Copy link" />
          <span className="links">{links}</span>
        </p>
        <DeliveryActions delivery={delivery} refresh={refresh} />
      </div>
    </details>
  )
}

/** What an attempt's detail explains, by its result. */
const causes: Readonly<Record<string, string>> = { auth_error: "No access token", tls_error: "TLS error" }

const Attempts = ({ delivery, named }: { readonly delivery: Delivery; readonly named: number | null }) => {
  const { attempts, nextAttemptAt, status } = delivery
  const now = useNow(1_000)
  return (
    <ol className="timeline" aria-label="Attempts">
      {attempts.map((attempt, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attempts are identified by their number
        <li key={index} aria-current={named === index + 1 ? "location" : undefined}>
          <Link className="number" to={deliveryPath(delivery, index + 1)} aria-label={`Link to attempt ${index + 1}`}>
            {index + 1}
          </Link>
          <div>
            <p>
              <Result result={attempt.result} httpStatus={attempt.httpStatus} /> <span className="digits">{took(attempt.latencyMs)}</span>{" "}
              <Time at={attempt.at} as="second" />
            </p>
            {attempt.detail === null ? null : (
              <p className="under">
                {causes[attempt.result] ?? "The response could not be read"}: {attempt.detail}.
              </p>
            )}
            {attempt.bodySnippet === null || attempt.bodySnippet === "" ? null : <pre className="snippet">{attempt.bodySnippet}</pre>}
          </div>
        </li>
      ))}
      {status === "HELD" ? (
        <li className="next">
          <span className="number">{attempts.length + 1}</span>
          <p>{heldWordsOf(delivery)?.[1] ?? "Held."}</p>
        </li>
      ) : null}
      {nextAttemptAt === null ? null : (
        <li className="next">
          <span className="number">{attempts.length + 1}</span>
          <p>
            {Date.parse(nextAttemptAt) <= now ? (
              "Now"
            ) : (
              <span>
                Next attempt <Time at={nextAttemptAt} as="ago" />, <Time at={nextAttemptAt} as="second" />
              </span>
            )}
          </p>
        </li>
      )}
    </ol>
  )
}

const End = ({ delivery: { deliveredAt, failureReason, replayedFromDeliveryId } }: { readonly delivery: Delivery }) =>
  failureReason === null && deliveredAt === null && replayedFromDeliveryId === null ? null : (
    <p className="under">
      {failureReason === null ? "" : (ends[failureReason] ?? failureReason)}
      {deliveredAt === null ? null : (
        <>
          Delivered <Time at={deliveredAt} as="second" />.
        </>
      )}{" "}
      {replayedFromDeliveryId === null ? "" : "This is a redelivery of an earlier delivery."}
    </p>
  )

/** Statuses of deliveries that wait. */
const waits: ReadonlySet<string> = new Set(["PENDING", "RETRYING", "HELD"])

const DeliveryActions = ({
  delivery: { heldBecause, id, status },
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
      {waits.has(status) ? (
        <>
          {heldBecause === "PAUSED" ? null : (
            <Button onClick={attempt(act(() => post(`/deliveries/${id}/retry-now`), "Retrying now"))}>Retry now</Button>
          )}
          <Ask
            label="Cancel"
            kind="danger"
            title="Cancel this delivery?"
            text="No further attempt is made. An attempt that is in progress finishes, and a 2xx response still counts as delivered."
            yes="Cancel delivery"
            danger
            act={act(() => post(`/deliveries/${id}/cancel`), "Delivery canceled")}
          />
        </>
      ) : (
        <Ask
          label="Redeliver"
          title="Redeliver this event?"
          text="This creates a new delivery of the same event, with the webhook's current URL and secrets. Your endpoint recognizes the event by its id."
          yes="Redeliver"
          act={act(() => postOnce(`/v1/webhook-deliveries/${id}/redeliver`, crypto.randomUUID()), "Redelivery started")}
        />
      )}
      <Button kind="quiet" onClick={() => setShown(true)}>
        Request and verification
      </Button>
      <RequestDialog deliveryId={id} open={shown} onClose={() => setShown(false)} />
    </div>
  )
}
