/**
 * The floor of deliveries: the least that Temporal needs for the same result. A bare workflow, started eagerly, with one
 * local activity that posts an envelope of the same size over a separate connection; no database, signature or guard.
 * The same for a group: one workflow with one local activity that posts all envelopes at once over kept connections.
 *
 * `bun bench/support/workflowFloor.ts` prints `{ port }`. `POST /?count=N` starts N workflows, `POST /?count=N&group=50`
 * N / 50 of groups. `POST /deliver` starts one for the posted record, and `POST /share` one for up to 50 records that arrived
 * while the last one posted. The receiver records when each envelope arrives. `FLOOR_CA` names the receiver's authority for
 * separate connections, and `NODE_EXTRA_CA_CERTS` for kept ones.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { Client } from "@temporalio/client"
import { bundleWorkflowCode, NativeConnection, Runtime, Worker } from "@temporalio/worker"

const { FLOOR_TEMPORAL = "", FLOOR_URL = "", FLOOR_CA = "" } = process.env
/** Concurrent starts. */
const STARTS = 24
/** Most envelopes of a group of posted records. */
const GROUP = 50
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

/** Called with the first envelope of a group when all of it is posted. */
let onPosted = (_: string | undefined) => {}

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
      onPosted(hashes[0])
      return statuses.filter((status) => status === 200).length
    }
  },
  maxConcurrentWorkflowTaskExecutions: 400,
  maxConcurrentLocalActivityExecutions: 500
})
void worker.run()
const client = new Client({ connection })
const start = (workflowId: string, hashes: ReadonlyArray<string>, grouped: boolean) => {
  const [name, args] = grouped ? ["floorGroup", [hashes]] : ["floor", [...hashes]]
  return client.workflow.start(name, { workflowId, taskQueue, args, requestEagerStart: true })
}

/** Records that share the next workflow, which is started when the last one has posted. */
const waiting: Array<string> = []
let sharing = false
const share = async (hash: string) => {
  waiting.push(hash)
  if (sharing) return
  sharing = true
  while (waiting.length > 0) {
    const hashes = waiting.splice(0, GROUP)
    const posted = new Promise<void>((resolve) => {
      onPosted = (first) => {
        if (first === hashes[0]) resolve()
      }
    })
    await start(`floor-${process.pid}-group-${hashes[0]}`, hashes, true)
    await posted
  }
  sharing = false
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 255,
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname !== "/") {
      const { hash }: { readonly hash: string } = JSON.parse(await request.text())
      const started = pathname === "/share" ? share(hash) : start(`floor-${process.pid}-${hash}`, [hash], false)
      started.catch((error) => console.error(String(error)))
      return Response.json({ received: 1 })
    }
    const count = Number(searchParams.get("count"))
    const group = Number(searchParams.get("group") ?? 1)
    const prefix = `floor-${process.pid}-${performance.now()}`
    let next = 0
    const starter = async () => {
      while (next < count) {
        const first = next
        next += group
        const ids = Array.from({ length: Math.min(group, count - first) }, (_, index) => `${prefix}-${first + index}`)
        await start(`${prefix}-${first}`, ids, group !== 1)
      }
    }
    await Promise.all(Array.from({ length: STARTS }, starter))
    return Response.json({ started: count })
  }
})
console.log(JSON.stringify({ port: server.port }))
