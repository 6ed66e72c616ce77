/** One event: what it is about, its deliveries, and its payload. */
import { useQuery } from "@tanstack/react-query"
import { Send } from "lucide-react"
import type { ReactNode } from "react"
import { Link, useParams } from "react-router"
import type { WebhookEventDetail } from "../../../client/index.ts"
import { getText } from "../api.ts"
import { networkName } from "../chains.ts"
import { useNames, useOne, usePortalContext, useSymbols } from "../data.ts"
import { useFew } from "../list.ts"
import { LinkButton } from "../parts/Button.tsx"
import { OnChain } from "../parts/Chain.tsx"
import { Code, laidOut } from "../parts/Code.tsx"
import { Id } from "../parts/Copy.tsx"
import { assetsOf, type EventData, EventLinks, EventSummary } from "../parts/EventSummary.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"
import { DeliveryRow } from "./DeliveryRow.tsx"
import { Outcome } from "./Events.tsx"

const back = ["/events", "Events"] as const

export const EventPage = () => {
  const { id = "" } = useParams()
  const found = useOne(`/v1/webhook-events/${id}`, { every: 3_000 })
  const { data: around } = usePortalContext()
  const nameOf = useNames()
  const symbolOf = useSymbols(assetsOf([found.data?.payload.data]))
  const event = found.data
  if (event === undefined) {
    return (
      <Page title="Event" back={back}>
        {found.error === null ? <Loading /> : <Failure error={found.error} retry={() => void found.refetch()} />}
      </Page>
    )
  }
  const { data } = event.payload
  return (
    <Page
      title={event.kind}
      back={back}
      lead={around?.kinds.find(({ name }) => name === event.kind)?.when}
      actions={<Outcome dispatched={event.dispatchedAt !== null} counts={event} />}
    >
      <div className="summary-line">
        <EventSummary data={data} symbolOf={symbolOf} />
        <span className="links">
          <EventLinks data={data} />
        </span>
      </div>
      <Facts
        rows={[
          ["Event id", <Id key="id" text={event.id} what="Event id" whole />],
          ["Time", <Time key="occurred" at={event.occurredAt} />],
          ...chainFacts(data),
          ["Entity", nameOf(event.entityId)],
          [
            "Vault",
            event.vaultIds === null
              ? "None: the event is about the entity"
              : event.vaultIds.map((one) => (
                  <Link key={one} to={`/vaults/${one}`}>
                    {nameOf(one)}
                  </Link>
                ))
          ],
          ["Recorded", <Time key="created" at={event.createdAt} />],
          ["Dispatched", event.dispatchedAt === null ? "Not yet" : <Time key="dispatched" at={event.dispatchedAt} />]
        ]}
      />
      <Section
        title="Deliveries"
        lead={
          event.matchedCount === 0
            ? undefined
            : `${event.matchedCount} ${event.matchedCount === 1 ? "webhook" : "webhooks"} matched when it was dispatched.`
        }
      >
        <EventDeliveries event={event} symbolOf={symbolOf} />
      </Section>
      <Section
        title="Payload"
        lead="The exact text that matching webhooks receive."
        actions={<LinkButton to={`/events/kinds/${event.kind}`}>What the fields mean</LinkButton>}
      >
        <Payload id={id} />
      </Section>
    </Page>
  )
}

const chainFacts = ({ depositAddress, transaction }: EventData): ReadonlyArray<readonly [string, ReactNode]> => {
  if (depositAddress !== undefined)
    return [
      ["Address", <OnChain key="address" is="address" network={depositAddress.network} text={depositAddress.address} whole />],
      ["Network", networkName(depositAddress.network)]
    ]
  if (transaction === undefined) return []
  const { from, hash, network, to } = transaction
  return [
    ["Transaction", <OnChain key="hash" is="transaction" network={network} text={hash} whole />],
    ["From", <OnChain key="from" is="address" network={network} text={from} whole />],
    ["To", <OnChain key="to" is="address" network={network} text={to} whole />],
    ["Network", networkName(network)]
  ]
}

const EventDeliveries = ({ event, symbolOf }: { readonly event: WebhookEventDetail; readonly symbolOf: (asset: string) => string }) => {
  const deliveries = useOne(`/v1/webhook-events/${event.id}/deliveries`, { every: 3_000 })
  const { data: webhooks } = useFew("/v1/webhooks", 100)
  const webhookOf = (webhookId: string) => {
    const known = webhooks?.find((one) => one.id === webhookId)
    return known === undefined ? webhookId : known.description === "" ? new URL(known.url).host : known.description
  }
  if (deliveries.data === undefined)
    return deliveries.error === null ? <Loading lines={2} /> : <Failure error={deliveries.error} retry={() => void deliveries.refetch()} />
  if (deliveries.data.data.length === 0)
    return <Empty icon={Send} title={event.dispatchedAt === null ? "Waiting to be dispatched" : "No webhook that you can see matched"} />
  return (
    <ul className="rows" aria-label="Deliveries">
      {deliveries.data.data.map((delivery) => (
        <li key={delivery.id}>
          <DeliveryRow
            delivery={delivery}
            title={webhookOf(delivery.webhookId)}
            data={undefined}
            symbolOf={symbolOf}
            links={<Link to={`/webhooks/${delivery.webhookId}`}>View webhook</Link>}
            refresh={() => deliveries.refetch()}
          />
        </li>
      ))}
    </ul>
  )
}

const Payload = ({ id }: { readonly id: string }) => {
  const payload = useQuery({
    queryKey: ["payload", id],
    queryFn: () => getText(`/events/${id}/payload`),
    staleTime: Number.POSITIVE_INFINITY
  })
  if (payload.data !== undefined) return <Code title="Payload" text={laidOut(payload.data)} />
  return payload.error === null ? <Loading /> : <Failure error={payload.error} retry={() => void payload.refetch()} />
}
