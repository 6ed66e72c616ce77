/** The vaults that the user sees. */
import { Vault as Icon } from "lucide-react"
import { Link } from "react-router"
import type { Vault } from "../../../vaults/Vault.ts"
import { useList, useSurroundings } from "../data.ts"
import { Page } from "../parts/Page.tsx"
import { Rows } from "../parts/Rows.tsx"
import { Empty } from "../parts/States.tsx"
import { Time } from "../parts/Time.tsx"

export const VaultsPage = () => {
  const list = useList<Vault>("/v1/vaults", {}, { limit: 50 })
  const { data: around } = useSurroundings()
  const entities = new Map(around?.entities.map(({ id, name }) => [id, name]))
  const entityOf = new Map(around?.vaults.map(({ entityId, id }) => [id, entities.get(entityId) ?? entityId]))
  return (
    <Page title="Vaults" lead="Those on which you have the Developer role. Nothing here can be changed.">
      <Rows
        list={list}
        label="Vaults"
        keyOf={({ id }) => id}
        empty={
          <Empty icon={Icon} title="You see no vault">
            <p>The Developer role on a vault shows it here. Roles are given on the custody platform.</p>
          </Empty>
        }
        row={(vault) => (
          <article className="row vault">
            <div className="what">
              <h2>
                <Link to={`/vaults/${vault.id}`}>{vault.label}</Link>
              </h2>
              <p className="under">{entityOf.get(vault.id)}</p>
            </div>
            <p className="tags">
              {vault.networks.map((network) => (
                <span key={network} className="tag">
                  {network}
                </span>
              ))}
            </p>
            <p className="under when">
              Since <Time at={vault.createdAt} as="day" />
            </p>
          </article>
        )}
      />
    </Page>
  )
}
