/**
 * Reads of assets and networks: those on the networks available to the caller's organization, and assets that a visible vault
 * holds or moved. Spec: Custody reads. C-9.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { seesVault } from "../../access/visibility/visibility.ts"
import type { Key } from "../../http/Page.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"
import { Asset, Network } from "./Catalog.ts"

/** Filters of assets; absent ones do not filter. */
export interface AssetFilter {
  readonly network?: string | undefined
  readonly symbol?: string | undefined
}

const decodeAssets = decodeRows(Asset),
  decodeNetworks = decodeRows(Network)

export class CatalogRepo extends Effect.Service<CatalogRepo>()("custody/CatalogRepo", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => ({
    /**
     * At most `take` assets after the key, by id: network by network, in the order of asset ids, which begin with the
     * network's name. Of a network that is not available to the organization, those that its vaults hold or moved.
     */
    assets: (principal: PrincipalState, { network, symbol }: AssetFilter, after: Key | null, take: number) =>
      Effect.orDie(
        decodeAssets(sql`
          SELECT a.id, a.symbol, a.name, a.decimals, a.network FROM (
            SELECT n.name || '/' AS prefix, n.name, n.name = ANY(o.networks) AS available FROM organizations o, networks n
            WHERE o.id = ${principal.organizationId} ${and(sql, network !== undefined && sql`n.name = ${network}`)} ORDER BY prefix
          ) n CROSS JOIN LATERAL (
            SELECT a.* FROM assets a WHERE a.network = n.name
            ${and(sql, symbol !== undefined && sql`a.symbol = ${symbol}`, after !== null && sql`a.id > ${after[0]}`)}
            AND (n.available OR EXISTS (
              SELECT 1 FROM vault_assets h WHERE h.organization_id = ${principal.organizationId} AND h.asset_id = a.id
                AND ${seesVault(sql, principal, sql.literal("h.vault_id"))}))
            ORDER BY a.id LIMIT ${take}
          ) a ORDER BY n.prefix, a.id LIMIT ${take}`)
      ),

    /** At most `take` networks after the key, by name. */
    networks: (organizationId: string, after: Key | null, take: number) =>
      Effect.orDie(
        decodeNetworks(sql`
          SELECT n.name, n.kind FROM networks n
          WHERE n.name = ANY((SELECT o.networks FROM organizations o WHERE o.id = ${organizationId})::text[])
          ${and(sql, after !== null && sql`n.name > ${after[0]}`)}
          ORDER BY n.name LIMIT ${take}`)
      )
  }))
}) {
  static readonly layer = this.Default
}
