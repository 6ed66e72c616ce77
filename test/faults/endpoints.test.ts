/** The cost of hostile endpoints: memory when they answer with bombs, CPU when they flood. Reliability F15, F17. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { gzipSync } from "node:zlib"
import { App } from "../support/app.ts"
import { cpuOf, feedOrganization, feedTransactions, rssOf, webhookOf } from "../support/deliveryFixtures.ts"
import { temporaryFiles } from "../support/files.ts"
import { HostileEndpoints } from "../support/hostileEndpoints.ts"
import { authority, until } from "../support/receiver.ts"
import { long, report } from "./Rig.ts"

const app = new App()
const hostile = new HostileEndpoints()
const files = temporaryFiles()
const BOMBS = long ? 100 : 15,
  FLOODS = long ? 20 : 3
let key = ""
const bomb = gzipSync(Buffer.alloc((long ? 1_024 : 128) * 1_048_576))

beforeAll(async () => {
  const { ca, sign } = await authority()
  await hostile.open(await sign({ names: ["localhost"] }))
  hostile.on("/bomb", ({ end, write }) => {
    write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`)
    write(bomb)
    end()
  })
  hostile.on("/flood", ({ forever }) => forever("HTTP/1.1 103 Early Hints\r\n\r\n"))
  hostile.on("/plain", ({ end, write }) => {
    write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    end()
  })
  await app.open(["api", "worker", "dispatcher"], {
    WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
    WEBHOOK_ALLOW_PORTS: String(hostile.port),
    WEBHOOK_EXTRA_CA: files.write("ca.pem", ca),
    WEBHOOK_RETRY_SCHEDULE: "0s"
  })
  key = await feedOrganization(app, 3)
})
afterAll(async () => {
  await app.close()
  hostile.close()
  files.remove()
})

/** Sends this many events to an endpoint and returns the cost to the program. */
const cost = async (entity: number, path: string, count: number) => {
  const pid = app.main?.child.pid ?? 0
  const webhook = await webhookOf(app, key, entity, `https://localhost:${hostile.port}${path}`)
  const [cpu, rss] = [await cpuOf(pid), await rssOf(pid)]
  let most = rss
  await feedTransactions(
    app,
    Array.from({ length: count }, () => entity)
  )
  await until(
    "the end of every delivery",
    async () => {
      most = Math.max(most, await rssOf(pid))
      const [row] = await app.sql(
        "SELECT count(*)::int AS count FROM deliveries WHERE webhook_id = $1 AND status IN ('DELIVERED', 'FAILED')",
        [webhook.id]
      )
      return row?.["count"] === count
    },
    120
  )
  await app.request("DELETE", `/v1/webhooks/${webhook.id}`, { key })
  return { cpuMs: ((await cpuOf(pid)) - cpu) / count, megabytes: most - rss }
}

describe("response attacks", () => {
  test("bombs are not decompressed, and a flood of informational responses is cut off", async () => {
    // The cost of an ordinary delivery, and of the first ones, which pay one-time costs.
    await cost(0, "/plain", 20)
    const usual = await cost(0, "/plain", 20)
    const bombs = await cost(1, "/bomb", BOMBS)
    const floods = await cost(2, "/flood", FLOODS)
    report("F15 F17 bombs and floods", { usual, bombs, floods })
    // Decompressed, each would be 128 MB or more.
    expect(bombs.megabytes).toBeLessThan(128)
    expect(floods.cpuMs - usual.cpuMs).toBeLessThan(300)
  })
})
