/** One webhook: its health over time, its deliveries, its settings, and an owner's actions. */
import { Tabs } from "radix-ui"
import { lazy, type ReactNode, Suspense, useState } from "react"
import { Link, useParams } from "react-router"
import type { WebhookHealth, WebhookWithHealth } from "../../../client/index.ts"
import type { Traffic } from "../../server/Overview.ts"
import { useBeside, useNames, useOne, usePortalContext } from "../data.ts"
import { useFew } from "../list.ts"
import { unreliable } from "../parts/attempts.ts"
import { Id } from "../parts/Copy.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Segments } from "../parts/Segments.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { left, Time, took, useNow } from "../parts/Time.tsx"
import { useTab } from "../parts/tabs.ts"
import { useUser } from "../session.ts"
import { WebhookDeliveries } from "./Deliveries.tsx"
import { waiting } from "./Waiting.tsx"
import { WebhookActions } from "./WebhookActions.tsx"
import { isFailing, LastFailure, UnreliableLine } from "./WebhookFailure.tsx"
import { RunningRecovery } from "./WebhookRecovery.tsx"
import { WebhookState, webhookName, withoutScheme } from "./Webhooks.tsx"

const Chart = lazy(() => import("../parts/Chart.tsx"))

const back = ["/webhooks", "Webhooks"] as const
const tabs = [
  ["overview", "Overview"],
  ["deliveries", "Deliveries"],
  ["settings", "Settings"]
] as const

