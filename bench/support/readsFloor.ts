/**
 * The floor of reads: the least that a server must do for the same response. `Bun.serve` and `pg`, one look-up of the
 * key, one query for the page, `JSON.stringify`; no visibility, no limits, no errors, no cursor. Statements are
 * prepared, as in any fast program, and that of the page names the partition of the vault, whose id is the argument.
 */
import pg from "pg"
import { hasKey } from "./floorKey.ts"

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
    if (!(await hasKey(pool, request))) return new Response("", { status: 401 })
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
