/**
 * The floor of deliveries: the least that Temporal needs for the same result. A bare workflow, started eagerly, with one
 * local activity that posts an envelope of the same size over a separate connection; no database, signature or guard.
 * The same for a group: one workflow with one local activity that posts all envelopes at once over kept connections.
 *
 * `bun bench/support/workflowFloor.ts` prints `{ port }`. `POST /?count=N` starts N workflows, `POST /?count=N&group=50`
 * N / 50 of groups; the receiver records when each envelope arrives. `FLOOR_CA` names the receiver's authority for
 * separate connections, and `NODE_EXTRA_CA_CERTS` for kept ones.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Client } from "@temporalio/client"
import { bundleWorkflowCode, NativeConnection, Runtime, Worker } from "@temporalio/worker"

const { FLOOR_TEMPORAL = "", FLOOR_URL = "", FLOOR_CA = "" } = process.env
/** Concurrent starts, as many as the dispatcher has. */
const STARTS = 24
const taskQueue = `floor-${process.pid}`

const ca = fs.readFileSync(FLOOR_CA, "utf8")
const address = "0x52908400098527886E0F7030069857D2E4169EE7"
const envelope = (hash: string) =>
  JSON.stringify({
    id: "evt_01jd2m6w8tf8c9c2m5v7k0x3qa",
    kind: "transaction.confirmed",
    date: "2026-01-01T00:00:00.000Z",
    organizationId: "org_bench",
    entityId: "entity_bench",
    schemaVersion: 1,
    data: {
      vaultId: "vault_bench",
      transaction: {
        hash,
        network: "ethereum",
        status: "confirmed",
        direction: "inbound",
        asset: "ethereum/native",
        amount: "1.5",
        from: address,
        to: address,
        timestamp: "2026-01-01T00:00:00.000Z"
      }
    }
  })

const send = async (hash: string, options: BunFetchRequestInit) => {
  const response = await fetch(FLOOR_URL, {
    method: "POST",
    body: envelope(hash),
    headers: { "content-type": "application/json" },
    ...options
  })
  await response.text()
  return response.status
}

Runtime.install({ shutdownSignals: [] })
process.on("SIGTERM", () => process.exit(0))
const connection = await NativeConnection.connect({ address: FLOOR_TEMPORAL })
const worker = await Worker.create({
  connection,
  taskQueue,
  workflowBundle: await bundleWorkflowCode({ workflowsPath: path.join(import.meta.dir, "floorWorkflow.ts") }),
  activities: {
    post: (hash: string) => send(hash, { keepalive: false, tls: { ca } }),
    postAll: async (hashes: ReadonlyArray<string>) => {
      const statuses = await Promise.all(hashes.map((hash) => send(hash, {})))
      return statuses.filter((status) => status === 200).length
    }
  },
  maxConcurrentWorkflowTaskExecutions: 400,
  maxConcurrentLocalActivityExecutions: 500
})
void worker.run()
const client = new Client({ connection })

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 255,
  async fetch(request) {
    const { searchParams } = new URL(request.url)
    const count = Number(searchParams.get("count"))
    const group = Number(searchParams.get("group") ?? 1)
    const prefix = `floor-${process.pid}-${performance.now()}`
    let next = 0
    const starter = async () => {
      while (next < count) {
        const first = next
        next += group
        const ids = Array.from({ length: Math.min(group, count - first) }, (_, index) => `${prefix}-${first + index}`)
        const [name, args] = group === 1 ? ["floor", ids] : ["floorGroup", [ids]]
        await client.workflow.start(name, { workflowId: `${prefix}-${first}`, taskQueue, args, requestEagerStart: true })
      }
    }
    await Promise.all(Array.from({ length: STARTS }, starter))
    return Response.json({ started: count })
  }
})
console.log(JSON.stringify({ port: server.port }))
