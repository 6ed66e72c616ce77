/**
 * The floor of exports: `Bun.serve` and a cursor of `pg` in a read-only transaction. The rows' stored text as it is, a
 * thousand rows each time that the connection takes more; no key, no access rules, no limits, no CSV.
 */
import pg from "pg"

const PART = 1_000

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const client = new pg.Client({ connectionString: process.env.DATABASE_URL })
    await client.connect()
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    await client.query("SET LOCAL enable_seqscan = off")
    await client.query(`DECLARE rows NO SCROLL CURSOR FOR SELECT t.json FROM transactions t
      WHERE t.vault_id = '${new URL(request.url).pathname.split("/")[3]?.replace(/\W/g, "")}' ORDER BY t.timestamp DESC, t.id DESC`)
    const encoder = new TextEncoder()
    return new Response(
      new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            const { rows } = await client.query<{ json: string }>(`FETCH FORWARD ${PART} FROM rows`)
            let text = ""
            for (const { json } of rows) text += `${json}\n`
            if (text !== "") controller.enqueue(encoder.encode(text))
            if (rows.length === PART) return
            controller.close()
            await client.end()
          }
        },
        { highWaterMark: 0 }
      )
    )
  }
})
console.log(JSON.stringify({ port: server.port }))
