/** Home: the first day's steps, what needs attention and why, what the vaults hold, and what moved lately. */
import { CircleCheck, TriangleAlert } from "lucide-react"
import type { ReactNode } from "react"
import { Link } from "react-router"
import type { ApiKey } from "../../../access/keys/ApiKeys.ts"
import type { Webhook, WebhookHealth } from "../../../client/index.ts"
import { useBeside } from "../data.ts"
import { useFew } from "../list.ts"
import { expiryOf } from "../parts/expiry.ts"
import { Page, Section } from "../parts/Page.tsx"
import { Sparkline } from "../parts/Sparkline.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Time, useNow } from "../parts/Time.tsx"
import { useUser } from "../session.ts"
import { Holdings, Movements } from "./Portfolio.tsx"
import { waiting } from "./Waiting.tsx"
import { FailureLine, isFailing } from "./WebhookFailure.tsx"
import { WebhookState, webhookName } from "./Webhooks.tsx"

const SHOWN = 8

export const HomePage = () => {
  const { isOwner, name } = useUser()
  const keys = useFew("/keys", 100, 30_000)
  const webhooks = useFew("/v1/webhooks", 100, 15_000)
  const ids = webhooks.data?.map(({ id }) => id) ?? []
  const health = useBeside("/webhook-health", ids, 15_000).data
  if (keys.data === undefined || webhooks.data === undefined) {
    const error = keys.error ?? webhooks.error
    return <Page title="Home">{error === null ? <Loading /> : <Failure error={error} retry={() => void webhooks.refetch()} />}</Page>
  }
  const steps: ReadonlyArray<Step> = [
    {
      done: keys.data.length > 0,
      title: "Create an API key",
      to: "/keys/new",
      text: "It acts on your behalf, with the scopes and vaults that you choose."
    },
    {
      done: keys.data.some(({ lastUsedAt }) => lastUsedAt !== null),
      title: "Make the first call",
      href: "/v1/docs/guides/quick-start",
      text: "The quick start has code for curl, TypeScript, Python and Go."
    },
    ...(isOwner
      ? [
          {
            done: webhooks.data.length > 0,
            title: "Create a webhook",
            to: "/webhooks/new",
            text: "Signed events arrive at your endpoint as they happen."
          },
          {
            done: Object.values(health ?? {}).some(({ lastSuccessAt }) => lastSuccessAt !== null),
            title: "Receive a verified delivery",
            to: webhooks.data[0] === undefined ? "/webhooks" : `/webhooks/${webhooks.data[0].id}`,
            text: "Send a test event, verify its signature, and wait for the first real one."
          }
        ]
      : [])
  ]
  return (
    <Page title="Home" heading={`Hello, ${name.split(" ")[0] ?? name}`}>
      {steps.every(({ done }) => done) ? null : <Checklist steps={steps} />}
      <Attention keys={keys.data} webhooks={webhooks.data} isAll={keys.isAll && webhooks.isAll} health={health} />
      <Holdings />
      <Movements />
      {webhooks.data.length === 0 ? null : <WebhookGlance webhooks={webhooks.data} health={health} />}
    </Page>
  )
}

interface Step {
  readonly done: boolean
  readonly title: string
  readonly text: string
  readonly to?: string
  readonly href?: string
}

const Checklist = ({ steps }: { readonly steps: ReadonlyArray<Step> }) => (
  <Section title="Get started" lead={`${steps.filter(({ done }) => done).length} of ${steps.length} steps done`}>
    <ol className="checklist">
      {steps.map(({ done, href, text, title, to }) => (
        <li key={title} className={done ? "done" : undefined}>
          {done ? <CircleCheck role="img" aria-label="Done" size={20} /> : <span className="ring" role="img" aria-label="To do" />}
          <span>
            {done ? <b>{title}</b> : to === undefined ? <a href={href}>{title}</a> : <Link to={to}>{title}</Link>}
            <small>{text}</small>
          </span>
        </li>
      ))}
    </ol>
  </Section>
)

interface AttentionProps {
  readonly keys: ReadonlyArray<ApiKey>
  readonly webhooks: ReadonlyArray<Webhook>
  /** Whether there are no other webhooks and keys. */
  readonly isAll: boolean
  readonly health: Readonly<Record<string, WebhookHealth>> | undefined
}

