/** The catalog of event kinds: what each means, its fields, an example, its schema, and a sample to a webhook. */
import { Activity } from "lucide-react"
import { Link, useParams } from "react-router"
import { ApiProblem } from "../api.ts"
import { useOne, usePortalContext } from "../data.ts"
import { eventFields } from "../eventFields.ts"
import { listOf } from "../list.ts"
import { LinkButton } from "../parts/Button.tsx"
import { Code, laidOut } from "../parts/Code.tsx"
import { Page, Section } from "../parts/Page.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import { useUser } from "../session.ts"
import { TestEvent } from "./TestEvent.tsx"

const scopes = { vault: "Vault", entity: "Entity" } as const

export const EventKindsPage = () => {
  const { data, error, refetch } = usePortalContext()
  return (
    <Page title="Event kinds" back={["/events", "Events"]} lead="What the service records and sends to webhooks that subscribe to it.">
      {data === undefined ? (
        error === null ? (
          <Loading />
        ) : (
          <Failure error={error} retry={() => void refetch()} />
        )
      ) : (
        <Table
          list={listOf(data.kinds, ({ name }) => name)}
          label="Event kinds"
          empty={<Empty icon={Activity} title="No event kinds" />}
          columns={[
            {
              label: "Kind",
              heads: true,
              cell: ({ name }) => (
                <Link className="name" to={`/events/kinds/${name}`}>
                  {name}
                </Link>
              )
            },
            { label: "When", card: "", cell: ({ when }) => when },
            { label: "About", cell: ({ scope }) => scopes[scope] }
          ]}
        />
      )}
    </Page>
  )
}

const back = ["/events/kinds", "Event kinds"] as const

export const EventKindPage = () => {
  const { kind = "" } = useParams()
  const { isOwner } = useUser()
  const { data: around } = usePortalContext()
  const { data, error, refetch } = useOne(`/event-kinds/${kind}`)
  const known = around?.kinds.find(({ name }) => name === kind)
  return (
    <Page
      title={kind}
      back={back}
      lead={known === undefined ? undefined : `${known.when}. Version ${known.schemaVersion} of its schema.`}
      actions={
        <>
          <LinkButton to={`/events?kind=${kind}`}>Events of this kind</LinkButton>
          {isOwner && known !== undefined ? <TestEvent kind={known.name} /> : null}
        </>
      }
    >
      {data === undefined ? (
        error === null ? (
          <Loading />
        ) : error instanceof ApiProblem && error.status === 404 ? (
          <Empty icon={Activity} title="There is no such event kind" />
        ) : (
          <Failure error={error} retry={() => void refetch()} />
        )
      ) : (
        <>
          <Section title="Fields" lead="Fields may be added to a version; readers ignore those that they do not know.">
            <Table
              list={listOf(eventFields(JSON.parse(data.schema)), ({ path }) => path)}
              label="Fields"
              empty={null}
              columns={[
                { label: "Field", heads: true, cell: ({ path }) => <code>{path}</code> },
                { label: "Type", cell: ({ type }) => type },
                { label: "Meaning", card: "", cell: ({ description }) => description }
              ]}
            />
          </Section>
          <Section
            title="Example"
            lead="A sample, as a test event has it: its ids name nothing, its amounts are 0, and data.test marks it."
          >
            <Code title="Example" text={laidOut(data.sample)} />
          </Section>
          <Section title="JSON Schema">
            <Code title="JSON Schema" text={laidOut(data.schema)} />
          </Section>
        </>
      )}
    </Page>
  )
}
