/** Checkpoints of an entity's events, verified in the browser, to keep and to verify elsewhere. */
import { useQuery } from "@tanstack/react-query"
import { FileCheck2 } from "lucide-react"
import type { EventCheckpoint as Checkpoint } from "../../../client/index.ts"
import { signedClaims } from "../../../client/signedClaims.ts"
import { getText } from "../api.ts"
import { useOne, usePortalContext } from "../data.ts"
import { useList } from "../list.ts"
import { Id } from "../parts/Copy.tsx"
import { SaveText } from "../parts/Export.tsx"
import { Select } from "../parts/Field.tsx"
import { Filters, useFilters } from "../parts/Filters.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Table } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { readKeys } from "../parts/Verified.tsx"

const fields = ["entityId", "count", "hash", "at"] as const

/** The id of the key that signed a checkpoint's content; null if none did, "impossible" if this browser cannot verify. */
const useSigner = (one: Checkpoint) =>
  useQuery({
    queryKey: ["checkpoint", one],
    queryFn: async () => {
      const { keys } = await readKeys()
      const signed = await signedClaims(one.jws, keys).catch(() => "impossible" as const)
      if (signed === "impossible" || signed === undefined) return signed ?? null
      const { claims, kid } = signed
      return typeof claims === "object" && claims !== null && fields.every((name) => Reflect.get(claims, name) === one[name]) ? kid : null
    },
    staleTime: Number.POSITIVE_INFINITY
  })

const Signature = ({ checkpoint }: { readonly checkpoint: Checkpoint }) => {
  const { data, error } = useSigner(checkpoint)
  if (data === undefined) return <Status tone="wait">{error === null ? "Verifying" : "Not verified"}</Status>
  if (data === null) return <Status tone="bad">Does not verify</Status>
  return data === "impossible" ? <Status tone="idle">This browser cannot verify</Status> : <Status tone="good">Verified</Status>
}

const SigningKey = ({ checkpoint }: { readonly checkpoint: Checkpoint }) => {
  const { data } = useSigner(checkpoint)
  return data === undefined || data === null || data === "impossible" ? <>Unknown</> : <Id text={data} what="Key id" whole />
}

const fileName = ({ at, entityId }: Pick<Checkpoint, "at" | "entityId">) =>
  `checkpoint-${entityId}-${at.slice(0, 19).replaceAll(":", "")}.json`

/** The checkpoint as of now. */
const Latest = ({ entityId }: { readonly entityId: string }) => {
  const path = `/v1/event-checkpoints/latest?entityId=${encodeURIComponent(entityId)}` as const
  const { data, error, refetch } = useOne(path)
  if (data === undefined) return error === null ? <Loading /> : <Failure error={error} retry={() => void refetch()} />
  return (
    <Section title="Now" lead="Keep a copy: whoever has it can verify later that no event before it was changed or removed.">
      <Facts
        rows={[
          ["Events", data.count.toLocaleString("en")],
          ["Hash", <Id key="hash" text={data.hash} what="Hash" whole />],
          ["Time", <Time key="time" at={data.at} />],
          ["Signature", <Signature key="signature" checkpoint={data} />],
          ["Signing key", <SigningKey key="kid" checkpoint={data} />],
          [
            "Verify it yourself",
            <a key="docs" href="/v1/docs/guides/miss-nothing">
              How to verify events
            </a>
          ]
        ]}
      />
      <div className="toolbar">
        <SaveText label="Download" name={fileName(data)} type="application/json" read={() => getText(path)} />
      </div>
    </Section>
  )
}

/** The checkpoints of past midnights. */
const Daily = ({ entityId }: { readonly entityId: string }) => {
  const list = useList("/v1/event-checkpoints", { entityId }, { every: 60_000, keyOf: ({ at }) => at })
  return (
    <Section title="Every midnight (UTC)" lead="Kept permanently.">
      <Table
        list={list}
        label="Checkpoints"
        empty={
          <Empty icon={FileCheck2} title="No checkpoints yet">
            <p>The first one is sealed at the next midnight (UTC).</p>
          </Empty>
        }
        columns={[
          { label: "Midnight", heads: true, cell: ({ at }) => at.slice(0, 10) },
          { label: "Events", align: "right", cell: ({ count }) => count.toLocaleString("en") },
          { label: "Hash", from: "medium", cell: ({ hash }) => <Id text={hash} what="Hash" /> },
          { label: "Signature", cell: (one) => <Signature checkpoint={one} /> },
          {
            label: "File",
            cell: (one) => (
              <SaveText label="Download" name={fileName(one)} type="application/json" read={async () => JSON.stringify(one, null, 2)} />
            )
          }
        ]}
      />
    </Section>
  )
}

export const CheckpointsPage = () => {
  const { data: around } = usePortalContext()
  const filters = useFilters(["entityId"])
  const entityId = filters.values.entityId === "" ? around?.entities[0]?.id : filters.values.entityId
  return (
    <Page
      title="Checkpoints"
      back={["/events", "Events"]}
      lead="The service signs a hash over all events of an entity, which proves that none is missing or changed. For users who can see every vault of the entity."
    >
      <Filters filters={filters}>
        <Select label="Entity" value={entityId ?? ""} onValue={(value) => filters.set({ entityId: value })}>
          {around?.entities.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
      </Filters>
      {entityId === undefined ? (
        <Loading />
      ) : (
        <>
          <Latest entityId={entityId} />
          <Daily entityId={entityId} />
        </>
      )}
    </Page>
  )
}
