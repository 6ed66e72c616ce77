/** The deliveries of a webhook, with filters kept in the URL. */
import { Send } from "lucide-react"
import { Link } from "react-router"
import type { WebhookWithHealth } from "../../../client/index.ts"
import { useBeside, usePortalContext, useSymbols } from "../data.ts"
import { useList } from "../list.ts"
import { assetsOf, EventLinks } from "../parts/EventSummary.tsx"
import { Export } from "../parts/Export.tsx"
import { Select, TextField } from "../parts/Field.tsx"
import { Filters, useFilters, utc, utcEnd } from "../parts/Filters.tsx"
import { Rows } from "../parts/Rows.tsx"
import { Empty } from "../parts/States.tsx"
import { wordOf } from "../parts/Status.tsx"
import { DeliveryRow } from "./DeliveryRow.tsx"
import { Waiting } from "./Waiting.tsx"

const names = ["status", "kind", "after", "before"] as const

export const WebhookDeliveries = ({
  refresh,
  webhook
}: {
  readonly webhook: WebhookWithHealth
  readonly refresh: () => Promise<unknown>
}) => {
  const { data: around } = usePortalContext()
  const filters = useFilters(names)
  const { after, before, kind, status } = filters.values
  const list = useList(
    `/v1/webhooks/${webhook.id}/deliveries`,
    { status, kind, createdAfter: utc(after), createdBefore: utcEnd(before) },
    { every: 3_000 }
  )
  const { data } = useBeside("/event-data", [...new Set(list.rows?.map(({ eventId }) => eventId) ?? [])], false)
  const symbolOf = useSymbols(assetsOf(Object.values(data ?? {})))
  return (
    <>
      <Filters filters={filters}>
        <Select label="Status" value={status} onValue={(value) => filters.set({ status: value })}>
          <option value="">Any</option>
          {around?.deliveryStatuses.map((one) => (
            <option key={one} value={one}>
              {wordOf(one)}
            </option>
          ))}
        </Select>
        <Select label="Kind" value={kind} onValue={(value) => filters.set({ kind: value })}>
          <option value="">Any</option>
          {around?.kinds.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
        <TextField label="From" type="datetime-local" value={after} onValue={(value) => filters.set({ after: value })} />
        <TextField label="Until" type="datetime-local" value={before} onValue={(value) => filters.set({ before: value })} />
      </Filters>
      <div className="toolbar">
        <Waiting webhook={webhook} refresh={() => Promise.all([refresh(), list.refetch()])} />
        <span className="spring" />
        <Export name="deliveries" source={list.source} />
      </div>
      <Rows
        list={list}
        label="Deliveries"
        empty={
          <Empty icon={Send} title={filters.any ? "No deliveries match these filters" : "No deliveries yet"}>
            <p>{filters.any ? "Change or clear the filters." : "The next matching event appears here within a second."}</p>
          </Empty>
        }
        row={(delivery) => (
          <DeliveryRow
            delivery={delivery}
            title={delivery.kind}
            data={data?.[delivery.eventId]}
            symbolOf={symbolOf}
            links={
              <>
                <Link to={`/events/${delivery.eventId}`}>View event</Link>
                {data?.[delivery.eventId] === undefined ? null : <EventLinks data={data[delivery.eventId] ?? {}} />}
              </>
            }
            refresh={() => list.refetch()}
          />
        )}
      />
    </>
  )
}
