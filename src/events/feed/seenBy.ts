/** What many waiting readers see of the same events, checked once for each caller. C-1. */
import { callerOf, type PrincipalState } from "../../access/credentials/Principal.ts"

/** What decides who sees an event. */
export interface SharedRow {
  readonly entityId: string
  readonly vaultId: string | null
  readonly audience: ReadonlyArray<string> | null
}

/** Of allowlists, which AccessChecks keeps as long as they do not change. */
const sets = new WeakMap<ReadonlyArray<string>, ReadonlySet<string>>()
const setOf = (allowlist: ReadonlyArray<string>): ReadonlySet<string> => {
  const known = sets.get(allowlist) ?? new Set(allowlist)
  sets.set(allowlist, known)
  return known
}

/**
 * The rows that principals see, by caller; `access` has the ids of the vaults and entities that each user has access to. Many readers
 * are of one caller, and many events of one audience, each of which is checked once. Decision D-9.
 */
export const seenBy = <Row extends SharedRow>(
  principals: Iterable<PrincipalState>,
  rows: ReadonlyArray<Row>,
  access: ReadonlyMap<string, ReadonlySet<string>>
) => {
  const audiences = new Map(rows.map((row) => [row, row.audience?.join(" ") ?? ""]))
  const seen = new Map<string, ReadonlySet<Row>>()
  for (const principal of principals) {
    const { isOwner, userId, vaultAllowlist } = principal
    const caller = callerOf(principal)
    if (seen.has(caller)) continue
    const ids = access.get(userId) ?? new Set()
    const reached = new Map<string, boolean>()
    const reaches = (row: Row) => {
      const key = audiences.get(row) ?? ""
      const known = reached.get(key) ?? row.audience?.every((id) => ids.has(id)) ?? true
      reached.set(key, known)
      return known && ids.has(row.entityId)
    }
    const sees = (row: Row) =>
      row.vaultId === null
        ? vaultAllowlist === null && (isOwner || reaches(row))
        : ids.has(row.vaultId) && (vaultAllowlist === null || setOf(vaultAllowlist).has(row.vaultId))
    seen.set(caller, new Set(rows.filter(sees)))
  }
  return seen
}
