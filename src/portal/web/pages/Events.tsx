/** The event log, with the API's filters. */
import { Activity } from "lucide-react"
import { Link, useSearchParams } from "react-router"
import type { EventCounts } from "../../Overview.ts"
import { useBeside, useList, useSurroundings } from "../data.ts"
import { Button } from "../parts/Button.tsx"
import { Select, TextField } from "../parts/Field.tsx"
import { Page } from "../parts/Page.tsx"
import { Rows } from "../parts/Rows.tsx"
import { Empty } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"

/** An event of the log, as the API answers it. */
export interface LoggedEvent {
  readonly id: string
  readonly entityId: string
  readonly vaultIds: ReadonlyArray<string> | null
  readonly kind: string
  readonly schemaVersion: number
  readonly occurredAt: string
  readonly dispatchedAt: string | null
  readonly createdAt: string
}

/** What a browser's field for date and time holds, in the browser's time zone, as the API takes it. */
const utc = (local: string): string => (local === "" || Number.isNaN(Date.parse(local)) ? "" : new Date(local).toISOString())

export const EventsPage = () => {
  const [search, setSearch] = useSearchParams()
  const { data: around } = useSurroundings()
  const filters = {
    kind: search.get("kind") ?? "",
    vaultId: search.get("vaultId") ?? "",
    after: search.get("after") ?? "",
    before: search.get("before") ?? ""
  }
  const filtered = Object.values(filters).some((one) => one !== "")
  const list = useList<LoggedEvent>(
    "/v1/webhook-events",
    { kind: filters.kind, vaultId: filters.vaultId, occurredAfter: utc(filters.after), occurredBefore: utc(filters.before) },
    { every: 3_000 }
  )
  const { data: counts } = useBeside<EventCounts>("/event-counts", list.rows?.map(({ id }) => id) ?? [], 3_000)
  const filter = (change: Readonly<Record<string, string>>) =>
    setSearch(
      Object.entries({ ...filters, ...change }).filter(([, value]) => value !== ""),
      { replace: true }
    )
  const names = new Map(around?.vaults.map(({ id, name }) => [id, name]))
  return (
    <Page
      title="Events"
      lead={`What happened in the last ${around?.retentionDays ?? 31} days, whether or not a webhook wanted it. The list follows what happens.`}
    >
      <div className="filters four">
        <Select label="Kind" value={filters.kind} onValue={(kind) => filter({ kind })}>
          <option value="">Any</option>
          {around?.kinds.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
        <Select label="Vault" value={filters.vaultId} onValue={(vaultId) => filter({ vaultId })}>
          <option value="">Any</option>
          {around?.vaults.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
        <TextField label="From" type="datetime-local" value={filters.after} onValue={(after) => filter({ after })} />
        <TextField label="Until" type="datetime-local" value={filters.before} onValue={(before) => filter({ before })} />
        {filtered ? (
          <Button kind="quiet" onClick={() => setSearch({}, { replace: true })}>
            Clear
          </Button>
        ) : null}
      </div>
      <Rows
        list={list}
        label="Events"
        keyOf={({ id }) => id}
        empty={
          <Empty icon={Activity} title={filtered ? "No event is like that" : "Nothing happened yet"}>
            <p>{filtered ? "Choose other filters." : "Events of the vaults and webhooks that you see show up here as they happen."}</p>
          </Empty>
        }
        row={(event) => (
          <article className="row event">
            <div className="what">
              <h2>
                <Link to={`/events/${event.id}`}>{event.kind}</Link>
              </h2>
              <p className="under">{event.vaultIds?.map((id) => names.get(id) ?? id).join(", ") ?? "Not of a vault"}</p>
            </div>
            <Outcome dispatched={event.dispatchedAt !== null} counts={counts?.[event.id]} />
            <p className="under when">
              <Time at={event.occurredAt} />
            </p>
          </article>
        )}
      />
    </Page>
  )
}

/** What became of an event: how many webhooks wanted it, and how many have it. */
export const Outcome = ({ counts, dispatched }: { readonly dispatched: boolean; readonly counts: EventCounts | undefined }) => {
  if (!dispatched) return <Status tone="wait">Waiting</Status>
  if (counts === undefined) return <span className="under">…</span>
  const { deliveryCounts: by, matchedCount } = counts
  const [delivered, failed, waiting] = [by["DELIVERED"] ?? 0, by["FAILED"] ?? 0, (by["PENDING"] ?? 0) + (by["RETRYING"] ?? 0)]
  if (matchedCount === 0 && delivered + failed + waiting === 0) return <Status tone="idle">No webhook</Status>
  const matched = `${matchedCount} matched`
  if (failed > 0) return <Status tone="bad">{`${matched}, ${failed} failed`}</Status>
  if (waiting > 0) return <Status tone="wait">{`${matched}, ${waiting} waiting`}</Status>
  return <Status tone={delivered > 0 ? "good" : "idle"}>{`${matched}, ${delivered} delivered`}</Status>
}