export const WebhookPage = () => {
  const { id = "" } = useParams()
  const { isOwner } = useUser()
  const [tab, setTab] = useTab(tabs.map(([name]) => name))
  const found = useOne(`/v1/webhooks/${id}`, { every: 5_000 })
  const traffic = useBeside("/webhook-traffic", [id], 60_000).data?.[id]
  const webhook = found.data
  if (webhook === undefined) {
    return (
      <Page title="Webhook" back={back}>
        {found.error === null ? <Loading /> : <Failure error={found.error} retry={() => void found.refetch()} />}
      </Page>
    )
  }
  return (
    <Page
      title={webhookName(webhook)}
      heading={
        <>
          {webhookName(webhook)} <WebhookState webhook={webhook} health={webhook.health} traffic={traffic} />
        </>
      }
      back={back}
      lead={webhook.description === "" ? undefined : <span className="url">{withoutScheme(webhook.url)}</span>}
      actions={isOwner ? <WebhookActions webhook={webhook} refresh={() => found.refetch()} /> : null}
    >
      <Note webhook={webhook} traffic={traffic} />
      <RunningRecovery webhookId={id} isOwner={isOwner} />
      <Tabs.Root className="tabs" value={tab} onValueChange={setTab}>
        <Tabs.List aria-label="Webhook">
          {tabs.map(([value, label]) => (
            <Tabs.Trigger key={value} value={value}>
              {label}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        <Tabs.Content value="overview">
          <Overview webhook={webhook} />
        </Tabs.Content>
        <Tabs.Content value="deliveries">
          <WebhookDeliveries webhook={webhook} refresh={() => found.refetch()} />
        </Tabs.Content>
        <Tabs.Content value="settings">
          <SettingsTab webhook={webhook} />
        </Tabs.Content>
      </Tabs.Root>
    </Page>
  )
}

const reasons: Readonly<Record<string, string>> = {
  MANUAL: "An owner disabled this webhook.",
  FAILING: "This webhook was disabled because its endpoint kept failing.",
  GONE: "This webhook was disabled because its endpoint returned 410 Gone."
}

/** What needs attention most. */
const Note = ({ traffic, webhook }: { readonly webhook: WebhookWithHealth; readonly traffic: Traffic | undefined }) => {
  const { disabledAt, disabledReason, health, id, previousSecretExpiresAt, status } = webhook
  const { lastFailureAt, lastSuccessAt } = health
  const now = useNow(1_000)
  if (disabledAt !== null)
    return (
      <p className="note">
        {reasons[disabledReason ?? ""] ?? "This webhook is disabled."} Nothing has been sent since <Time at={disabledAt} as="second" />.
      </p>
    )
  if (status === "PAUSED")
    return <p className="note">This webhook is paused. {waiting(health.heldDeliveries)} until it is resumed, for 31 days at most.</p>
  if (health.state === "HOLDING" && health.nextProbeAt !== null)
    return (
      <p className="note">
        The endpoint is down. {waiting(health.heldDeliveries)}, and nothing is lost. Next probe{" "}
        {Date.parse(health.nextProbeAt) <= now ? "now" : `in ${left(health.nextProbeAt, now)}`}.{" "}
        {isFailing(health) ? <LastFailure health={health} webhookId={id} /> : null}
      </p>
    )
  if (isFailing(health))
    return (
      <p className="note">
        <LastFailure health={health} webhookId={id} />
      </p>
    )
  if (unreliable(traffic) !== undefined && lastFailureAt !== null && (lastSuccessAt ?? "") >= lastFailureAt)
    return (
      <p className="note">
        <UnreliableLine traffic={traffic} />, the last one at <Time at={lastFailureAt} as="second" />. Attempts since then succeed. Read the
        failed attempts under Deliveries.
      </p>
    )
  return previousSecretExpiresAt === null || Date.parse(previousSecretExpiresAt) < now ? null : (
    <p className="note">
      The previous secret stays valid for {left(previousSecretExpiresAt, now)}. Deploy the new one to your endpoint before it expires.
    </p>
  )
}

const spans = [
  ["24h", "24 hours"],
  ["7d", "7 days"],
  ["31d", "31 days"]
] as const

const Overview = ({ webhook: { health, id } }: { readonly webhook: WebhookWithHealth }) => {
  const [span, setSpan] = useState("24h")
  const { data } = useOne(`/webhook-traffic?ids=${id}&span=${span}`, { every: 60_000 })
  const traffic = data?.[id]
  return (
    <>
      <HealthNumbers health={health} />
      <Section
        title="Attempts over time"
        lead={health.pendingDeliveries === 0 ? undefined : `${waiting(health.pendingDeliveries)} for an attempt.`}
        actions={<Segments label="Time span" choices={spans} chosen={span} onChosen={setSpan} />}
      >
        {traffic === undefined ? (
          <Loading lines={3} />
        ) : (
          <Suspense fallback={<Loading lines={3} />}>
            <Chart label="Attempts over time" traffic={traffic} />
          </Suspense>
        )}
      </Section>
      <Latency webhookId={id} />
    </>
  )
}

const HealthNumbers = ({ health }: { readonly health: WebhookHealth }) => {
  const facts: ReadonlyArray<readonly [name: string, value: ReactNode, to?: string]> = [
    ["Delivered, 24 h", health.delivered24h, "DELIVERED"],
    ["Failed deliveries, 24 h", health.failed24h, "FAILED"],
    ["Waiting deliveries", health.pendingDeliveries, health.heldDeliveries > 0 ? "HELD" : "PENDING"],
    ["Failed attempts in a row", health.consecutiveFailures],
    ["Last success", health.lastSuccessAt === null ? "None yet" : <Time key="last" at={health.lastSuccessAt} as="ago" />]
  ]
  return (
    <dl className="numbers">
      {facts.map(([name, value, status]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{status === undefined ? value : <Link to={`?show=deliveries&status=${status}`}>{value}</Link>}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Deliveries whose attempts are evaluated. */
const SAMPLE = 100
const percentile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0

/** Recent response times of the endpoint. */
const Latency = ({ webhookId }: { readonly webhookId: string }) => {
  const { data } = useFew(`/v1/webhooks/${webhookId}/deliveries`, SAMPLE, 30_000)
  const latencies = data?.flatMap(({ attempts }) => attempts.map(({ latencyMs }) => latencyMs)).sort((a, b) => a - b) ?? []
  if (latencies.length === 0) return null
  return (
    <p className="under">
      Latency of the latest {latencies.length === 1 ? "attempt" : `${latencies.length} attempts`}: p50{" "}
      <b className="digits">{took(percentile(latencies, 0.5))}</b>, p95 <b className="digits">{took(percentile(latencies, 0.95))}</b>
    </p>
  )
}

const SettingsTab = ({ webhook }: { readonly webhook: WebhookWithHealth }) => {
  const nameOf = useNames()
  const addresses = usePortalContext().data?.webhookSourceAddresses ?? []
  return (
    <Facts
      rows={[
        [
          "URL",
          <span key="url" className="url">
            {webhook.url}
          </span>
        ],
        ...(addresses.length === 0 ? [] : [["Requests come from", addresses.join(", ")] as const]),
        ["Webhook id", <Id key="id" text={webhook.id} what="Webhook id" whole />],
        ["Description", webhook.description === "" ? "None" : webhook.description],
        ["Entities", webhook.entityIds.map(nameOf).join(", ")],
        ["Event kinds", <KindList key="kinds" kinds={webhook.eventKinds} />],
        ["Vault filter", webhook.vaultIds === null ? "None: events of every vault" : webhook.vaultIds.map(nameOf).join(", ")],
        ["Notification e-mail", webhook.notificationEmail],
        ["Headers", webhook.headers.length === 0 ? "None" : webhook.headers.map(({ name }) => name).join(", ")],
        ["Access token", webhook.oauth === null ? "None" : `OAuth client ${webhook.oauth.clientId} at ${webhook.oauth.tokenUrl}`],
        ["Created", <Time key="created" at={webhook.createdAt} />],
        ["Updated", <Time key="updated" at={webhook.updatedAt} />]
      ]}
    />
  )
}

const KindList = ({ kinds }: { readonly kinds: ReadonlyArray<string> }) => (
  <span className="tags">
    {kinds.map((kind) => (
      <code key={kind} className="tag">
        {kind}
      </code>
    ))}
  </span>
)
