/**
 * Killed between notifying someone and recording it: an operator by mail, a workflow by a signal. The notification is
 * repeated so that its recipient can recognize the duplicate: the mail has the same Message-ID, the workflow has ended.
 * Part of the long run. Reliability F3. Decisions D-22, D-23.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { AddressInfo } from "node:net"
import { WorkflowNotFoundError } from "@temporalio/client"
import { SMTPServer } from "smtp-server"
import type { Answer, Process } from "../support/app.ts"
import { webhookOf } from "../support/deliveryFixtures.ts"
import { until } from "../support/receiver.ts"
import { address } from "../support/records.ts"
import { operator } from "../support/temporal.ts"
import { long, Rig, report, sound } from "./Rig.ts"

describe.skipIf(!long)("a kill between an effect and its record", () => {
  const rig = new Rig()
  const mails: Array<string> = []
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onData: (stream, _, done) => {
      let text = ""
      stream.on("data", (chunk: Buffer) => {
        text += chunk.toString()
      })
      stream.on("end", () => {
        mails.push(text)
        done()
      })
    }
  })
  let addresses = 0

  beforeAll(async () => {
    await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", resolve))
    await rig.open({
      SMTP_URL: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`,
      // Nothing is told of the endpoint before the webhook is disabled.
      WEBHOOK_HOLD: "off",
      // Long enough that no delivery ends by itself while processes start.
      WEBHOOK_RETRY_SCHEDULE: `0s${",3s".repeat(29)}`
    })
  })
  afterAll(async () => {
    await rig.close()
    smtp.close(() => {})
  })

  /** A failing webhook apart from those of the history, and deliveries of it that wait for their next attempts. */
  const failing = async (path: string, deliveries: number): Promise<Answer["json"]> => {
    const webhook = await webhookOf(rig.app, rig.key, 0, rig.receiver.url(path), { eventKinds: ["deposit_address.created"] })
    rig.receiver.on(path, () => new Response("", { status: 500 }))
    await feedTransactions(deliveries)
    // A process that is killed before it has recorded them leaves nothing that could be made to look old.
    const recorded = () =>
      rig.app.sql("SELECT 1 FROM webhook_health WHERE webhook_id = $1 AND consecutive_failures >= $2", [webhook.id, deliveries])
    await until(`${deliveries} failures`, async () => (await recorded()).length > 0)
    return webhook
  }
  const feedTransactions = (count: number) =>
    rig.app.feed(Array.from({ length: count }, () => address("vault_0", `0x${String(++addresses).padStart(40, "0")}`)))
  const stateOf = async (id: string) => (await rig.app.get(`/v1/webhooks/${id}`, rig.key)).json
  const dies = async ({ child }: Process) => {
    await until("its end", () => child.signalCode !== null || child.exitCode !== null)
    expect(child.signalCode).toBe("SIGKILL")
  }
  /** Restarts so that it is killed at a given place. */
  const restartToDie = async (place: string) => {
    await rig.app.main?.end("SIGKILL")
    return rig.restart({ FAIL_AT: `${place}:1` })
  }
  const statuses = async (id: string) => {
    const rows = await rig.app.walk(`/v1/webhooks/${id}/deliveries`, rig.key)
    return [...new Set(rows.map(({ failureReason, status }) => `${status} ${failureReason}`))]
  }
  const check = async (fault: string, figures: object) => {
    await rig.settle()
    const history = await rig.history()
    report(fault, { ...figures, ...history })
    expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size })
  }

  test("a mail was sent: disabled once, and a second mail has the same Message-ID", async () => {
    const { id } = await failing("/dead", 2)
    const process = await restartToDie("notice-sent")
    const feeding = rig.feed(20, 50)
    await rig.app.sql(
      "UPDATE webhook_health SET failing_since = failing_since - interval '121 hours', consecutive_failures = consecutive_failures + 10 WHERE webhook_id = $1",
      [id]
    )
    await dies(process)
    expect(mails).toHaveLength(1)
    await rig.restart()
    await feeding
    const notices = () => rig.app.sql("SELECT cause, channel, sent_at IS NOT NULL AS sent FROM notices WHERE webhook_id = $1", [id])
    await until("the notice's record", async () => (await notices())[0]?.["sent"] === true, 120)
    await Bun.sleep(3_000)
    expect(await notices()).toEqual([{ cause: expect.stringContaining(`disabled/${id}`), channel: "smtp", sent: true }])
    const ids = mails.map((mail) => /^Message-ID: (.*)$/im.exec(mail)?.[1])
    expect(ids[0]).toContain("@custody-data-service>")
    expect(ids).toEqual([ids[0], ids[0]])
    expect(await stateOf(id)).toMatchObject({ status: "DISABLED", disabledReason: "FAILING", health: { pendingDeliveries: 0 } })
    expect(await statuses(id)).toEqual(["CANCELED WEBHOOK_DISABLED"])
    const events = (await rig.app.walk("/v1/webhook-events?kind=webhook.disabled", rig.key)).filter(
      ({ payload }) => payload.data.webhookId === id
    )
    expect(events).toHaveLength(1)
    await check("F3 killed at notice-sent", { mails: mails.length, notices: 1 })
  })

  test("workflows were signaled to cancel: every delivery is canceled, and nothing is sent", async () => {
    const { id } = await failing("/off", 10)
    const process = await restartToDie("commands-sent")
    const feeding = rig.feed(20, 50)
    // The process may die before it has answered.
    const answer = await rig.app
      .request("PATCH", `/v1/webhooks/${id}`, { key: rig.key, body: { status: "DISABLED" } })
      .catch(() => undefined)
    expect([200, undefined]).toContain(answer?.status)
    const disabled = Date.now()
    await dies(process)
    const left = async () => (await rig.app.sql("SELECT key FROM commands")).length
    const commands = await left()
    expect(commands).toBeGreaterThan(0)
    await rig.restart()
    await feeding
    await until("all commands to be sent", async () => (await left()) === 0)
    expect(await statuses(id)).toEqual(["CANCELED WEBHOOK_DISABLED"])
    const { client, close } = await operator()
    for (const delivery of await rig.app.walk(`/v1/webhooks/${id}/deliveries`, rig.key)) {
      // One that waited in its webhook's queue has no workflow of its own.
      const state = () =>
        client.workflow
          .getHandle(delivery.id)
          .describe()
          .then(
            ({ status }) => status.name,
            (error) => (error instanceof WorkflowNotFoundError ? "none" : Promise.reject(error))
          )
      await until(`the end of ${delivery.id}`, async () => (await state()) !== "RUNNING")
      expect(["CANCELLED", "none"]).toContain(await state())
    }
    await close()
    expect(rig.receiver.to("/off").filter(({ at }) => at > disabled + 1_000)).toEqual([])
    await check("F3 killed at commands-sent", { commands })
  })
})
