/**
 * Automatic disable and operational notices, with a real SMTP server: which causes send a notice, that each sends one, and
 * what a disable does. Streaks last hours, so tests move their start back.
 * Spec: Delivery contract; automatic disable. Decision D-23.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import type { Client } from "@temporalio/client"
import { SMTPServer } from "smtp-server"
import * as Id from "../../../src/values/Id.ts"
import { type Answer, App } from "../../support/app.ts"
import {
  deliveriesOf,
  deliveryWhen,
  feedOrganization,
  feedOtherOrganization,
  feedTransactions,
  webhookOf
} from "../../support/deliveryFixtures.ts"
import { Receiver, receiverEnv, until } from "../../support/receiver.ts"
import { operator } from "../../support/temporal.ts"

interface Mail {
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly text: string
}

const mails: Array<Mail> = []
/** How many messages to an address the mail server will refuse temporarily. */
const refused = new Map<string, number>()
/** Goes on with each recipient that the mail server is slow to accept. */
const slow: Array<() => void> = []
const smtp = new SMTPServer({
  authOptional: true,
  disabledCommands: ["STARTTLS"],
  onRcptTo: ({ address }, _, done) => {
    if (address.endsWith("@slow.example.com")) slow.push(done)
    else done()
  },
  onData: async (stream, session, done) => {
    const message = await text(stream)
    const [to = ""] = session.envelope.rcptTo.map(({ address }) => address)
    const more = refused.get(to) ?? 0
    if (more > 0) {
      refused.set(to, more - 1)
      return done(Object.assign(new Error("try again later"), { responseCode: 451 }))
    }
    const { mailFrom, rcptTo } = session.envelope
    mails.push({
      from: mailFrom === false ? "" : mailFrom.address,
      to: rcptTo.map(({ address }) => address),
      // An overlong line of the body is folded; in the header, such a line end belongs to an encoded word.
      text: message.replace(/\r\n\r\n.*/s, (body) => body.replaceAll("=\r\n", ""))
    })
    return done()
  }
})

const receiver = new Receiver()
const app = new App()
/** A service without a mail server. */
const silent = new App()
let key = "",
  client: Client,
  close: () => Promise<void>

