/** The webhooks that the user sees, with how they fare. */
import { Webhook as Icon, Plus } from "lucide-react"
import { Link } from "react-router"
import type { Health, Webhook } from "../../../webhooks/Webhook.ts"
import { useBeside, useList, useSurroundings, useUser } from "../data.ts"
import { LinkButton } from "../parts/Button.tsx"
import { Page } from "../parts/Page.tsx"
import { Rows } from "../parts/Rows.tsx"
import { Empty } from "../parts/States.tsx"
import { State } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"

/** How it stands in a word: disabled, or its health. */
export const WebhookState = ({ health, webhook }: { readonly webhook: Webhook; readonly health: Health | undefined }) =>
  webhook.status === "DISABLED" ? <State value="DISABLED" /> : <State value={health?.state ?? "ACTIVE"} />

const hostOf = (url: string) => {
  const { host, pathname } = new URL(url)
  return `${host}${pathname === "/" ? "" : pathname}`
}

export const WebhooksPage = () => {
  const { isOwner } = useUser()
  const list = useList<Webhook>("/v1/webhooks", {}, { every: 10_000 })
  const { data: around } = useSurroundings()
  const names = new Map(around?.entities.map(({ id, name }) => [id, name]))
  const { data: health } = useBeside<Health>("/webhook-health", list.rows?.map(({ id }) => id) ?? [], 10_000)
  return (
    <Page
      title="Webhooks"
      lead={`Endpoints of yours that are told when something happens.${isOwner ? "" : " Owners of your organization manage them; you see those whose events you may read."}`}
      actions={
        isOwner ? (
          <LinkButton kind="main" to="/webhooks/new">
            <Plus aria-hidden size={16} /> New webhook
          </LinkButton>
        ) : null
      }
    >
      <Rows
        list={list}
        label="Webhooks"
        keyOf={({ id }) => id}
        empty={
          <Empty icon={Icon} title="There are no webhooks">
            <p>
              {isOwner
                ? "Create one, and signed events arrive at your endpoint as they happen."
                : "An owner of your organization can create one."}
            </p>
          </Empty>
        }
        row={(webhook) => (
          <article className="row webhook">
            <div className="what">
              <h2>
                <Link to={`/webhooks/${webhook.id}`}>{webhook.description === "" ? hostOf(webhook.url) : webhook.description}</Link>
              </h2>
              <p className="under">{hostOf(webhook.url)}</p>
              <p className="under">
                {webhook.entityIds.map((id) => names.get(id) ?? id).join(", ")} · {webhook.eventKinds.length}{" "}
                {webhook.eventKinds.length === 1 ? "kind" : "kinds"}
              </p>
            </div>
            <WebhookState webhook={webhook} health={health?.[webhook.id]} />
            <Numbers health={health?.[webhook.id]} />
          </article>
        )}
      />
    </Page>
  )
}

const Numbers = ({ health }: { readonly health: Health | undefined }) => (
  <p className="under when">
    {health === undefined ? (
      "…"
    ) : (
      <>
        {health.delivered24h} delivered, {health.failed24h} failed in 24 h
        <br />
        {health.lastSuccessAt === null ? (
          "No 2xx yet"
        ) : (
          <>
            Last 2xx <Time at={health.lastSuccessAt} as="ago" />
          </>
        )}
      </>
    )}
  </p>
)
