/** Expiring keys through the schedule: a real SMTP server gets the e-mails, and a webhook the event. C-13. */
import { afterAll, beforeAll, expect, test } from "bun:test"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import type { Client } from "@temporalio/client"
import { Effect } from "effect"
import { SMTPServer } from "smtp-server"
import { ApiKeys } from "../../../src/access/keys/ApiKeys.ts"
import { App } from "../../support/app.ts"
import { feedOrganization, webhookOf } from "../../support/deliveryFixtures.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"
import { user } from "../../support/records.ts"
import { describeSchedule, operator } from "../../support/temporal.ts"

const DAY = 86_400_000
const mails: Array<{ readonly to: string; readonly text: string }> = []
/** Whether the mail server refuses every message for now, and how many it has refused. */
let refuses = false,
  refused = 0
const smtp = new SMTPServer({
  authOptional: true,
  disabledCommands: ["STARTTLS"],
  onData: async (stream, session, done) => {
    const message = await text(stream)
    if (refuses) {
      refused++
      return done(Object.assign(new Error("try again later"), { responseCode: 451 }))
    }
    mails.push({ to: session.envelope.rcptTo[0]?.address ?? "", text: message.replaceAll("=\r\n", "").replaceAll("=3D", "=") })
    return done()
  }
})
const receiver = new Receiver()
const app = new App()
let owner = "",
  client: Client,
  close: () => Promise<void>

beforeAll(async () => {
  ;({ client, close } = await operator())
  await receiver.open()
  await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", resolve))
  await app.open(["api", "worker", "dispatcher"], {
    ...receiverEnv(receiver),
    SMTP_URL: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`,
    PORTAL_BASE_URL: "https://custody.example.com"
  })
  owner = await feedOrganization(app, 1)
  // Paused, so that it runs only when a test triggers it, and not at its own time.
  await until("the schedule", () =>
    client.schedule
      .getHandle(scheduleId())
      .pause()
      .then(
        () => true,
        () => false
      )
  )
  await app.feed([user("user_ada", "org_a", ["vault_0"], { name: "Ada Keller" })])
})
afterAll(async () => {
  await app.close()
  await close()
  await receiver.close()
  smtp.close(() => {})
})

/** A key of Ada that has been announced at no step and expires in 29 days. */
const dueKey = async (label: string) => {
  const { key, secret } = await app.key("user_ada", { label, expiresAt: new Date(Date.now() + 31 * DAY).toISOString() })
  await app.sql("UPDATE api_keys SET expires_at = expires_at - interval '2 days' WHERE id = $1", [key.id])
  return { id: key.id, secret }
}
const scheduleId = () => `custody-expiring-keys-${app.env["TEMPORAL_TASK_QUEUE"]}`
/** Runs the schedule, and waits for the end of its workflow. */
const look = async () => {
  const before = (await describeSchedule(client, scheduleId())).info.recentActions.length
  await client.schedule.getHandle(scheduleId()).trigger()
  const action = await until("the run", async () => {
    const actions = (await describeSchedule(client, scheduleId())).info.recentActions
    return actions.length > before && actions.at(-1)
  })
  if (action.action.type !== "startWorkflow") throw new Error("the schedule starts no workflow")
  const { firstExecutionRunId, workflowId } = action.action.workflow
  await client.workflow.getHandle(workflowId, firstExecutionRunId).result()
}
const noticesOf = (id: string) => app.sql("SELECT id, channel FROM notices WHERE key_id = $1", [id])

test("its user and the owner learn label, last use and how to rotate it", async () => {
  const webhook = await webhookOf(app, owner, 0, receiver.url("/hook"), { eventKinds: ["api_key.expiring"] })
  const { id, secret } = await dueKey("Ledger import")
  expect((await app.get("/v1/vaults", secret)).status).toBe(200)
  await until(
    "the record of its use",
    async () => (await app.sql("SELECT 1 FROM api_keys WHERE id = $1 AND last_used_at IS NOT NULL", [id]))[0]
  )
  await look()
  const about = () => mails.filter((mail) => mail.text.includes(id))
  await until("two e-mails", () => about().length === 2)
  const [row] = await app.sql("SELECT to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') AS at FROM api_keys WHERE id = $1", [id])
  const [theirs, others] = ["user_ada@example.com", "user_a@example.com"].map((to) => about().find((mail) => mail.to === to)?.text ?? "")
  for (const mail of [theirs, others]) {
    for (const part of [`${row?.["at"]} UTC`, "Ledger import", "Ada Keller", "from 127.0.0.1", "Rotate"]) expect(mail).toContain(part)
    expect(mail).not.toContain(secret)
  }
  expect(theirs).toContain(`https://custody.example.com/portal/keys/new?replaces=${id}`)
  expect(others).not.toContain("https://custody.example.com")
  const event = JSON.parse((await until("the event", () => receiver.to("/hook")[0])).body)
  expect(event).toMatchObject({ kind: "api_key.expiring", entityId: "entity_0", vaultIds: null, data: { apiKeyId: id, daysBefore: 30 } })
  // Another run announces nothing: every e-mail of the first was sent, and no other is recorded.
  await look()
  await until("the record of both", async () => (await noticesOf(id)).every(({ channel }) => channel === "smtp"))
  expect(await noticesOf(id)).toHaveLength(2)
  expect(about()).toHaveLength(2)
  expect((await app.get(`/v1/webhooks/${webhook.id}/deliveries`, owner)).json.data).toHaveLength(1)
})

test("an e-mail that waits is dropped if its key is revoked or has another expiry", async () => {
  refuses = true
  const [revoked, extended] = [await dueKey("revoked"), await dueKey("extended")]
  await look()
  await until("refused e-mails", () => refused >= 4)
  await app.run(Effect.flatMap(ApiKeys, (keys) => keys.revoke(revoked.id)))
  await app.run(
    Effect.flatMap(ApiKeys, (keys) =>
      keys.update(extended.id, { expiresAt: new Date(Date.now() + 300 * DAY).toISOString() }, { mayWiden: true })
    )
  )
  refuses = false
  for (const { id } of [revoked, extended]) {
    await until("the end of its notices", async () => (await noticesOf(id)).length === 0)
    expect(mails.filter((mail) => mail.text.includes(id))).toEqual([])
  }
})
