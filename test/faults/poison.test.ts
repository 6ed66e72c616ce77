/**
 * The same record published many times at once, and events that are hard to process: one of two MiB, one with unusual
 * characters, one of a kind unknown to this version. None of them is lost, sent twice or in the way of another.
 * Reliability F24, F28.
 */
import { describe, expect, test } from "bun:test"
import * as Id from "../../src/values/Id.ts"
import { webhookOf } from "../support/deliveryFixtures.ts"
import { until } from "../support/receiver.ts"
import { hash, transaction, vault } from "../support/records.ts"
import { report, sound, useRig } from "./Rig.ts"

const rig = useRig()
let number = 1_000_000

describe("the same record published repeatedly", () => {
  test("fifty times at once and after a crash: one event, one delivery per webhook", async () => {
    const text = hash(++number)
    const record = transaction("vault_0", 0, { hash: text })
    const answers = await Promise.all(Array.from({ length: 50 }, () => rig.app.records([record])))
    expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
    const applied = answers.filter(({ status }) => status === 200).map(({ json }) => json.events)
    expect(applied.filter((events) => events === 1)).toHaveLength(1)
    rig.acknowledged.add(text)
    await rig.app.main?.end("SIGKILL")
    await rig.restart()
    expect((await rig.app.records([record])).json).toMatchObject({ changed: 0, unchanged: 1, events: 0 })
    await rig.settle()
    const history = await rig.history()
    report("F24 published 51 times", { applied: applied.length, ...history })
    expect(history).toMatchObject({ ...sound, events: 1, deliveries: 2 })
    // The delivery in flight at the crash may be sent once more.
    expect(history.repeated).toBeLessThanOrEqual(2)
  })
})

/** Records an event as another version would: directly into the log. */
const recordEvent = async (kind: string, data: object) => {
  const id = Id.make("evt"),
    date = new Date().toISOString()
  const payload = JSON.stringify({ id, kind, schemaVersion: 1, date, entityId: "entity_0", vaultIds: ["vault_0"], data })
  await rig.app.sql(
    `WITH stream AS (UPDATE event_streams SET position = position + 1 WHERE organization_id = 'org_a' RETURNING position),
       logged AS (
         INSERT INTO events (id, organization_id, position, entity_id, vault_id, kind, schema_version, payload, occurred_at)
         SELECT $1, 'org_a', position, 'entity_0', 'vault_0', $2, 1, $3, $4::timestamptz FROM stream)
     INSERT INTO event_outbox (organization_id, position, event_id, entity_id, vault_id, kind)
     SELECT 'org_a', position, $1, 'entity_0', 'vault_0', $2 FROM stream`,
    [id, kind, payload, date]
  )
  return { id, payload }
}

/** A webhook that gets one event, and the request for it. */
const listener = async (path: string, eventKinds: ReadonlyArray<string>) => {
  const { id } = await webhookOf(rig.app, rig.key, 0, rig.receiver.url(path), { eventKinds })
  rig.receiver.on(path, () => new Response("ok"))
  return { id, request: () => until(`the request to ${path}`, () => rig.receiver.to(path)[0]) }
}

describe("an event that is hard to process", () => {
  test("of two MiB is delivered byte for byte, alongside others", async () => {
    const text = hash(++number)
    const feeding = rig.feed(10)
    const { id, payload } = await recordEvent("transaction.confirmed", {
      vaultId: "vault_0",
      transaction: { hash: text },
      padding: "ø".repeat(1_048_576)
    })
    rig.acknowledged.add(text)
    await feeding
    await rig.settle()
    for (const path of ["/one", "/two"]) {
      const requests = rig.receiver.to(path).filter(({ headers }) => headers["webhook-id"] === id)
      expect(requests).toHaveLength(1)
      expect(requests[0]?.body === payload).toBe(true)
    }
    const history = await rig.history()
    report("F28 two MiB", history)
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size })
  })

  test("with unusual characters is delivered as it was fed, and unstorable text is refused", async () => {
    const { request } = await listener("/odd", ["vault.updated"])
    const label = "Z̸̧͑a͡l g\u{1F469}\u200D\u{1F469}\u200D\u{1F467}\u2028\u202Eevil\uFEFF\u{10FFFF}\\\"</script>'; --"
    for (const broken of ["\\u0000", "\\ud800", "\\udc00x"]) {
      const line = JSON.stringify(vault("vault_0", "entity_0", { label: "?" })).replace('"?"', `"${broken}"`)
      const answer = await rig.app.records(`${JSON.stringify(transaction("vault_0", ++number))}\n${line}`)
      expect([answer.status, answer.json.code]).toEqual([400, "invalid_body"])
    }
    expect((await rig.app.feed([vault("vault_0", "entity_0", { label })])).events).toBe(1)
    const { body } = await request()
    expect(JSON.parse(body).data.vault.label).toBe(label)
    expect((await rig.app.get("/v1/vaults/vault_0", rig.key)).json.label).toBe(label)
    const [event] = await rig.app.sql("SELECT payload FROM events WHERE kind = 'vault.updated'")
    expect(event).toEqual({ payload: body })
    await rig.settle()
    expect(await rig.history()).toMatchObject({ ...sound, events: rig.acknowledged.size })
  })

  test("of a kind unknown to this version, as after a downgrade, is delivered and listed", async () => {
    const { id, request } = await listener("/unknown", ["balance.updated"])
    await rig.app.sql("UPDATE webhooks SET event_kinds = '{transaction.exploded}' WHERE id = $1", [id])
    const event = await recordEvent("transaction.exploded", { vaultId: "vault_0", transaction: {} })
    expect((await request()).body).toBe(event.payload)
    await rig.feed(10)
    await rig.settle()
    const delivered = await rig.app.walk(`/v1/webhooks/${id}/deliveries`, rig.key)
    expect(delivered).toMatchObject([{ eventId: event.id, kind: "transaction.exploded", status: "DELIVERED" }])
    expect(await rig.app.walk(`/v1/webhooks/${id}/deliveries?status=DELIVERED`, rig.key)).toEqual(delivered)
    expect((await rig.app.walk("/v1/webhook-events", rig.key)).filter(({ id }) => id === event.id)).toMatchObject([
      { kind: "transaction.exploded", payload: JSON.parse(event.payload) }
    ])
    for (const target of [
      "/v1/webhooks",
      `/v1/webhooks/${id}`,
      `/v1/webhook-events/${event.id}`,
      `/v1/webhook-events/${event.id}/deliveries`
    ])
      expect([target, (await rig.app.get(target, rig.key)).status]).toEqual([target, 200])
    const history = await rig.history()
    report("F28 unknown kind", history)
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size })
  })
})
