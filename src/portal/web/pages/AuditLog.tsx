/** The audit log of the organization, for its owners. */
import { ScrollText } from "lucide-react"
import { useList } from "../list.ts"
import { Page } from "../parts/Page.tsx"
import { Rows } from "../parts/Rows.tsx"
import { Empty } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"

const actors = { key: "API key", session: "Portal", operator: "Operator", platform: "Custody platform", service: "The service" } as const

const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value))

export const AuditLogPage = () => {
  const list = useList("/v1/audit-log")
  return (
    <Page title="Audit log" lead="Who did what to webhooks, deliveries, API keys and accounts of your organization in the last 400 days.">
      <Rows
        list={list}
        label="Audit log"
        empty={
          <Empty icon={ScrollText} title="No entries">
            <p>Changes by people and programs are recorded here.</p>
          </Empty>
        }
        row={({ action, actor, at, changes, clientAddress, target }) => (
          <article className="row">
            <div className="what">
              <h2>{action}</h2>
              <p className="under">
                {target.type} {target.id}
              </p>
              {Object.entries(changes).map(([field, change]) => (
                <p className="under" key={field}>
                  {field}: {change.old === null ? "" : `${text(change.old)} → `}
                  {text(change.new)}
                </p>
              ))}
            </div>
            <p className="under">
              {actors[actor.type]} {actor.userId ?? ""} {actor.type === "key" ? actor.id : ""}
              {clientAddress === null ? "" : ` from ${clientAddress}`}
            </p>
            <p className="under when">
              <Time at={at} />
            </p>
          </article>
        )}
      />
    </Page>
  )
}
