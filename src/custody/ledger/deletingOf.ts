/** Records of an organization that is being deleted are rejected. Decision D-56. */
import type { State } from "./LedgerState.ts"
import type { Record } from "./Record.ts"

/** The field of a record that determines its organization, and the organization's id; undefined if there is none. */
const organizationOf = ({ entities, vaults }: State, record: Record) => {
  if (record.type === "organization") return { field: "id", organizationId: record.id }
  if ("organizationId" in record) return { field: "organizationId", organizationId: record.organizationId }
  const owner =
    record.type === "vault"
      ? (entities.get(record.entityId) ?? vaults.get(record.id))
      : "vaultId" in record
        ? vaults.get(record.vaultId)
        : undefined
  return owner === undefined ? undefined : { field: record.type === "vault" ? "entityId" : "vaultId", organizationId: owner.organizationId }
}

/** The organization of a record if it is being deleted, and the field that names it. */
export const deletingOf = (state: State, record: Record) => {
  if (state.deleting.size === 0) return undefined
  const found = organizationOf(state, record)
  return found !== undefined && state.deleting.has(found.organizationId) ? found : undefined
}
