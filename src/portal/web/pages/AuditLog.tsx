/** The audit log of the organization, for its owners: who did what, when and from where. */
import { ArrowUpRight, ScrollText } from "lucide-react"
import { Link, useSearchParams } from "react-router"
import type { AuditEntry } from "../../../client/index.ts"
import { getById } from "../api.ts"
import { useBeside, useNames } from "../data.ts"
import { useFew, useList } from "../list.ts"
import { Export } from "../parts/Export.tsx"
import { Select, TextField } from "../parts/Field.tsx"
import { FilterChip, Filters, useFilters, utc, utcEnd } from "../parts/Filters.tsx"
import { Page } from "../parts/Page.tsx"
import { Rows } from "../parts/Rows.tsx"
import { Empty } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"
import { useUser } from "../session.ts"
import { actions, actionWords, fieldWords, sentenceOf, valueWords } from "./auditSentences.ts"

const names = ["actor", "action", "target", "after", "before"] as const

/** The ids of an entry that may have names. */
const idsOf = ({ actor, changes, target }: AuditEntry): ReadonlyArray<string> => [
  ...[actor.id, actor.userId, target.id].filter((id) => id !== null),
  ...Object.values(changes).flatMap((change) =>
    [change.old, change.new].filter((value) => typeof value === "string" && value.startsWith("whs_")).map(String)
  )
]