beforeAll(async () => {
  ;({ client, close } = await operator())
  await receiver.open()
  await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", resolve))
  await Promise.all([
    app.open(["api", "worker", "dispatcher"], {
      ...receiverEnv(receiver),
      WEBHOOK_RETRY_SCHEDULE: "0s,1s",
      SMTP_URL: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`,
      NOTICE_FROM: "custody@example.com",
      PORTAL_BASE_URL: "https://custody.example.com"
    }),
    silent.open(["api", "worker", "dispatcher"], { ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s" })
  ])
  key = await feedOrganization(app, 11)
})
afterAll(async () => {
  await Promise.all([app.close(), silent.close(), close()])
  await receiver.close()
  smtp.close(() => {})
})

const answering = (path: string, status: () => number) => {
  receiver.on(path, () => new Response("", { status: status() }))
  return receiver.url(path)
}

/** Mails about a webhook, by subject. */
const about = (id: string) => mails.filter(({ text }) => text.includes(id))
const subject = ({ text }: Mail) =>
  (/^Subject: (.*(?:\r\n .*)*)/m.exec(text)?.[1] ?? "")
    .replaceAll(/\?=\r\n =\?UTF-8\?Q\?/g, "")
    .replaceAll("\r\n", "")
    .replaceAll(/=\?UTF-8\?Q\?(.*?)\?=/g, (_, word: string) =>
      word.replaceAll("_", " ").replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    )

/** Waits until every recorded notice of a webhook was sent: nothing would send another. */
const allSent = (id: string) =>
  until("the end of the notices' workflows", async () => {
    const rows = await app.sql("SELECT id FROM notices WHERE webhook_id = $1", [id])
    const states = await Promise.all(
      rows.map(({ id }) =>
        client.workflow
          .getHandle(String(id))
          .describe()
          // It may not have been started.
          .catch(() => undefined)
      )
    )
    return states.every((state) => state?.status.name === "COMPLETED")
  })

/** Makes a webhook's streak of failures this many hours older and this many failures longer. */
const setBack = (id: string, hours: number, failures = 0) =>
  app.sql(
    "UPDATE webhook_health SET failing_since = failing_since - make_interval(hours => $2), gone_at = gone_at - make_interval(hours => $2), consecutive_failures = consecutive_failures + $3 WHERE webhook_id = $1",
    [id, hours, failures]
  )

const failedOnce = (webhook: Answer["json"]) => deliveryWhen(app, key, webhook.id, ({ status }) => status === "FAILED")
/** One more event, and its delivery once it has FAILED. */
const next = async (entity: number, webhook: Answer["json"]) => {
  const known = new Set((await deliveriesOf(app, key, webhook.id)).map(({ id }) => id))
  await feedTransactions(app, [entity])
  return deliveryWhen(app, key, webhook.id, ({ id, status }) => !known.has(id) && status === "FAILED")
}
const mailsWhen = (id: string, count: number) => until(`${count} mails`, () => about(id).length >= count && about(id))

test("slow recipients of one organization do not hold up another's notices", async () => {
  await feedOtherOrganization(app)
  const notices = async (organizationId: string, recipients: ReadonlyArray<string>) => {
    const ids = recipients.map(() => Id.make("ntc"))
    await app.sql(
      `INSERT INTO notices (id, organization_id, cause, recipient, subject, body)
       SELECT id, $1, id, recipient, 'About keys', 'Something.' FROM unnest($2::text[], $3::text[]) AS n (id, recipient)`,
      [organizationId, ids, recipients]
    )
    await app.sql("INSERT INTO commands (key) SELECT unnest($1::text[])", [ids])
    await until("the commands to be sent", async () => (await app.sql("SELECT 1 FROM commands WHERE key = ANY($1)", [ids])).length === 0)
    return ids
  }
  const to = (domain: string) => mails.filter((mail) => mail.to.some((address) => address.endsWith(domain))).length
  const many = Array.from({ length: 200 }, (_, number) => `${number}@slow.example.com`)
  await notices("org_b", many)
  await until("the slow recipients", () => slow.length === 10)
  const [quick = ""] = await notices("org_a", ["quick@quick.example.com"])
  // It waits for its turn.
  await until("its activity", async () => ((await client.workflow.getHandle(quick).describe()).raw.pendingActivities ?? []).length === 1)
  for (let accepted = 1; to("@quick.example.com") === 0; accepted++) {
    await until("a slow recipient", () => slow.length > 0 || to("@quick.example.com") > 0)
    slow.shift()?.()
    await until("its mail, or the other's", () => to("@slow.example.com") >= accepted || to("@quick.example.com") > 0)
  }
  expect(to("@slow.example.com")).toBeLessThan(40)
  await until("the slow ones", () => {
    for (const done of slow.splice(0)) done()
    return to("@slow.example.com") === many.length
  })
})

describe.concurrent("notices by e-mail to the notification address", () => {
  test("nothing is sent while Postgres cannot write, and notices already sent are not sent again", async () => {
    const address = answering("/full", () => 500)
    const webhook = await webhookOf(app, key, 10, address, { notificationEmail: "full@example.com" })
    // Fails as a full disk does: first every change of a notice, then the record that it was sent. A sequence counts refused
    // changes: it keeps what a transaction that fails took from it.
    const refuse = (change: string) =>
      app.sql(`CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF ${change} THEN PERFORM nextval('full_disks'); RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END IF;
        RETURN NEW; END $$`)
    const refusals = (count: number) =>
      until(
        "refused changes",
        async () => Number((await app.sql("SELECT last_value FROM full_disks WHERE is_called"))[0]?.["last_value"] ?? 0) >= count
      )
    await app.sql("CREATE SEQUENCE full_disks")
    await refuse("true")
    await app.sql(
      `CREATE TRIGGER full_disk BEFORE UPDATE ON notices FOR EACH ROW WHEN (NEW.webhook_id = '${webhook.id}') EXECUTE FUNCTION full_disk()`
    )
    await next(10, webhook)
    // The first retries follow after seconds, and each later one after twice the time.
    await refusals(2)
    expect(about(webhook.id)).toHaveLength(0)
    await app.sql("ALTER SEQUENCE full_disks RESTART")
    await refuse("NEW.sent_at IS NOT NULL")
    await mailsWhen(webhook.id, 1)
    await refusals(5)
    expect(about(webhook.id)).toHaveLength(1)
    await app.sql("DROP FUNCTION full_disk CASCADE")
    await allSent(webhook.id)
    expect(await app.sql("SELECT sent_at IS NOT NULL AS sent FROM notices WHERE webhook_id = $1", [webhook.id])).toEqual([{ sent: true }])
    expect(about(webhook.id)).toHaveLength(1)
  })

  test("the first FAILED delivery of a day sends one, and later ones send none", async () => {
    const webhook = await webhookOf(
      app,
      key,
      0,
      answering("/failed", () => 500),
      { notificationEmail: "first@example.com", description: "Ledger of the treasury" }
    )
    const delivery = await next(0, webhook)
    const [mail] = await mailsWhen(webhook.id, 1)
    expect(mail).toMatchObject({ from: "custody@example.com", to: ["first@example.com"] })
    expect(subject(mail ?? { from: "", to: [], text: "" })).toContain("failed permanently")
    for (const part of [webhook.id, "localhost", delivery.id, "5xx (500)", "/redeliver"]) expect(mail?.text).toContain(part)
    expect(subject(mail ?? { from: "", to: [], text: "" })).toContain('webhook "Ledger of the treasury"')
    // The text and the HTML part have the same content, and both link to the webhook's page.
    expect(mail?.text).toContain("Content-Type: multipart/alternative")
    expect(mail?.text).toContain("Content-Type: text/html")
    expect(mail?.text.split(`https://custody.example.com/portal/webhooks/${webhook.id}`)).toHaveLength(3)
    // A URL's path may contain a secret.
    expect(mail?.text).not.toContain("/failed")
    // A notice is recorded with the failure that causes it.
    await next(0, webhook)
    await allSent(webhook.id)
    expect(about(webhook.id)).toHaveLength(1)
    const rows = await app.sql("SELECT channel, sent_at IS NOT NULL AS sent FROM notices WHERE webhook_id = $1", [webhook.id])
    expect(rows).toEqual([{ channel: "smtp", sent: true }])
    // A day later another one is sent.
    await app.sql("UPDATE notices SET created_at = created_at - interval '25 hours' WHERE webhook_id = $1", [webhook.id])
    await next(0, webhook)
    await mailsWhen(webhook.id, 2)
  })

  test("a streak of 10 failed attempts over an hour sends one, once per streak", async () => {
    const webhook = await webhookOf(
      app,
      key,
      1,
      answering("/streak", () => 503)
    )
    for (let round = 0; round < 4; round++) {
      await feedTransactions(app, [1])
      await until(
        "two more failures",
        async () => (await app.get(`/v1/webhooks/${webhook.id}`, key)).json.health.consecutiveFailures === (round + 1) * 2
      )
    }
    await setBack(webhook.id, 2)
    await feedTransactions(app, [1])
    await until("ten failures", async () => (await app.get(`/v1/webhooks/${webhook.id}`, key)).json.health.consecutiveFailures === 10)
    const streaks = () => about(webhook.id).filter((mail) => subject(mail).includes("is failing"))
    await until("the notice of the streak", () => streaks().length === 1)
    expect((await app.get(`/v1/webhooks/${webhook.id}`, key)).json).toMatchObject({ status: "ACTIVE", health: { state: "FAILING" } })
    await next(1, webhook)
    await allSent(webhook.id)
    expect(streaks()).toHaveLength(1)
  })

  test("a notice that the mail server refuses temporarily is retried and sent once", async () => {
    const address = "patient@example.com"
    refused.set(address, 2)
    const webhook = await webhookOf(
      app,
      key,
      2,
      answering("/patient", () => 500),
      { notificationEmail: address }
    )
    await next(2, webhook)
    await mailsWhen(webhook.id, 1)
    expect(refused.get(address)).toBe(0)
    await allSent(webhook.id)
    expect(about(webhook.id)).toHaveLength(1)
    const [notice] = await app.sql("SELECT id FROM notices WHERE webhook_id = $1", [webhook.id])
    const { events } = await client.workflow.getHandle(String(notice?.["id"])).fetchHistory()
    const limits = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) => scheduled?.scheduleToCloseTimeout ?? [])
    expect(limits.map(({ seconds }) => Number(seconds))).toEqual([31 * 86_400])
  })
})

