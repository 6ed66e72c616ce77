/**
 * The floor of reads: the least that a server must do for the same response. `Bun.serve` and `pg`, one look-up of the
 * key, one query for the page, `JSON.stringify`; no visibility, no limits, no errors, no cursor. Statements are
 * prepared, as in any fast program.
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

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const url = new URL(request.url)
    if (!(await hasKey(pool, request))) return new Response("", { status: 401 })
    const limit = Number(url.searchParams.get("limit") ?? 100)
    const { rows } = await pool.query({
      name: "page",
      text: `SELECT t.id, t.hash, t.network, t.status, t.direction, t.asset_id AS asset, t.amount, t.from_address AS "from", t.to_address AS "to",
          t.timestamp, t.fee_amount AS fee, t.block_number AS "blockNumber", t.block_hash AS "blockHash", t.memo, t.external_id AS "externalId",
          t.updated_at AS "updatedAt"
        FROM transactions t WHERE t.vault_id = $1 ORDER BY t.timestamp DESC, t.id DESC LIMIT $2`,
      values: [url.pathname.split("/")[3], limit]
    })
    return new Response(JSON.stringify({ data: rows, pagination: { limit, nextCursor: null } }), {
      headers: { "content-type": "application/json" }
    })
  }
})
console.log(JSON.stringify({ port: server.port }))
