/** Endpoints that have IPv6 addresses only. Decision D-30. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import * as os from "node:os"
import { App } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { Dns } from "../../support/dns.ts"
import { Receiver, receiverEnv } from "../../support/receiver.ts"

const HOST = "six.ipv6.test"
const hasIpv6 = Object.values(os.networkInterfaces()).some((list) => list?.some(({ address }) => address === "::1"))
const app = new App()
const receiver = new Receiver()
const dns = new Dns()
let key = ""

beforeAll(async () => {
  if (!hasIpv6) return
  await Promise.all([receiver.open("::1", [HOST]), dns.open()])
  dns.on(HOST, { aaaa: ["::1"] })
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    WEBHOOK_ALLOW_CIDRS: "::1/128",
    WEBHOOK_DNS_SERVERS: dns.address
  })
  key = await feedOrganization(app, 1)
})
afterAll(async () => {
  await app.close()
  dns.close()
  await receiver.close()
})

test.skipIf(!hasIpv6)(
  `an endpoint that only has an IPv6 address gets its deliveries${hasIpv6 ? "" : " (skipped: no IPv6 here)"}`,
  async () => {
    const { id } = await webhookOf(app, key, 0, `https://${HOST}:${receiver.port}/six`)
    await feedTransactions(app, [0])
    const { attempts } = await deliveryWhen(app, key, id, ({ status }) => status === "DELIVERED")
    expect(attempts).toMatchObject([{ result: "2xx", bodySnippet: "ok" }])
    expect(receiver.to("/six")).toHaveLength(1)
  }
)
