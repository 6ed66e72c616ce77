/** The event log, with the API's filters. */
import { Activity } from "lucide-react"
import { Link } from "react-router"
import type { EventCounts } from "../../server/Overview.ts"
import { useBeside, usePortalContext, useSymbols } from "../data.ts"
import { useList } from "../list.ts"
import { LinkButton } from "../parts/Button.tsx"
import { assetsOf, EventSummary } from "../parts/EventSummary.tsx"
import { Export } from "../parts/Export.tsx"
import { Select, TextField } from "../parts/Field.tsx"
import { Filters, useFilters, utc, utcEnd } from "../parts/Filters.tsx"
import { Page } from "../parts/Page.tsx"
import { Empty } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Table } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"

const names = ["kind", "vaultId", "after", "before"] as const

export const EventsPage = () => {
  const { data: around } = usePortalContext()
  const filters = useFilters(names)
  const { after, before, kind, vaultId } = filters.values
  const list = useList("/v1/webhook-events", { kind, vaultId, occurredAfter: utc(after), occurredBefore: utcEnd(before) }, { every: 3_000 })
  const { data: counts } = useBeside("/event-counts", list.rows?.map(({ id }) => id) ?? [], 3_000)
  const symbolOf = useSymbols(assetsOf(list.rows?.map(({ payload }) => payload.data) ?? []))
  return (
    <Page
      title="Events"
      lead={`Everything that happened in the last ${around?.retentionDays ?? 31} days, whether or not a webhook matched.`}
      actions={
        <>
          <LinkButton to="/events/kinds">Event kinds</LinkButton>
          <LinkButton to="/checkpoints">Checkpoints</LinkButton>
          <Export name="events" source={list.source} />
        </>
      }
    >
      <Filters filters={filters}>
        <Select label="Kind" value={kind} onValue={(value) => filters.set({ kind: value })}>
          <option value="">Any</option>
          {around?.kinds.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
        <Select label="Vault" value={vaultId} onValue={(value) => filters.set({ vaultId: value })}>
          <option value="">Any</option>
          {around?.vaults.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
        <TextField label="From" type="datetime-local" value={after} onValue={(value) => filters.set({ after: value })} />
        <TextField label="Until" type="datetime-local" value={before} onValue={(value) => filters.set({ before: value })} />
      </Filters>
      <Table
        list={list}
        label="Events"
        empty={
          <Empty icon={Activity} title={filters.any ? "No events match these filters" : "No events yet"}>
            <p>
              {filters.any ? "Change or clear the filters." : "Events of vaults and webhooks that you can see appear here as they happen."}
            </p>
          </Empty>
        }
        columns={[
          {
            label: "Event",
            heads: true,
            cell: ({ id, kind }) => (
              <Link className="name" to={`/events/${id}`}>
                {kind}
              </Link>
            )
          },
          { label: "About", card: "", cell: ({ payload }) => <EventSummary data={payload.data} symbolOf={symbolOf} /> },
          { label: "Deliveries", cell: ({ dispatchedAt, id }) => <Outcome dispatched={dispatchedAt !== null} counts={counts?.[id]} /> },
          { label: "Time", align: "right", cell: ({ occurredAt }) => <Time at={occurredAt} /> }
        ]}
      />
    </Page>
  )
}

/** The outcome of an event: how many webhooks matched, and how many received it. */
export const Outcome = ({ counts, dispatched }: { readonly dispatched: boolean; readonly counts: EventCounts | undefined }) => {
  if (!dispatched) return <Status tone="wait">Pending dispatch</Status>
  if (counts === undefined) return <span className="under">…</span>
  const { deliveryCounts: by, matchedCount } = counts
  const of = (...states: ReadonlyArray<string>) => states.reduce((total, state) => total + (by[state] ?? 0), 0)
  const [delivered, failed, waiting, canceled] = [of("DELIVERED"), of("FAILED"), of("PENDING", "RETRYING", "HELD"), of("CANCELED")]
  const all = delivered + failed + waiting + canceled
  if (matchedCount === 0 && all === 0) return <Status tone="idle">No webhook matched</Status>
  if (failed > 0) return <Status tone="bad">{`${failed} of ${all} failed`}</Status>
  if (waiting > 0) return <Status tone="wait">{`${waiting} of ${all} waiting`}</Status>
  if (delivered > 0) return <Status tone="good">{`${delivered} of ${all} delivered`}</Status>
  return <Status tone="idle">{canceled > 0 ? `${canceled} canceled` : `${matchedCount} matched`}</Status>
}
