/**
 * What Temporal stores with TEMPORAL_PAYLOAD_CODEC and TEMPORAL_SHOW_HOSTS, on the real server: nothing readable, deliveries
 * that work, older histories that continue, and a master key that is replaced meanwhile.
 * Decision D-35.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import type { Client } from "@temporalio/client"
import { temporal } from "@temporalio/proto"
import { sealing } from "../../../src/runtime/crypto/MasterKey.ts"
import { payloadCodec } from "../../../src/runtime/temporal/payloadCodec.ts"
import { useApp } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../../support/receiver.ts"
import { operator } from "../../support/temporal.ts"

const ROLES = ["api", "worker", "dispatcher"]
const SEALED = { TEMPORAL_PAYLOAD_CODEC: "aes256gcm" }
const OPEN = { TEMPORAL_PAYLOAD_CODEC: "off" }

const receiver = useReceiver()
const app = useApp([], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1h,1h" }))
let key = "",
  client: Client,
  close: () => Promise<void>

/** The key of a rotation. */
const newer = randomBytes(32).toString("base64")

const begin = async (env: { readonly [name: string]: string }) => {
  await app.main?.end()
  app.main = await app.start(ROLES, env)
}

beforeAll(async () => {
  ;({ client, close } = await operator())
  await begin(SEALED)
  key = await feedOrganization(app, 6)
})
afterAll(() => close())

const statuses = new Map<string, number>()
const urlOf = (name: string) => {
  receiver.on(`/${name}`, () => new Response("", { status: statuses.get(name) ?? 200 }))
  return receiver.url(`/${name}`)
}

/** A delivery whose first attempt failed and whose second waits for an hour, and a function that delivers it now. */
const waiting = async (entity: number, name: string) => {
  statuses.set(name, 503)
  const webhook = await webhookOf(app, key, entity, urlOf(name))
  await feedTransactions(app, [entity])
  const { id } = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "RETRYING")
  const handle = client.workflow.getHandle(id)
  const retry = async () => {
    statuses.set(name, 200)
    // A signal before the workflow waits has no effect, and a repeated one does no harm.
    await until("its next attempt", async () => {
      if ((await handle.describe()).status.name === "RUNNING") await handle.signal("retryNow").catch(() => {})
      return (await deliveryWhen(app, key, webhook.id, () => true)).status === "DELIVERED"
    })
  }
  return { id, handle, retry, webhook }
}

interface Found {
  readonly at: string
  readonly payload: temporal.api.common.v1.Payload
  readonly encoding: string
  readonly text: string
}

/** Every payload in a history, wherever it is. */
const payloadsIn = (value: unknown, at = ""): ReadonlyArray<Found> => {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return []
  if ("metadata" in value && "data" in value && typeof value.metadata === "object") {
    const payload = temporal.api.common.v1.Payload.fromObject(value)
    const { data, metadata } = payload
    return [
      { at, payload, encoding: Buffer.from(metadata?.["encoding"] ?? []).toString(), text: Buffer.from(data ?? []).toString("latin1") }
    ]
  }
  return Object.entries(value).flatMap(([name, one]) => payloadsIn(one, `${at}/${name}`))
}

const historyOf = async (id: string) => {
  const { events } = await client.workflow.getHandle(id).fetchHistory()
  return payloadsIn(temporal.api.history.v1.History.toObject(temporal.api.history.v1.History.fromObject({ events }), { enums: String }))
}
/** Data that Temporal itself uses and that stays readable: search attributes, and the SDK's notes about a step. */
const isTemporals = ({ at }: Found) => /searchAttributes|\/markerRecordedEventAttributes\/details\/(data|patch-data|version)/.test(at)

