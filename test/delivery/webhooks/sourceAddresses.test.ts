/** `GET /v1/webhook-source-addresses`: which addresses an endpoint's firewall must admit. C-12. */
import { expect, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { short } from "../../support/webhookFixtures.ts"

const app = useApi({ WEBHOOK_SOURCE_ADDRESSES: "203.0.113.9, 198.51.100.77/24,2001:DB8::1/48" })
const path = "/v1/webhook-source-addresses"

test("the addresses of deliveries are published without a key, as ranges", async () => {
  const { json, status } = await app.get(path)
  expect([status, json]).toEqual([200, { addresses: ["203.0.113.9/32", "198.51.100.0/24", "2001:db8::/48"] }])
  expect((await app.get(path, "cds_invalid")).json).toEqual(json)
  expect(short(await app.get(`${path}?limit=1`))).toBe("400 unknown_parameter")
})
