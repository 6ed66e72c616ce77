/**
 * The floor of reads: the least that a server must do for the same response. `Bun.serve` and `pg`, one look-up of the
 * key, one query for the page, `JSON.stringify`; no visibility, no limits, no errors, no cursor. Statements are
 * prepared, as in any fast program, and the page's names the partition of the
 * one vault, which is its argument.
 */
import { createHash } from "node:crypto"
import pg from "pg"

const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: 10,
  options: "-c timezone=UTC",
  types: {
    getTypeParser: ((oid: number, format?: "text") =>
      oid === 1184
        ? (text: string) => `${text.slice(0, 10)}T${text.slice(11, 19)}.000Z`
        : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser
  }
})

const partition = await pool.query(
  "SELECT 'transactions_' || lpad(n::text, 2, '0') AS name FROM generate_series(0, 31) n WHERE satisfies_hash_partition('transactions'::regclass, 32, n, $1::text)",
  [process.argv[2]]
)

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const url = new URL(request.url)
    const secret = request.headers.get("authorization")?.slice(7) ?? ""
    const keys = await pool.query({
      name: "key",
      text: "SELECT id, user_id, scopes, vault_ids, ip_allowlist, expires_at, revoked_at FROM api_keys WHERE secret_hash = $1",
      values: [createHash("sha256").update(secret).digest()]
    })
    if (keys.rows.length === 0) return new Response("", { status: 401 })
    const limit = Number(url.searchParams.get("limit") ?? 100)
    const { rows } = await pool.query({
      name: "page",
      text: `SELECT t.hash, t.network, t.status, t.direction, t.asset_id AS asset, t.amount, t.from_address AS "from", t.to_address AS "to", t.timestamp
        FROM ${partition.rows[0]?.name} t WHERE t.vault_id = $1 ORDER BY t.timestamp DESC, t.id DESC LIMIT $2`,
      values: [url.pathname.split("/")[3], limit]
    })
    return new Response(JSON.stringify({ data: rows, pagination: { limit, nextCursor: null } }), {
      headers: { "content-type": "application/json" }
    })
  }
})
console.log(JSON.stringify({ port: server.port }))
