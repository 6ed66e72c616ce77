/** What a rotation of the master key leaves of cursors, of checkpoints that were kept, and of the keys that signed them. C-1, C-3. */
import { expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { createClient, verifyCheckpoint, verifyEvents } from "../../../src/client/index.ts"
import { useApp } from "../../support/app.ts"
import { codeOf } from "../../support/problem.ts"
import { smallest, transaction } from "../../support/records.ts"

const app = useApp([])
const [older, newer] = [randomBytes(32).toString("base64"), randomBytes(32).toString("base64")]

const start = async (env: { readonly [name: string]: string }) => {
  await app.main?.end()
  app.main = await app.start(["api"], env)
}
const kidOf = (jws: string) => JSON.parse(Buffer.from(jws.split(".")[0] ?? "", "base64url").toString()).kid

test("cursors and stored checkpoints stay valid while the previous key is set", async () => {
  await start({ MASTER_KEY: older })
  await app.feed(smallest(), { "x-record-events": "none" })
  const key = (await app.key("user_a")).secret
  const client = () => createClient({ baseUrl: app.main?.baseUrl ?? "", apiKey: key })
  await app.feed([transaction("vault_a", 1)])
  const { resumeCursor } = (await app.get("/v1/event-feed", key)).json
  const kept = await client().getLatestEventCheckpoint({ entityId: "entity_a" })
  await app.feed([transaction("vault_a", 2), transaction("vault_a", 3)])
  const after = async () => app.get(`/v1/event-feed?after=${resumeCursor}`, key)

  for (const env of [
    { MASTER_KEY: older, MASTER_KEY_PREVIOUS: newer },
    { MASTER_KEY: newer, MASTER_KEY_PREVIOUS: older }
  ]) {
    await start(env)
    expect((await after()).json.data).toHaveLength(2)
    expect(await verifyEvents(client(), "entity_a", kept)).toMatchObject({ complete: true, events: 2 })
  }
  const now = await client().getLatestEventCheckpoint({ entityId: "entity_a" })
  expect(kidOf(now.jws)).not.toBe(kidOf(kept.jws))

  await start({ MASTER_KEY: newer })
  expect(codeOf(await after())).toBe("invalid_cursor")
  expect((await app.get(`/v1/event-feed?after=${now.resumeCursor}`, key)).status).toBe(200)
  const keys = await client().getSigningKeys()
  expect(keys.keys.map(({ kid }) => kid)).toEqual([kidOf(now.jws), kidOf(kept.jws)])
  for (const one of [kept, now]) expect(await verifyCheckpoint(one, "entity_a", keys)).toBeUndefined()
  // The hash that was kept is still the hash of the events.
  expect(await verifyEvents(client(), "entity_a")).toMatchObject({ complete: true, events: 3 })
})
