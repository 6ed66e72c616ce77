/** An organization with one vault, and rows of it as the ledger would write them; SQL makes millions of them in minutes. */
import * as fs from "node:fs"
import * as path from "node:path"
import type pg from "pg"
import { custody, folder } from "./servers.ts"

/** The vault that everything is measured on. */
export const VAULT = "vault_bench"

const vaultOf = (id: string) => ({
  type: "vault",
  id,
  entityId: "entity_bench",
  label: "Bench",
  networks: ["ethereum"],
  createdAt: "2020-01-01T00:00:00Z"
})

/** Loads {@link VAULT} and another one, with `tokens` tokens besides Ether. Returns the secret of a key of their owner. */
export const loadVault = async (env: Record<string, string>, tokens = 0): Promise<string> => {
  const asset = { type: "asset", name: "Bench", decimals: 18, network: "ethereum" }
  const records = [
    { type: "network", name: "ethereum", kind: "mainnet" },
    { ...asset, id: "ethereum/native", symbol: "ETH" },
    ...Array.from({ length: tokens }, (_, token) => ({
      ...asset,
      id: `ethereum/erc20:0x${token.toString(16).padStart(40, "0")}`,
      symbol: `T${token}`
    })),
    { type: "organization", id: "org_bench", name: "Bench", networks: ["ethereum"] },
    { type: "entity", id: "entity_bench", organizationId: "org_bench", name: "Bench" },
    vaultOf(VAULT),
    vaultOf("vault_other"),
    {
      type: "user",
      id: "user_bench",
      organizationId: "org_bench",
      email: "bench@example.com",
      name: "Bench",
      status: "active",
      organizationRole: "owner",
      vaultRoles: [{ vaultId: VAULT, role: "developer" }]
    }
  ]
  const file = path.join(folder, "records.ndjson")
  fs.writeFileSync(file, records.map((record) => JSON.stringify(record)).join("\n"))
  await custody(["load", file, "--no-events"], env)
  const answer: { readonly secret: string } = JSON.parse(
    await custody(["keys", "create", "--user", "user_bench", "--scopes", "vault:read", "--all-vaults"], env)
  )
  return answer.secret
}

/**
 * Inserts transactions and makes the table as if it had rested. For many, secondary indexes are created afterwards, which takes a
 * fraction of the time. Foreign keys are not checked.
 */
export const seeding = async (client: pg.Client, isMany: boolean, insert: () => Promise<void>) => {
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i
     WHERE i.indrelid = 'transactions'::regclass AND NOT i.indisunique AND $1`,
    [isMany]
  )
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`)
  await client.query("SET session_replication_role = replica")
  await insert()
  await client.query("RESET session_replication_role")
  await client.query("SET maintenance_work_mem = '1GB'")
  for (const { definition } of indexes) await client.query(definition.replace(" ON ONLY ", " ON "))
  await client.query("VACUUM (ANALYZE, PARALLEL 0) transactions")
  // Otherwise the disk is busy with these rows while pages are measured.
  await client.query("CHECKPOINT")
}

/** Confirmed transactions of {@link VAULT} with these numbers: twenty of each time, `secondsApart` from `since` on. */
export const seedTransactions = async (
  client: pg.Client,
  from: number,
  to: number,
  { secondsApart = 12, since = "2020-01-01T00:00:00Z" }: { readonly secondsApart?: number; readonly since?: string } = {}
) => {
  const insert = async () => {
    for (let start = from; start < to; start += 500_000) {
      await client.query(
        `
      INSERT INTO transactions (id, vault_id, organization_id, network, hash, index, direction, status, asset_id, amount, from_address, to_address, timestamp, json)
      SELECT id, '${VAULT}', 'org_bench', 'ethereum', hash, 0, 'inbound', 'confirmed', 'ethereum/native', amount, source, target, at, format(
        '{"id":"tx_0%s","hash":"%s","network":"ethereum","status":"confirmed","direction":"inbound","asset":"ethereum/native","amount":"%s","from":"%s","to":"%s","timestamp":"%s",'
        '"fee":null,"blockNumber":null,"blockHash":null,"memo":null,"externalId":null,"updatedAt":"2026-01-01T00:00:00.000Z"}',
        left(replace(id::text, '-', ''), 25), hash, amount, source, target, to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
      FROM (
        SELECT md5('id' || n)::uuid AS id, '0x' || md5(n::text) || md5('b' || n) AS hash, (n % 1000 + 1)::numeric / 1000 AS amount,
          '0x' || substr(md5('f' || n % 5000) || md5('g' || n % 5000), 1, 40) AS source,
          '0x' || substr(md5('t' || n % 300) || md5('u' || n % 300), 1, 40) AS target,
          $3::timestamptz + (n / 20) * $4::float8 * interval '1 second' AS at
        FROM generate_series($1::bigint, $2::bigint) AS n) rows`,
        [start, Math.min(to, start + 500_000) - 1, since, secondsApart]
      )
    }
  }
  await seeding(client, to - from >= 1_000_000, insert)
}
