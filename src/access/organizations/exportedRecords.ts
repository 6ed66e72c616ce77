/** Custody rows of one organization as the records that `custody load` reads. Source: custody records. Decision D-56. */
import type { SqlClient, Statement } from "@effect/sql"

/** A time as in records. */
const iso = (sql: SqlClient.SqlClient, column: string): Statement.Fragment =>
  sql.literal(`to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)

/** Transactions `t`, each with every state `s` that it has had. */
const states = (sql: SqlClient.SqlClient): Statement.Fragment => sql`
  transactions t CROSS JOIN LATERAL (
    SELECT h.version, h.state::json, h.state::json->>'occurredAt' FROM transaction_history h WHERE h.transaction_id = t.id
    UNION ALL SELECT t.version, t.json::json, ${iso(sql, "t.occurred_at")}) AS s (version, state, at)`

/**
 * Statements that select the records as JSON in `line`, in an order in which they can be loaded: networks and assets first, which
 * organizations share. Each state that a transaction has had is a record.
 */
export const recordsOf = (sql: SqlClient.SqlClient, organizationId: string): ReadonlyArray<Statement.Fragment> => {
  const vaults = sql`(SELECT v.id FROM vaults v WHERE v.organization_id = ${organizationId})`
  return [
    sql`SELECT json_build_object('type', 'network', 'name', n.name, 'kind', n.kind)::text AS line FROM networks n ORDER BY n.name`,
    sql`
      SELECT json_build_object('type', 'asset', 'id', a.id, 'symbol', a.symbol, 'name', a.name, 'decimals', a.decimals, 'network', a.network)::text AS line
      FROM assets a WHERE a.id IN (
        SELECT b.asset_id FROM balances b WHERE b.vault_id IN ${vaults}
        UNION SELECT unnest(ARRAY[s.state->>'asset', s.state->'fee'->>'asset']) FROM ${states(sql)} WHERE t.vault_id IN ${vaults}) ORDER BY a.id`,
    sql`
      SELECT json_build_object('type', 'organization', 'id', o.id, 'name', o.name, 'networks', o.networks)::text AS line
      FROM organizations o WHERE o.id = ${organizationId}`,
    sql`
      SELECT json_build_object('type', 'entity', 'id', n.id, 'organizationId', n.organization_id, 'name', n.name)::text AS line
      FROM entities n WHERE n.organization_id = ${organizationId} ORDER BY n.id`,
    sql`
      SELECT json_build_object('type', 'vault', 'id', v.id, 'entityId', v.entity_id, 'label', v.label, 'networks', v.networks,
        'createdAt', ${iso(sql, "v.created_at")}, 'occurredAt', ${iso(sql, "v.given_at")})::text AS line
      FROM vaults v WHERE v.organization_id = ${organizationId} ORDER BY v.id`,
    sql`
      SELECT json_build_object('type', 'user', 'id', u.id, 'organizationId', u.organization_id, 'email', u.email, 'name', u.name,
        'status', u.status, 'organizationRole', u.organization_role, 'vaultRoles', coalesce((
          SELECT json_agg(json_build_object('vaultId', r.vault_id, 'role', r.role) ORDER BY r.vault_id) FROM vault_roles r WHERE r.user_id = u.id),
          '[]'))::text AS line
      FROM users u WHERE u.organization_id = ${organizationId} ORDER BY u.id`,
    sql`
      SELECT json_build_object('type', 'address', 'vaultId', a.vault_id, 'address', a.address, 'network', a.network, 'assetType', a.asset_type,
        'createdAt', ${iso(sql, "a.created_at")})::text AS line
      FROM deposit_addresses a WHERE a.vault_id IN ${vaults} ORDER BY a.id`,
    sql`
      SELECT json_build_object('type', 'transaction', 'vaultId', t.vault_id, 'hash', t.hash, 'network', t.network, 'index', t.index,
        'direction', t.direction, 'status', s.state->'status', 'asset', s.state->'asset', 'amount', s.state->'amount', 'from', s.state->'from',
        'to', s.state->'to', 'timestamp', s.state->'timestamp', 'fee', s.state->'fee', 'blockNumber', s.state->'blockNumber',
        'blockHash', s.state->'blockHash', 'memo', s.state->'memo', 'externalId', s.state->'externalId', 'occurredAt', s.at)::text AS line
      FROM ${states(sql)}
      WHERE t.vault_id IN ${vaults} ORDER BY t.vault_id, t.timestamp DESC, t.id DESC, s.version`,
    sql`
      SELECT json_build_object('type', 'balance', 'vaultId', h.vault_id, 'asset', h.asset_id, 'amount', h.amount::text,
        'occurredAt', ${iso(sql, "h.as_of")})::text AS line
      FROM balance_history h WHERE h.vault_id IN ${vaults} ORDER BY h.vault_id, h.asset_id, h.as_of, h.id`
  ]
}
