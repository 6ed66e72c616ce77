/** The e-mail of a notice. Decision D-23. C-13. */
import { expect, test } from "bun:test"
import { Duration } from "effect"
import { type ExpiringKey, expiringKeyText } from "../../../src/delivery/notices/expiringKeyText.ts"
import { messageOf } from "../../../src/delivery/notices/message.ts"
import { noticeTexts } from "../../../src/delivery/notices/noticeTexts.ts"

const webhookId = "whs_01jz0000000000000000000000"
const settings = {
  webhookRetrySchedule: [Duration.zero, Duration.minutes(5)],
  webhookProbeSchedule: [Duration.seconds(30), Duration.minutes(1), Duration.minutes(5)],
  webhookDisableAfter: Duration.days(5)
}
const texts = noticeTexts(settings)
const facts = {
  webhookId,
  host: "hooks.example.com",
  since: "2026-03-01T10:00:00.000Z",
  failures: 12,
  lastResult: "5xx (503)",
  deliveryId: "del_01jz0000000000000000000000",
  held: 3
}

test("a notice names the webhook's description on one line and links to its page", () => {
  const notice = { ...texts.held(facts), webhookId, keyId: null, description: "Ledger\r\nof the   treasury" }
  const { html, subject, text } = messageOf(notice, "https://custody.example.com/")
  expect(subject).toBe('Webhook "Ledger of the treasury" is on hold: its endpoint is down (hooks.example.com)')
  const page = `https://custody.example.com/portal/webhooks/${webhookId}`
  expect(text).toEndWith(`The webhook in the portal:\n  ${page}\n`)
  expect(html).toContain(`<a href="${page}"`)
  expect(messageOf({ ...notice, description: "" }, undefined).subject).toContain(webhookId)
  expect(messageOf({ ...notice, description: "x".repeat(500) }, undefined).subject.length).toBeLessThan(140)
})

test("every notice is readable without HTML and loads no remote content", () => {
  const all = [
    texts.streak(facts),
    texts.held(facts),
    texts.failed(facts),
    texts.disabled({ ...facts, gone: false, canceled: 2, oldest: null }),
    texts.recovered({ webhookId, host: facts.host, since: facts.since, delivered: 3, retrying: 0, failed: 0 }),
    texts.recovered({ webhookId, host: facts.host, since: facts.since, delivered: 3, retrying: 1, failed: 2 })
  ]
  for (const one of all) {
    const { html, text } = messageOf({ ...one, webhookId, keyId: null, description: "" }, undefined)
    expect(text).toBe(one.body)
    expect(html).not.toMatch(/<(img|script|link|style|iframe)|url\(|href=/)
    for (const value of [webhookId, facts.host, facts.since]) expect(html).toContain(value)
    expect(html).toContain("<table")
  }
})

test("a notice of a disable says how to get what is missed meanwhile", () => {
  for (const [oldest, since] of [
    [null, "2026-03-01T09:00:00.000Z"],
    ["2026-02-27T10:00:00.000Z", "2026-02-27T09:00:00.000Z"]
  ] as const) {
    const { body } = texts.disabled({ ...facts, gone: true, canceled: 2, oldest })
    expect(body).toContain(`POST /v1/webhooks/${webhookId}/recoveries with {"since": "${since}"}`)
  }
})

test("a notice of an endpoint that is down says when it is probed", () => {
  expect(texts.held(facts).body).toContain("The endpoint is probed after 30 seconds and later every 5 minutes; when")
  const hourly = noticeTexts({ ...settings, webhookProbeSchedule: [Duration.hours(1)] })
  expect(hourly.held(facts).body).toContain("The endpoint is probed every hour; when")
})

test("text from customers cannot become markup", () => {
  const notice = { ...texts.held({ ...facts, host: `<img src=x onerror="alert('1')">&` }), webhookId, keyId: null, description: "<b>" }
  const { html } = messageOf(notice, undefined)
  expect(html).not.toContain("<img")
  expect(html).not.toContain("<b>")
  expect(html).toContain("&lt;img src=x onerror=&quot;alert(&#x27;1&#x27;)&quot;&gt;&amp;")
})

const keyId = "key_01jz0000000000000000000000"
const key: ExpiringKey = {
  id: keyId,
  label: "Ledger import",
  hint: "cds_1234…wxyz",
  userName: "Ada Keller",
  expiresAt: "2026-12-05T08:00:30.000Z",
  lastUsedAt: "2026-11-28T07:01:59.999Z",
  lastUsedAddress: "203.0.113.7",
  isTheirs: true
}

test("the e-mail of an expiring key names label, last use, and how to rotate it", () => {
  const { body, subject } = expiringKeyText(key)
  expect(subject).toBe('API key "Ledger import" expires on 2026-12-05 08:00 UTC')
  for (const line of [
    "Label:           Ledger import",
    "Key:             cds_1234…wxyz",
    "Last used:       2026-11-28 07:01 UTC from 203.0.113.7"
  ])
    expect(body.split("\n")).toContain(line)
  expect(body).toContain("To rotate it: under API keys in the portal, Rotate creates a key with the same access")
  const { html, text } = messageOf({ ...expiringKeyText(key), webhookId: null, description: "", keyId }, "https://custody.example.com")
  const page = `https://custody.example.com/portal/keys/new?replaces=${keyId}`
  expect(text).toEndWith(`Rotate the key in the portal:\n  ${page}\n`)
  expect(html).toContain(`<a href="${page}"`)
  expect(html).toContain("<table")
})

test("an owner learns whose key expires, and gets no link to rotate it", () => {
  const { body, subject } = expiringKeyText({ ...key, label: "", lastUsedAt: null, lastUsedAddress: null, isTheirs: false })
  expect(subject).toBe("API key cds_1234…wxyz expires on 2026-12-05 08:00 UTC")
  for (const part of [
    "An API key of Ada Keller expires",
    "Only Ada Keller can rotate it",
    "Label:           none",
    "Last used:       never"
  ])
    expect(body).toContain(part)
  const { html, text } = messageOf({ subject, body, webhookId: null, description: "", keyId: null }, "https://custody.example.com")
  expect(text).toBe(body)
  expect(html).not.toContain("href=")
})
