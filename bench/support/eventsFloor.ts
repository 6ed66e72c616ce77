/**
 * The floor of events: the least that a program must do for a record that is posted alone. `Bun.serve` and `pg`: one
 * statement that inserts the row and its event, the response, a POST over a kept HTTPS connection, one UPDATE. No
 * transaction around more than that, no signature, guard, retry or idempotency.
 *
 * `bun bench/support/eventsFloor.ts` prints `{ port }`. `POST /deliver` does all of it, `POST /record` ends with the
 * response. `NODE_EXTRA_CA_CERTS` names the receiver's CA, so that the connection pool of `fetch` stays shared.
 */
import { randomUUIDv7 } from "bun"
import pg from "pg"

const { DATABASE_URL, FLOOR_TOKEN, FLOOR_URL = "" } = process.env
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 10 })
await pool.query(`
  CREATE TABLE floor_transactions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, vault_id text NOT NULL, network text NOT NULL, hash text NOT NULL,
    status text NOT NULL, direction text NOT NULL, asset_id text NOT NULL, amount numeric NOT NULL, from_address text NOT NULL,
    to_address text NOT NULL, timestamp timestamptz NOT NULL, UNIQUE (network, hash, vault_id, direction));
  CREATE INDEX ON floor_transactions (vault_id, timestamp DESC, id DESC);
  CREATE TABLE floor_outbox (id text PRIMARY KEY, payload text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), delivered_at timestamptz)`)

const insert = `
  WITH event AS (INSERT INTO floor_outbox (id, payload) VALUES ($1, $2))
  INSERT INTO floor_transactions (vault_id, network, hash, status, direction, asset_id, amount, from_address, to_address, timestamp)
  VALUES ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

const deliver = async (id: string, payload: string) => {
  const response = await fetch(FLOOR_URL, { method: "POST", body: payload, headers: { "content-type": "application/json" } })
  await response.text()
  await pool.query({ name: "delivered", text: "UPDATE floor_outbox SET delivered_at = now() WHERE id = $1", values: [id] })
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    if (request.headers.get("authorization") !== `Bearer ${FLOOR_TOKEN}`) return new Response("", { status: 401 })
    const { amount, asset, direction, from, hash, network, status, timestamp, to, type: _, vaultId } = JSON.parse(await request.text())
    const id = `evt_${randomUUIDv7()}`
    const payload = JSON.stringify({
      id,
      kind: `transaction.${status}`,
      schemaVersion: 1,
      date: new Date().toISOString(),
      entityId: "entity_bench",
      vaultIds: [vaultId],
      data: { vaultId, transaction: { hash, network, status, direction, asset, amount, from, to, timestamp } }
    })
    await pool.query({
      name: "insert",
      text: insert,
      values: [id, payload, vaultId, network, hash, status, direction, asset, amount, from, to, timestamp]
    })
    if (request.url.endsWith("/deliver")) deliver(id, payload).catch((error) => console.error(String(error)))
    return Response.json({ received: 1 })
  }
})
console.log(JSON.stringify({ port: server.port }))