export const AuditLogPage = () => {
  const filters = useFilters(names)
  const { action, actor, after, before, target } = filters.values
  const list = useList("/v1/audit-log", { actor, action, target, occurredAfter: utc(after), occurredBefore: utcEnd(before) })
  const { data: people } = useFew("/members", MOST_PEOPLE)
  const ids = [...new Set([...(list.rows?.flatMap(idsOf) ?? []), ...[actor, target].filter((id) => id !== "")])]
  const { data: named } = useBeside("/audit-names", ids, false)
  const nameOfVault = useNames()
  const nameOf = (id: string) => named?.[id]?.name ?? nameOfVault(id)
  const user = useUser()
  /** The page of a webhook, or of a key of the signed-in user: others have none. */
  const pageOf = (id: string) => {
    const { userId, webhookId } = named?.[id] ?? {}
    return webhookId ? `/webhooks/${webhookId}` : userId === user.id ? `/keys/${id}` : undefined
  }
  const [search] = useSearchParams()
  const filterOf = (filter: "actor" | "target", id: string) =>
    `?${new URLSearchParams([...[...search].filter(([name]) => name !== filter), [filter, id]])}`
  return (
    <Page
      title="Audit log"
      lead="Who did what to webhooks, deliveries, API keys and accounts of your organization in the last 400 days."
      actions={<Export name="audit-log" source={list.source} lines={linesOf(nameOfVault)} />}
    >
      <Filters filters={filters}>
        <Select label="Person" value={actor} onValue={(value) => filters.set({ actor: value })}>
          <option value="">Anybody</option>
          {people?.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
          {people?.length === MOST_PEOPLE ? <option disabled>More people: choose one in an entry or under Members</option> : null}
          {actor === "" || people?.some(({ id }) => id === actor) === true ? null : <option value={actor}>{nameOf(actor)}</option>}
        </Select>
        <Select label="Action" value={action} onValue={(value) => filters.set({ action: value })}>
          <option value="">Any</option>
          {actions.map((one) => (
            <option key={one} value={one}>
              {actionWords(one)}
            </option>
          ))}
        </Select>
        <TextField label="From" type="datetime-local" value={after} onValue={(value) => filters.set({ after: value })} />
        <TextField label="Until" type="datetime-local" value={before} onValue={(value) => filters.set({ before: value })} />
      </Filters>
      {target === "" ? null : (
        <FilterChip label="Target" value={`${partWords(target)}${nameOf(target)}`} onRemove={() => filters.set({ target: "" })} />
      )}
      <Rows
        list={list}
        label="Audit log"
        empty={
          <Empty icon={ScrollText} title={filters.any ? "No entries match these filters" : "No entries"}>
            <p>{filters.any ? "Change or clear the filters." : "Changes by people and programs are recorded here."}</p>
          </Empty>
        }
        row={(entry) => <Entry entry={entry} nameOf={nameOf} pageOf={pageOf} filterOf={filterOf} />}
      />
    </Page>
  )
}

const Entry = ({
  entry,
  filterOf,
  nameOf,
  pageOf
}: {
  readonly entry: AuditEntry
  readonly nameOf: (id: string) => string
  readonly pageOf: (id: string) => string | undefined
  /** The page with another filter: by the person, or by what was acted upon. */
  readonly filterOf: (filter: "actor" | "target", id: string) => string
}) => {
  const { action, actor, at, changes, clientAddress, target: of } = entry
  const { more, person, target, what, who } = sentenceOf(entry, nameOf)
  const page = pageOf(of.id)
  return (
    <article className="row audit">
      <div>
        <h2>
          {person === null ? (
            who
          ) : (
            <Link to={filterOf("actor", person)} title="Show only what this person did">
              <bdi>{who}</bdi>
            </Link>
          )}{" "}
          {what}{" "}
          {target === undefined ? null : (
            <Link to={filterOf("target", of.id)} title="Show only what was done to it">
              <bdi>{target}</bdi>
            </Link>
          )}
          {target === undefined || page === undefined ? null : (
            <Link className="open" to={page} aria-label={`Open ${target}`} title="Open">
              <ArrowUpRight aria-hidden size={16} />
            </Link>
          )}{" "}
          {more}
        </h2>
        {Object.entries(changes).map(([field, change]) =>
          // The sentence names it.
          field === "webhookId" || field === "secondFactor" || (field === "vaultIds" && more !== "") ? null : (
            <p className="under" key={field}>
              {fieldWords(field)}:{" "}
              {change.old === null && (field !== "vaultIds" || action.endsWith(".created")) ? null : (
                <>
                  <Value field={field} value={change.old} nameOf={nameOf} /> →{" "}
                </>
              )}
              <Value field={field} value={change.new} nameOf={nameOf} />
            </p>
          )
        )}
        <p className="under">
          {actor.type === "key" && actor.id !== null ? (
            <>
              With the API key <Name to={pageOf(actor.id)} name={nameOf(actor.id)} />
            </>
          ) : actor.type === "session" ? (
            "In the portal"
          ) : actor.type === "operator" ? (
            "At the command line"
          ) : (
            "Automatically"
          )}
          {clientAddress === null ? null : (
            <>
              {" "}
              from <code>{clientAddress}</code>
            </>
          )}
        </p>
      </div>
      <p className="under when">
        <Time at={at} as="second" />
      </p>
    </article>
  )
}

/** What a target is of the webhook whose name stands for it. */
const partWords = (id: string) => (id.startsWith("del_") ? "a delivery to " : id.startsWith("rec_") ? "a recovery of " : "")

const Name = ({ name, to }: { readonly name: string; readonly to: string | undefined }) =>
  to === undefined ? <bdi>{name}</bdi> : <Link to={to}>{name}</Link>

const Value = ({ field, nameOf, value }: { readonly field: string; readonly value: unknown; readonly nameOf: (id: string) => string }) =>
  typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? (
    <Time at={value} as="second" />
  ) : (
    <bdi>{valueWords(field, value, nameOf)}</bdi>
  )

/** People that can be chosen: one page of the list. */
const MOST_PEOPLE = 500
/** Ids per request for names. */
const BATCH = 100

/** Makes entries lines of a file, with the names of people, keys, webhooks and users; asks for each name once. */
const linesOf = (nameOfVault: (id: string) => string) => {
  const found = new Map<string, string>()
  const nameOf = (id: string) => found.get(id) ?? nameOfVault(id)
  return async (rows: ReadonlyArray<AuditEntry>) => {
    const ids = [...new Set(rows.flatMap(idsOf))].filter((id) => !found.has(id))
    for (let start = 0; start < ids.length; start += BATCH) {
      const asked = ids.slice(start, start + BATCH)
      const names = await getById("/audit-names", asked)
      for (const id of asked) found.set(id, names[id]?.name ?? nameOfVault(id))
    }
    return rows.map((entry) => {
      const { action, actor, at, changes, clientAddress, id, requestId, target: of } = entry
      const { more, target, what, who } = sentenceOf(entry, nameOf)
      return {
        at,
        who,
        what: [what, target, more].filter((part) => part !== undefined && part !== "").join(" "),
        key: actor.type === "key" && actor.id !== null ? nameOf(actor.id) : "",
        clientAddress,
        changes,
        action,
        actorType: actor.type,
        actorId: actor.id,
        userId: actor.userId,
        targetType: of.type,
        targetId: of.id,
        requestId,
        id
      }
    })
  }
}
