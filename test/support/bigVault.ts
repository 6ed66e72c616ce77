/** A vault whose export does not fit into the buffers of a connection. */
import type { App } from "./app.ts"

/** Transactions of the vault. */
export const BIG = 60_000

/** Inserts transactions of one time, as the ledger writes them. */
export const fillVault = (app: App, vaultId: string, organizationId = "org_a") =>
  app.insert(
    `INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
     SELECT gen_random_uuid(), '${vaultId}', '${organizationId}', 'ethereum', 'big' || n, 0, 'inbound', 'confirmed', 'ethereum/native', 1, 'a', 'b', '2022-01-01', '{"hash":"' || repeat('x', 600) || '"}'
     FROM generate_series(1, ${BIG}) n`
  )