describe("encrypted payloads in Temporal", () => {
  test("a delivery works, and nothing in its history is readable", async () => {
    const { handle, id, retry, webhook } = await waiting(0, "sealed")
    const metadata = await handle.query("__temporal_workflow_metadata").then(
      (value) => JSON.stringify(value),
      (error: Error) => error.message
    )
    await retry()
    await until("its end", async () => (await handle.describe()).status.name === "COMPLETED")
    const ping = await app.request("POST", `/v1/webhooks/${webhook.id}/ping`, { key })
    expect(ping.json).toMatchObject({ success: true })

    const found = [...(await historyOf(id)), ...(await historyOf(`ping/${ping.json.eventId}`))]
    expect(found.filter((one) => !isTemporals(one) && one.encoding !== "binary/encrypted")).toEqual([])
    // Input, summary, each result, the workflow's result, and those of the ping.
    expect(found.filter(({ encoding }) => encoding === "binary/encrypted").length).toBeGreaterThanOrEqual(7)
    const text = found.map((one) => one.text).join("\n")
    const codec = payloadCodec(sealing(Buffer.from(app.env["MASTER_KEY"] ?? "", "base64"), undefined), true)
    const plain = (await codec.decode(found.map((one) => one.payload))).map(({ data }) => Buffer.from(data ?? []).toString()).join("\n")
    // With their quotes, because an id may contain 5xx.
    for (const known of ["waitsMs", '"5xx"', '"2xx"', "→", "localhost"])
      expect([known, plain.includes(known), text.includes(known)]).toEqual([known, true, false])
    expect(metadata).not.toContain("5xx")

    // Its content is as expected for a holder of the key.
    const summary = (await handle.describe()).raw.executionConfig?.userMetadata?.summary
    const [opened] = await codec.decode(summary == null ? [] : [summary])
    expect(Buffer.from(opened?.data ?? []).toString()).toBe('"transaction.confirmed → localhost"')
  })

  test("failures are not readable: message and stack of an activity's failure are encrypted", async () => {
    const { handle, retry } = await waiting(1, "fails")
    await app.sql("ALTER TABLE delivery_attempts RENAME TO elsewhere")
    try {
      await handle.signal("retryNow")
      const failure = await until("a failed attempt", async () => {
        const [pending] = (await handle.describe()).raw.pendingActivities ?? []
        return pending?.lastFailure ?? undefined
      })
      expect(failure.message).toBe("Encoded failure")
      expect(failure.stackTrace ?? "").toBe("")
      expect(payloadsIn(failure).map(({ encoding }) => encoding)).toEqual(["binary/encrypted"])
    } finally {
      await app.sql("ALTER TABLE elsewhere RENAME TO delivery_attempts")
    }
    await retry()
  })

  test("deliveries from before and after a change of the setting continue", async () => {
    const sealed = await waiting(2, "begun-sealed")
    await begin(OPEN)
    const open = await waiting(3, "begun-open")
    expect((await historyOf(open.id)).filter(({ encoding }) => encoding === "binary/encrypted")).toEqual([])
    await sealed.retry()
    await begin(SEALED)
    await open.retry()
    for (const { handle, id } of [sealed, open]) {
      await until("its end", async () => (await handle.describe()).status.name === "COMPLETED")
      const encodings = new Set((await historyOf(id)).filter((one) => !isTemporals(one)).map(({ encoding }) => encoding))
      expect([...encodings].sort()).toEqual(["binary/encrypted", "json/plain"])
    }
  })

  test("a delivery waits for the master key with which it began, and loses nothing", async () => {
    const { handle, id, retry } = await waiting(4, "rotated")
    const older = app.env["MASTER_KEY"] ?? ""
    await begin({ ...SEALED, MASTER_KEY: newer, MASTER_KEY_PREVIOUS: older })
    // Removed too early.
    await begin({ ...SEALED, MASTER_KEY: newer })
    await handle.signal("retryNow")
    await until("what the log says", () => app.main?.output().includes("neither MASTER_KEY nor MASTER_KEY_PREVIOUS"))
    expect((await handle.describe()).status.name).toBe("RUNNING")
    expect(receiver.to("/rotated")).toHaveLength(1)

    await begin({ ...SEALED, MASTER_KEY: newer, MASTER_KEY_PREVIOUS: older })
    await retry()
    expect(receiver.to("/rotated")).toHaveLength(2)
    const [codec, previous] = [newer, older].map((one) => payloadCodec(sealing(Buffer.from(one, "base64"), undefined), true))
    const { events } = await client.workflow.getHandle(id).fetchHistory()
    const first = events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? []
    expect((await previous?.decode(first))?.length).toBe(1)
    await expect(codec?.decode(first)).rejects.toThrow("neither MASTER_KEY nor MASTER_KEY_PREVIOUS")
  })
})

test("with TEMPORAL_SHOW_HOSTS=off no endpoint host appears anywhere in Temporal", async () => {
  const host = new URL(receiver.url("/")).hostname
  await begin({ ...OPEN, TEMPORAL_SHOW_HOSTS: "off", MASTER_KEY_PREVIOUS: newer })
  const { handle, id, retry, webhook } = await waiting(5, "hidden")
  expect(await (await handle.describe()).staticSummary()).toBe(`transaction.confirmed → ${webhook.id}`)
  const details = JSON.stringify(await handle.query("__temporal_workflow_metadata"))
  await retry()
  const description = await handle.describe()
  const all = [
    details,
    JSON.stringify(description.typedSearchAttributes.getAll()),
    JSON.stringify(description.memo ?? {}),
    ...(await historyOf(id)).map(({ text }) => text)
  ].join("\n")
  expect(all).toContain("waitsMs")
  expect(all).not.toContain(host)
})
