/** One event: what it says, and its deliveries. */
import { useQuery } from "@tanstack/react-query"
import { Send } from "lucide-react"
import { Link, useParams } from "react-router"
import type { Delivery } from "../../../deliveries/Delivery.ts"
import type { Webhook } from "../../../webhooks/Webhook.ts"
import type { EventCounts } from "../../Overview.ts"
import { getText } from "../api.ts"
import { useList, useOne, useSurroundings } from "../data.ts"
import { Code, laidOut } from "../parts/Code.tsx"
import { Id } from "../parts/Copy.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"
import { DeliveryRow } from "./Deliveries.tsx"
import { type LoggedEvent, Outcome } from "./Events.tsx"

const back = ["/events", "Events"] as const

export const EventPage = () => {
  const { id = "" } = useParams()
  const found = useOne<LoggedEvent & EventCounts>(`/v1/webhook-events/${id}`, { every: 3_000 })
  const deliveries = useOne<{ readonly data: ReadonlyArray<Delivery> }>(`/v1/webhook-events/${id}/deliveries`, { every: 3_000 })
  const payload = useQuery({
    queryKey: ["payload", id],
    queryFn: () => getText(`/events/${id}/payload`),
    staleTime: Number.POSITIVE_INFINITY
  })
  const { data: around } = useSurroundings()
  const { rows: webhooks } = useList<Webhook>("/v1/webhooks", {}, { limit: 100 })
  const webhookOf = (webhookId: string) => {
    const known = webhooks?.find((one) => one.id === webhookId)
    return known === undefined ? webhookId : known.description === "" ? new URL(known.url).host : known.description
  }
  const event = found.data
  if (event === undefined) {
    return (
      <Page title="Event" back={back}>
        {found.error === null ? <Loading /> : <Failure error={found.error} retry={() => void found.refetch()} />}
      </Page>
    )
  }
  const entity = around?.entities.find((one) => one.id === event.entityId)?.name ?? event.entityId
  const names = new Map(around?.vaults.map((one) => [one.id, one.name]))
  return (
    <Page
      title={event.kind}
      back={back}
      lead={around?.kinds.find(({ name }) => name === event.kind)?.when}
      actions={<Outcome dispatched={event.dispatchedAt !== null} counts={event} />}
    >
      <Facts
        rows={[
          ["Id", <Id key="id" text={event.id} what="Event id" whole />],
          ["Happened", <Time key="occurred" at={event.occurredAt} />],
          ["Recorded", <Time key="created" at={event.createdAt} />],
          ["Dispatched", event.dispatchedAt === null ? "Not yet" : <Time key="dispatched" at={event.dispatchedAt} />],
          ["Entity", entity],
          [
            "Vault",
            event.vaultIds === null
              ? "None: it is about the entity"
              : event.vaultIds.map((one) => (
                  <Link key={one} to={`/vaults/${one}`}>
                    {names.get(one) ?? one}
                  </Link>
                ))
          ]
        ]}
      />
      <Section
        title="Deliveries"
        lead={
          event.matchedCount === 0
            ? undefined
            : `${event.matchedCount} active ${event.matchedCount === 1 ? "webhook" : "webhooks"} matched when it was dispatched.`
        }
      >
        {deliveries.data === undefined ? (
          deliveries.error === null ? (
            <Loading lines={2} />
          ) : (
            <Failure error={deliveries.error} retry={() => void deliveries.refetch()} />
          )
        ) : deliveries.data.data.length === 0 ? (
          <Empty icon={Send} title={event.dispatchedAt === null ? "It waits to be dispatched" : "It was sent to no webhook that you see"} />
        ) : (
          <ul className="rows" aria-label="Deliveries">
            {deliveries.data.data.map((delivery) => (
              <li key={delivery.id}>
                <DeliveryRow
                  delivery={delivery}
                  title={webhookOf(delivery.webhookId)}
                  link={[`/webhooks/${delivery.webhookId}`, "Its webhook"]}
                  refresh={() => deliveries.refetch()}
                />
              </li>
            ))}
          </ul>
        )}
      </Section>
      <Section title="Payload" lead="What matching webhooks receive; the digits and the order are the service's.">
        {payload.data === undefined ? (
          payload.error === null ? (
            <Loading />
          ) : (
            <Failure error={payload.error} retry={() => void payload.refetch()} />
          )
        ) : (
          <Code title="Payload" text={laidOut(payload.data)} />
        )}
      </Section>
    </Page>
  )
}
