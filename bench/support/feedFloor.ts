/**
 * The floor of the event feed: `Bun.serve` and `pg`. `GET /page` looks up the key and selects the next events of an
 * organization or of a vault; `GET /stream` is server-sent events with a comment every 15 s, written as soon as Postgres
 * notifies. No visibility, no cursors, no limits, no errors.
 *
 * `bun bench/support/feedFloor.ts` prints `{ port }`.
 */
import pg from "pg"
import { hasKey } from "./floorKey.ts"

// As in any fast program: plans are cached, and read an index up to the end of a page.
const config = {
  connectionString: process.env.DATABASE_URL,
  options: "-c timezone=UTC -c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_sort=off -c jit=off"
}
const pool = new pg.Pool({ ...config, max: 10 })
const columns = `id, entity_id AS "entityId", vault_id AS "vaultId", kind, schema_version AS "schemaVersion", payload, occurred_at AS "occurredAt", created_at AS "createdAt"`
const of = {
  organization: `SELECT ${columns} FROM events WHERE organization_id = 'org_bench' AND position > $1 ORDER BY position LIMIT $2`,
  vault: `SELECT ${columns} FROM events WHERE vault_id = 'vault_rare' AND position > $1 ORDER BY position LIMIT $2`
}
interface Row {
  readonly vaultId: string
  readonly payload: string
}
const json = (row: Row) => JSON.stringify({ ...row, vaultIds: [row.vaultId], payload: JSON.parse(row.payload) })

const encoder = new TextEncoder()
const streams = new Set<ReadableStreamDefaultController<Uint8Array>>()
const write = (text: string) => {
  const bytes = encoder.encode(text)
  for (const stream of streams) stream.enqueue(bytes)
}
setInterval(() => write(": at place\n\n"), 15_000)

let position = 0
const events = new pg.Client(config)
await events.connect()
events.on("notification", () => void look())
let looking: Promise<void> | undefined
const read = async () => {
  if (streams.size === 0) return
  const { rows } = await events.query<Row & { position: string }>({
    name: "next",
    text: `SELECT ${columns}, position FROM events WHERE organization_id = 'org_bench' AND position > $1 ORDER BY position`,
    values: [position]
  })
  position = Number(rows.at(-1)?.position ?? position)
  write(rows.map((row) => `id: ${row.position}\nevent: webhook-event\ndata: ${json(row)}\n\n`).join(""))
}
const look = () => {
  looking = (looking ?? Promise.resolve()).then(read)
  return looking
}
await events.query("LISTEN custody_events")

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const url = new URL(request.url)
    if (url.pathname === "/stream") {
      const { rows } = await pool.query("SELECT position FROM event_streams WHERE organization_id = 'org_bench'")
      position = Math.max(position, Number(rows[0].position))
      let controller: ReadableStreamDefaultController<Uint8Array>
      const body = new ReadableStream<Uint8Array>({
        start: (given) => {
          controller = given
          streams.add(given)
          given.enqueue(encoder.encode(": at place\n\n"))
        },
        cancel: () => void streams.delete(controller)
      })
      return new Response(body, { headers: { "content-type": "text/event-stream" } })
    }
    if (!(await hasKey(pool, request))) return new Response("", { status: 401 })
    const name = url.searchParams.get("of") === "vault" ? "vault" : "organization"
    const limit = Number(url.searchParams.get("limit"))
    const { rows } = await pool.query<Row>({ name, text: of[name], values: [Number(url.searchParams.get("after")), limit] })
    return new Response(`{"data":[${rows.map(json).join(",")}],"pagination":{"limit":${limit},"nextCursor":null}}`, {
      headers: { "content-type": "application/json" }
    })
  }
})
console.log(JSON.stringify({ port: server.port }))
