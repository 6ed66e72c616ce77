/** The e-mail of a notice. Decision D-23. */
import { expect, test } from "bun:test"
import { Duration } from "effect"
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
  const notice = { ...texts.held(facts), webhookId, description: "Ledger\r\nof the   treasury" }
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
    texts.disabled({ ...facts, gone: false, canceled: 2 }),
    texts.recovered({ webhookId, host: facts.host, since: facts.since, count: 3 })
  ]
  for (const one of all) {
    const { html, text } = messageOf({ ...one, webhookId, description: "" }, undefined)
    expect(text).toBe(one.body)
    expect(html).not.toMatch(/<(img|script|link|style|iframe)|url\(|href=/)
    for (const value of [webhookId, facts.host, facts.since]) expect(html).toContain(value)
    expect(html).toContain("<table")
  }
})

test("a notice of an endpoint that is down says when it is probed", () => {
  expect(texts.held(facts).body).toContain("The endpoint is probed after 30 seconds and later every 5 minutes; after")
  const hourly = noticeTexts({ ...settings, webhookProbeSchedule: [Duration.hours(1)] })
  expect(hourly.held(facts).body).toContain("The endpoint is probed every hour; after")
})

test("text from customers cannot become markup", () => {
  const notice = { ...texts.held({ ...facts, host: `<img src=x onerror="alert('1')">&` }), webhookId, description: "<b>" }
  const { html } = messageOf(notice, undefined)
  expect(html).not.toContain("<img")
  expect(html).not.toContain("<b>")
  expect(html).toContain("&lt;img src=x onerror=&quot;alert(&#x27;1&#x27;)&quot;&gt;&amp;")
})
