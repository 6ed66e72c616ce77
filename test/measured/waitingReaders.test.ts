/** What waiting readers of the feed cost others, while events are recorded that they cannot see. C-1; Decision D-9. */
import { beforeAll, expect, test } from "bun:test"
import net from "node:net"
import { report } from "../faults/Rig.ts"
import { useApp } from "../support/app.ts"
import { entity, organization, smallest, user, vault } from "../support/records.ts"
import { create } from "../support/webhookFixtures.ts"

const FEED = "/v1/event-feed/stream"
/** Entities of a webhook, all but the last of which the reader reaches; readers, each with a key; and changes of the webhook. */
const ENTITIES = 100,
  KEYS = 600,
  CHANGES = 5

/** Who has the keys: a user cannot have as many open streams alone. */
const MEMBERS = ["user_member_1", "user_member_2"]

const app = useApp(["api"], { RATE_LIMIT: "off" })
const keys: Array<string> = []
let owner = "",
  other = "",
  webhookId = ""

beforeAll(async () => {
  const numbers = Array.from({ length: ENTITIES }, (_, number) => number)
  const vaults = numbers.map((number) => `vault_${number}`)
  await app.feed(
    [
      ...smallest(),
      ...numbers.flatMap((number) => [entity(`entity_${number}`, "org_a"), vault(`vault_${number}`, `entity_${number}`)]),
      user("user_owner", "org_a", vaults, { organizationRole: "owner" }),
      ...MEMBERS.map((id) => user(id, "org_a", vaults.slice(0, -1))),
      organization("org_z", ["ethereum"]),
      entity("entity_z", "org_z"),
      vault("vault_z", "entity_z"),
      user("user_z", "org_z", ["vault_z"])
    ],
    { "x-record-events": "none" }
  )
  owner = (await app.key("user_owner")).secret
  other = (await app.key("user_z")).secret
  for (let count = 0; count < KEYS; count++) keys.push((await app.key(MEMBERS[count % MEMBERS.length] ?? "")).secret)
  webhookId = (await create(app, owner, { entityIds: numbers.map((number) => `entity_${number}`) })).id
})

/** The longest answer to the other organization after each change of the webhook, in ms, while readers wait; the median. */
const beside = async (query: string): Promise<number> => {
  const { hostname, port } = new URL(app.main?.baseUrl ?? "")
  // More than fetch opens at a time.
  const open = (secret: string) =>
    new Promise<net.Socket>((resolve, reject) => {
      const socket = net.connect(Number(port), hostname)
      socket.on("error", reject)
      // The first bytes of the stream.
      socket.once("data", () => resolve(socket))
      socket.write(`GET ${FEED}?from=now${query} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${secret}\r\n\r\n`)
    })
  const sockets: Array<net.Socket> = []
  for (const secret of keys) sockets.push(await open(secret))
  const longest: Array<number> = []
  for (let change = 0; change < CHANGES; change++) {
    const changed = app.request("POST", `/v1/webhooks/${webhookId}/rotate-secret`, { key: owner, body: { expirePrevious: "now" } })
    let max = 0
    const until = performance.now() + 1_000
    while (performance.now() < until) {
      const begun = performance.now()
      expect((await app.get("/v1/vaults", other)).status).toBe(200)
      max = Math.max(max, performance.now() - begun)
    }
    expect((await changed).status).toBe(200)
    longest.push(max)
  }
  for (const socket of sockets) socket.destroy()
  return longest.sort((a, b) => a - b)[Math.floor(CHANGES / 2)] ?? Number.NaN
}

test("events that 600 waiting readers cannot see delay no other organization", async () => {
  const filtered = await beside("&kind=transaction.confirmed")
  const unseen = await beside("")
  await app.sql(
    "UPDATE api_keys SET vault_ids = ARRAY(SELECT 'vault_' || lpad(n::text, 40, '0') FROM generate_series(0, 999) n) WHERE user_id LIKE 'user_member%'"
  )
  const limited = await beside("")
  report("waiting readers", { readers: KEYS, longestMs: unseen, withAllowlistsMs: limited, filteredMs: filtered })
  expect(unseen).toBeLessThan(4 * filtered + 80)
  expect(limited).toBeLessThan(4 * filtered + 80)
}, 120_000)