describe.concurrent("automatic disable", () => {
  const disabledOnce = Promise.withResolvers<string>()

  test("no 2xx for 120 hours over two deliveries: DISABLED as FAILING, with one mail", async () => {
    const log = await webhookOf(
      app,
      key,
      3,
      answering("/log", () => 200),
      { eventKinds: ["webhook.disabled"] }
    )
    const webhook = await webhookOf(
      app,
      key,
      3,
      answering("/failing", () => 500)
    )
    await next(3, webhook)
    await setBack(webhook.id, 121, 7)
    // One delivery alone does not disable; a second one does.
    await feedTransactions(app, [3])
    const disabled = await until("the disable", async () => {
      const { json } = await app.get(`/v1/webhooks/${webhook.id}`, key)
      return json.status === "DISABLED" && json
    })
    expect(disabled).toMatchObject({ disabledReason: "FAILING", disabledAt: expect.any(String), health: { pendingDeliveries: 0 } })
    const [latest] = await deliveriesOf(app, key, webhook.id)
    expect(latest).toMatchObject({ status: "CANCELED", failureReason: "WEBHOOK_DISABLED", nextAttemptAt: null })
    expect(latest.attempts).toHaveLength(1)
    const disables = () => about(webhook.id).filter((mail) => subject(mail).includes("was disabled"))
    await until("the mail", () => disables().length === 1)
    for (const part of [webhook.id, "localhost", "5 days", '"status": "ACTIVE"', "/recoveries"])
      expect(disables()[0]?.text.replaceAll("=22", '"')).toContain(part)
    const event = JSON.parse((await until("the event", () => receiver.to("/log")[0])).body)
    expect(event).toMatchObject({
      kind: "webhook.disabled",
      entityId: "entity_3",
      vaultIds: null,
      data: { webhookId: webhook.id, webhook: { status: "DISABLED", disabledReason: "FAILING", disabledAt: disabled.disabledAt } }
    })
    expect(log.status).toBe("ACTIVE")
    // Nothing is matched or sent any more.
    const newestEvent = async () =>
      (await app.get("/v1/webhook-events?entityId=entity_3&kind=transaction.confirmed&limit=1", key)).json.data[0]
    const sent = receiver.to("/failing").length
    const before = (await newestEvent()).id
    await feedTransactions(app, [3])
    const last = await until("its dispatch", async () => {
      const found = await newestEvent()
      return found.id !== before && found.dispatchedAt !== null && found
    })
    expect((await app.get(`/v1/webhook-events/${last.id}`, key)).json.matchedCount).toBe(0)
    await allSent(webhook.id)
    expect(receiver.to("/failing")).toHaveLength(sent)
    expect(disables()).toHaveLength(1)
    // The delivery of the last attempt is one of them, and the recovery begins before the oldest one.
    const [row] = await app.sql(
      "SELECT count(*)::int AS canceled, min(created_at) AS oldest FROM deliveries WHERE webhook_id = $1 AND status = 'CANCELED'",
      [webhook.id]
    )
    expect(disables()[0]?.text).toMatch(new RegExp(`^Canceled: +${row?.["canceled"]} deliver`, "m"))
    const since = /"since": "([^"]+)"/.exec(disables()[0]?.text ?? "")?.[1]
    expect(Date.parse(since ?? "")).toBeLessThan(Number(row?.["oldest"]))
    disabledOnce.resolve(webhook.id)
  })

  test("enabling starts a new streak: one more failure does not disable again", async () => {
    const id = await disabledOnce.promise
    const listed = (await app.get("/v1/webhooks?status=DISABLED", key)).json.data
    expect(listed.map((one: Answer["json"]) => one.id)).toContain(id)
    const enabled = await app.request("PATCH", `/v1/webhooks/${id}`, { key, body: { status: "ACTIVE" } })
    expect(enabled.json).toMatchObject({ status: "ACTIVE", disabledReason: null, disabledAt: null })
    await feedTransactions(app, [3])
    await deliveryWhen(app, key, id, ({ attempts, status }) => attempts.length === 2 && status === "FAILED")
    expect((await app.get(`/v1/webhooks/${id}`, key)).json).toMatchObject({ status: "ACTIVE", health: { consecutiveFailures: 2 } })
  })

  test("a single delivery disables nothing, however long it fails; a 2xx ends the streak", async () => {
    let status = 500
    const { promise: movedBack, resolve: release } = Promise.withResolvers<void>()
    receiver.on("/alone", async (_, count) => {
      // However busy the machine, the second attempt fails after the streak was moved back.
      if (count === 2) await movedBack
      return new Response("", { status })
    })
    const webhook = await webhookOf(app, key, 4, receiver.url("/alone"))
    await feedTransactions(app, [4])
    await deliveryWhen(app, key, webhook.id, ({ attempts }) => attempts[0]?.result === "5xx")
    await setBack(webhook.id, 200, 20)
    release()
    await failedOnce(webhook)
    expect((await app.get(`/v1/webhooks/${webhook.id}`, key)).json.status).toBe("ACTIVE")
    status = 200
    await feedTransactions(app, [4])
    await deliveryWhen(app, key, webhook.id, (one) => one.status === "DELIVERED")
    status = 500
    await next(4, webhook)
    const { health, status: now } = (await app.get(`/v1/webhooks/${webhook.id}`, key)).json
    expect([now, health.consecutiveFailures, health.state]).toEqual(["ACTIVE", 2, "DEGRADED"])
  })

  test("nine failed attempts in 120 hours disable nothing, and the tenth does", async () => {
    const webhook = await webhookOf(
      app,
      key,
      7,
      answering("/nine", () => 500)
    )
    await next(7, webhook)
    await setBack(webhook.id, 121, 5)
    await next(7, webhook)
    expect((await app.get(`/v1/webhooks/${webhook.id}`, key)).json).toMatchObject({ status: "ACTIVE", health: { consecutiveFailures: 9 } })
    await feedTransactions(app, [7])
    await until("the disable", async () => (await app.get(`/v1/webhooks/${webhook.id}`, key)).json.disabledReason === "FAILING")
  })

  test("a failure more than 48 hours after the previous one starts a new streak", async () => {
    const webhook = await webhookOf(
      app,
      key,
      8,
      answering("/idle", () => 410)
    )
    await next(8, webhook)
    await setBack(webhook.id, 8 * 24, 20)
    const before = (hours: number) =>
      app.sql("UPDATE webhook_health SET last_failure_at = last_failure_at - make_interval(hours => $2) WHERE webhook_id = $1", [
        webhook.id,
        hours
      ])
    await before(49)
    await next(8, webhook)
    const { health, status } = (await app.get(`/v1/webhooks/${webhook.id}`, key)).json
    expect([status, health.consecutiveFailures, health.state]).toEqual(["ACTIVE", 2, "DEGRADED"])
    expect(Date.now() - Date.parse(health.failingSince)).toBeLessThan(60_000)
    // A failure within 48 hours belongs to it.
    await before(47)
    await next(8, webhook)
    expect((await app.get(`/v1/webhooks/${webhook.id}`, key)).json.health.consecutiveFailures).toBe(4)
  })

  test("two 410s at least five minutes apart: DISABLED as GONE", async () => {
    const webhook = await webhookOf(
      app,
      key,
      5,
      answering("/gone", () => 410)
    )
    await next(5, webhook)
    expect((await app.get(`/v1/webhooks/${webhook.id}`, key)).json.status).toBe("ACTIVE")
    await setBack(webhook.id, 1)
    await feedTransactions(app, [5])
    await until("the disable", async () => (await app.get(`/v1/webhooks/${webhook.id}`, key)).json.disabledReason === "GONE")
    const mail = await until("the mail", () => about(webhook.id).find((one) => subject(one).includes("was disabled")))
    expect(mail.text).toContain("410 Gone")
  })

  test("many deliveries that fail at once disable once, with one mail and one event", async () => {
    const { promise: inFlight, resolve: release } = Promise.withResolvers<void>()
    receiver.on("/burst", async (_, count) => {
      // The attempts of all but the first delivery.
      if (count > 2) await inFlight
      return new Response("", { status: 500 })
    })
    const webhook = await webhookOf(app, key, 6, receiver.url("/burst"))
    await next(6, webhook)
    await setBack(webhook.id, 121, 8)
    // At once, so that the first of them are in flight together before one times out.
    await feedTransactions(
      app,
      Array.from({ length: 16 }, () => 6)
    )
    await until("attempts in flight", () => receiver.to("/burst").length >= 2 + 8)
    release()
    await until("the disable", async () => (await app.get(`/v1/webhooks/${webhook.id}`, key)).json.status === "DISABLED")
    await until("the mail", () => about(webhook.id).some((one) => subject(one).includes("was disabled")))
    await until("every delivery's end", async () => (await app.get(`/v1/webhooks/${webhook.id}`, key)).json.health.pendingDeliveries === 0)
    await allSent(webhook.id)
    expect(about(webhook.id).filter((one) => subject(one).includes("was disabled"))).toHaveLength(1)
    const events = (await app.walk("/v1/webhook-events?kind=webhook.disabled", key)).filter(
      ({ payload }) => payload.data.webhookId === webhook.id
    )
    expect(events).toHaveLength(1)
  })
})

describe.concurrent("notices without SMTP_URL", () => {
  test("a notice is recorded and logged", async () => {
    const own = await feedOrganization(silent, 1)
    const webhook = await webhookOf(
      silent,
      own,
      0,
      answering("/silent", () => 500)
    )
    await feedTransactions(silent, [0])
    const row = await until(
      "the notice",
      async () => (await silent.sql("SELECT subject, channel FROM notices WHERE sent_at IS NOT NULL"))[0]
    )
    expect(row).toEqual({ subject: `A delivery to webhook ${webhook.id} failed permanently (localhost)`, channel: "log" })
    await until("the log line", () => silent.main?.output().includes(`A delivery to webhook ${webhook.id} failed permanently`))
  })
})
