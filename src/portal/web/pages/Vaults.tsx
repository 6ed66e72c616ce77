/** The vaults that the user can see. */
import { Vault as Icon } from "lucide-react"
import { Link } from "react-router"
import type { Vault } from "../../../client/index.ts"
import { networkName } from "../chains.ts"
import { useNames, usePortalContext } from "../data.ts"
import { useList } from "../list.ts"
import { Export } from "../parts/Export.tsx"
import { Page } from "../parts/Page.tsx"
import { Empty } from "../parts/States.tsx"
import { Table } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"

export const VaultsPage = () => {
  const list = useList("/v1/vaults", {}, { limit: 50 })
  const { data: around } = usePortalContext()
  const nameOf = useNames()
  const entityOf = new Map(around?.vaults.map(({ entityId, id }) => [id, nameOf(entityId)]))
  const entity = ({ id }: Vault) => entityOf.get(id) ?? ""
  return (
    <Page
      title="Vaults"
      lead="Vaults where you have the Developer role. The portal is read-only for vaults."
      actions={<Export name="vaults" source={list.source} />}
    >
      <Table
        list={list}
        label="Vaults"
        empty={
          <Empty icon={Icon} title="No vaults">
            <p>You see a vault here when you have the Developer role on it. Roles are assigned on the custody platform.</p>
          </Empty>
        }
        columns={[
          {
            label: "Vault",
            heads: true,
            cell: ({ id, label }) => (
              <Link className="name" to={`/vaults/${id}`}>
                {label}
              </Link>
            ),
            compare: (a, b) => a.label.localeCompare(b.label)
          },
          { label: "Entity", cell: entity, compare: (a, b) => entity(a).localeCompare(entity(b)) },
          {
            label: "Networks",
            cell: ({ networks }) => (
              <span className="tags">
                {networks.map((network) => (
                  <span key={network} className="tag" title={network}>
                    {networkName(network)}
                  </span>
                ))}
              </span>
            )
          },
          {
            label: "Created",
            align: "right",
            cell: ({ createdAt }) => <Time at={createdAt} as="day" />,
            compare: (a, b) => a.createdAt.localeCompare(b.createdAt)
          }
        ]}
      />
    </Page>
  )
}
