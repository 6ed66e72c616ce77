/** The webhooks that the user can see, with their health. */
import { Webhook as Icon, Plus } from "lucide-react"
import { Link } from "react-router"
import type { Webhook, WebhookHealth } from "../../../client/index.ts"
import type { Traffic } from "../../server/Overview.ts"
import { useBeside, useNames } from "../data.ts"
import { useList } from "../list.ts"
import { unreliable } from "../parts/attempts.ts"
import { LinkButton } from "../parts/Button.tsx"
import { Page } from "../parts/Page.tsx"
import { Sparkline } from "../parts/Sparkline.tsx"
import { Empty } from "../parts/States.tsx"
import { State } from "../parts/Status.tsx"
import { Table } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useUser } from "../session.ts"
import { waiting } from "./Waiting.tsx"
import { FailureLine, isFailing, UnreliableLine } from "./WebhookFailure.tsx"

/** Its health in a word: failing, not healthy, while no attempt has succeeded; degraded while many attempts fail, even if later ones succeed. */
const healthWord = (health: WebhookHealth | undefined, traffic: Traffic | undefined): string => {
  if (health === undefined) return "ACTIVE"
  if (health.lastSuccessAt === null && health.state !== "HOLDING") return health.lastFailureAt === null ? "ACTIVE" : "FAILING"
  return health.state === "HEALTHY" && unreliable(traffic) !== undefined ? "DEGRADED" : health.state
}

/** Its state in a word: disabled, or its health. `traffic` is that of the last 24 hours. */
export const WebhookState = ({
  health,
  traffic,
  webhook
}: {
  readonly webhook: Webhook
  readonly health: WebhookHealth | undefined
  readonly traffic: Traffic | undefined
}) => <State value={webhook.status === "ACTIVE" ? healthWord(health, traffic) : webhook.status} />

/** A URL without its scheme. */
export const withoutScheme = (url: string): string => {
  const { host, pathname } = new URL(url)
  return `${host}${pathname === "/" ? "" : pathname}`
}

/** The name of a webhook: its description, or its URL without one. */
export const webhookName = ({ description, url }: Webhook): string => (description === "" ? withoutScheme(url) : description)

export const WebhooksPage = () => {
  const { isOwner } = useUser()
  const list = useList("/v1/webhooks", {}, { every: 10_000 })
  const nameOf = useNames()
  const ids = list.rows?.map(({ id }) => id) ?? []
  const { data: health } = useBeside("/webhook-health", ids, 10_000)
  const { data: traffic } = useBeside("/webhook-traffic", ids, 60_000)
  return (
    <Page
      title="Webhooks"
      lead={
        isOwner
          ? "Your HTTPS endpoints that receive signed events."
          : "HTTPS endpoints that receive signed events. Owners of your organization manage them."
      }
      actions={
        isOwner ? (
          <LinkButton kind="main" to="/webhooks/new">
            <Plus aria-hidden size={16} /> New webhook
          </LinkButton>
        ) : null
      }
    >
      <Table
        list={list}
        label="Webhooks"
        empty={
          <Empty icon={Icon} title="No webhooks yet">
            <p>
              {isOwner
                ? "Create a webhook, and signed events arrive at your endpoint as they happen."
                : "An owner of your organization can create one."}
            </p>
          </Empty>
        }
        columns={[
          {
            label: "Webhook",
            heads: true,
            cell: (webhook) => (
              <>
                <Link className="name long" to={`/webhooks/${webhook.id}`}>
                  {webhookName(webhook)}
                </Link>
                {webhook.description === "" ? null : <span className="under block">{withoutScheme(webhook.url)}</span>}
              </>
            ),
            compare: (a, b) => webhookName(a).localeCompare(webhookName(b))
          },
          {
            label: "Status",
            cell: (webhook) => {
              const its = health?.[webhook.id]
              return (
                <>
                  <WebhookState webhook={webhook} health={its} traffic={traffic?.[webhook.id]} />
                  {its === undefined || webhook.status !== "ACTIVE" ? null : (
                    <span className="under block">
                      {isFailing(its) ? <FailureLine health={its} /> : <UnreliableLine traffic={traffic?.[webhook.id]} />}
                    </span>
                  )}
                </>
              )
            }
          },
          {
            label: "Entities",
            from: "medium",
            cell: ({ entityIds: [first = "", ...others], eventKinds }) => (
              <>
                <span className="whole" title={[first, ...others].map(nameOf).join(", ")}>
                  {nameOf(first)}
                  {others.length === 0 ? null : ` and ${others.length} more`}
                </span>
                <span className="under block">
                  {eventKinds.length} {eventKinds.length === 1 ? "event kind" : "event kinds"}
                </span>
              </>
            )
          },
          {
            label: "Last 24 hours",
            cell: ({ id }) => (
              <span className="traffic">
                <Sparkline traffic={traffic?.[id]} />
                <Numbers health={health?.[id]} />
              </span>
            )
          }
        ]}
      />
    </Page>
  )
}

const Numbers = ({ health }: { readonly health: WebhookHealth | undefined }) => (
  <span className="under">
    {health === undefined ? (
      "…"
    ) : (
      <>
        {health.delivered24h} delivered{health.failed24h === 0 ? "" : `, ${health.failed24h} failed`}
        {health.pendingDeliveries === 0 ? "" : `, ${waiting(health.pendingDeliveries)}`}
        <span className="block">
          {health.lastSuccessAt === null ? (
            "No success yet"
          ) : (
            <>
              Last success <Time at={health.lastSuccessAt} as="ago" />
            </>
          )}
        </span>
      </>
    )}
  </span>
)