interface Item {
  readonly id: string
  readonly to: string
  /** What is wrong, and its cause. */
  readonly what: ReactNode
  /** When it began. */
  readonly since: string | null
}

/** What is wrong with a webhook, if anything. */
const itemOf = (webhook: Webhook, health: WebhookHealth): Item | undefined => {
  const { disabledAt, disabledReason, id, status } = webhook
  const { failed24h, failingSince, heldDeliveries, lastFailureAt } = health
  const [to, name] = [`/webhooks/${id}`, webhookName(webhook)]
  if (status === "DISABLED")
    return disabledReason === "MANUAL"
      ? undefined
      : {
          id,
          to,
          what: `${name} was disabled: ${disabledReason === "GONE" ? "its endpoint returned 410 Gone" : "its endpoint kept failing"}`,
          since: disabledAt
        }
  if (status === "PAUSED")
    return heldDeliveries === 0 ? undefined : { id, to, what: `${name} is paused: ${waiting(heldDeliveries)}`, since: null }
  if (isFailing(health))
    return {
      id,
      to,
      what: (
        <>
          {name}: <FailureLine health={health} />
          {heldDeliveries === 0 ? null : `, ${waiting(heldDeliveries)}`}
        </>
      ),
      since: failingSince
    }
  if (failed24h === 0) return undefined
  return {
    id,
    to: `${to}?show=deliveries&status=FAILED`,
    what: `${name}: ${failed24h} ${failed24h === 1 ? "delivery" : "deliveries"} failed in 24 hours after every attempt of the schedule`,
    since: lastFailureAt
  }
}

const Attention = ({ health, isAll, keys, webhooks }: AttentionProps) => {
  const now = useNow(60_000)
  const items: ReadonlyArray<Item> = [
    ...webhooks.flatMap((webhook): ReadonlyArray<Item> => {
      const its = health?.[webhook.id]
      const item = its === undefined ? undefined : itemOf(webhook, its)
      return item === undefined ? [] : [item]
    }),
    ...keys.flatMap(({ expiresAt, hint, id, label }): ReadonlyArray<Item> => {
      const { state, words } = expiryOf(expiresAt, now)
      return state === "never" || state === "later"
        ? []
        : [
            {
              id,
              to: `/keys/new?replaces=${id}`,
              what: `API key “${label === "" ? hint : label}”: ${words.toLowerCase()}`,
              since: state === "expired" ? expiresAt : null
            }
          ]
    })
  ]
  return (
    <Section title="Needs attention" {...(isAll ? {} : { lead: `Of the newest ${webhooks.length} webhooks and ${keys.length} keys` })}>
      {items.length === 0 ? (
        <p className="calm">
          <CircleCheck aria-hidden size={18} /> Nothing right now
        </p>
      ) : (
        <ul className="rows attention" aria-label="Needs attention">
          {items.map(({ id, since, to, what }) => (
            <li key={id}>
              <Link to={to}>
                <TriangleAlert aria-hidden size={16} />
                <span>{what}</span>
                {since === null ? null : (
                  <span className="under when">
                    <Time at={since} as="ago" />
                  </span>
                )}
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

const WebhookGlance = ({ health, webhooks }: Omit<AttentionProps, "keys" | "isAll">) => {
  const shown = webhooks.slice(0, SHOWN)
  const { data: traffic } = useBeside(
    "/webhook-traffic",
    shown.map(({ id }) => id),
    60_000
  )
  return (
    <Section title="Webhooks, last 24 hours" actions={<Link to="/webhooks">View all</Link>}>
      <ul className="glance">
        {shown.map((webhook) => (
          <li key={webhook.id}>
            <Link to={`/webhooks/${webhook.id}`}>{webhookName(webhook)}</Link>
            <WebhookState webhook={webhook} health={health?.[webhook.id]} traffic={traffic?.[webhook.id]} />
            <Sparkline traffic={traffic?.[webhook.id]} />
            <span className="under">
              {health?.[webhook.id]?.delivered24h ?? "…"} delivered
              {(health?.[webhook.id]?.pendingDeliveries ?? 0) === 0 ? "" : `, ${waiting(health?.[webhook.id]?.pendingDeliveries ?? 0)}`}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
