/** One webhook: how it fares, what it is set to, what can be done with it, and what was delivered. */
import { useParams } from "react-router"
import type { Health, Webhook } from "../../../webhooks/Webhook.ts"
import { useOne, useSurroundings, useUser } from "../data.ts"
import { Id } from "../parts/Copy.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Countdown, Time } from "../parts/Time.tsx"
import { WebhookDeliveries } from "./Deliveries.tsx"
import { WebhookActions } from "./WebhookActions.tsx"
import { WebhookState } from "./Webhooks.tsx"

type WithHealth = Webhook & { readonly health: Health }

const back = ["/webhooks", "Webhooks"] as const

export const WebhookPage = () => {
  const { id = "" } = useParams()
  const { isOwner } = useUser()
  const found = useOne<WithHealth>(`/v1/webhooks/${id}`, { every: 5_000 })
  const { data: around } = useSurroundings()
  const webhook = found.data
  if (webhook === undefined) {
    return (
      <Page title="Webhook" back={back}>
        {found.error === null ? <Loading /> : <Failure error={found.error} retry={() => void found.refetch()} />}
      </Page>
    )
  }
  const entities = new Map(around?.entities.map((one) => [one.id, one.name]))
  const vaults = new Map(around?.vaults.map((one) => [one.id, one.name]))
  return (
    <Page
      title={webhook.description === "" ? "Webhook" : webhook.description}
      back={back}
      lead={<span className="url">{webhook.url}</span>}
      actions={<WebhookState webhook={webhook} health={webhook.health} />}
    >
      <Note webhook={webhook} />
      {isOwner ? <WebhookActions webhook={webhook} refresh={() => found.refetch()} /> : null}
      <HealthNumbers health={webhook.health} />
      <Section title="Settings">
        <Facts
          rows={[
            ["Id", <Id key="id" text={webhook.id} what="Webhook id" whole />],
            ["Entities", webhook.entityIds.map((one) => entities.get(one) ?? one).join(", ")],
            ["Event kinds", <KindList key="kinds" kinds={webhook.eventKinds} />],
            [
              "Vault filter",
              webhook.vaultIds === null ? "None: every vault" : webhook.vaultIds.map((one) => vaults.get(one) ?? one).join(", ")
            ],
            ["Notices go to", webhook.notificationEmail],
            ["Created", <Time key="created" at={webhook.createdAt} />]
          ]}
        />
      </Section>
      <WebhookDeliveries webhookId={id} />
    </Page>
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

const reasons: Readonly<Record<string, string>> = {
  MANUAL: "It was disabled by hand.",
  FAILING: "It was disabled because its endpoint kept failing.",
  GONE: "It was disabled because its endpoint answered 410 Gone."
}

/** What is out of the ordinary with it. */
const Note = ({ webhook: { disabledAt, disabledReason, previousSecretExpiresAt } }: { readonly webhook: WithHealth }) => (
  <>
    {disabledAt === null ? null : (
      <p className="note">
        {reasons[disabledReason ?? ""] ?? "It is disabled."} Since <Time at={disabledAt} /> nothing is sent to it.
      </p>
    )}
    {previousSecretExpiresAt === null || Date.parse(previousSecretExpiresAt) < Date.now() ? null : (
      <p className="note">
        The secret before still signs along for <Countdown until={previousSecretExpiresAt} />. Your endpoint should know the new one by
        then.
      </p>
    )}
  </>
)

const HealthNumbers = ({ health }: { readonly health: Health }) => (
  <dl className="numbers">
    <div>
      <dt>Delivered in 24 h</dt>
      <dd>{health.delivered24h}</dd>
    </div>
    <div>
      <dt>Failed in 24 h</dt>
      <dd>{health.failed24h}</dd>
    </div>
    <div>
      <dt>Waiting</dt>
      <dd>{health.pendingDeliveries}</dd>
    </div>
    <div>
      <dt>Failures in a row</dt>
      <dd>{health.consecutiveFailures}</dd>
    </div>
    <div>
      <dt>Last 2xx</dt>
      <dd className="small">{health.lastSuccessAt === null ? "none yet" : <Time at={health.lastSuccessAt} as="ago" />}</dd>
    </div>
  </dl>
)
