import { beforeAll, describe, expect, test } from "bun:test"
import type { Page } from "playwright-core"
import { until } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { create } from "../webhooks/verbs.ts"
import { found, useOwner, type Visit } from "./visit.ts"

const { app, browser, owner, receiver } = useOwner()
let visit: Visit, page: Page
let webhookId = ""
beforeAll(() => {
  if (!found) return
  visit = owner()
  page = visit.page
})

describe.skipIf(!found)("webhooks and events in a browser", () => {
  test("a webhook is created, pinged, and delivers an event", async () => {
    receiver.on("/hooks", () => new Response("thank you"))
    await page.getByRole("link", { name: "Webhooks" }).click()
    await page.getByText("There are no webhooks").waitFor()
    await page.getByRole("link", { name: "New webhook" }).click()
    await page.getByLabel("URL").fill("https://10.0.0.1/hooks")
    await page.getByLabel("Description").fill("Ledger")
    await page.getByLabel("Northwind Trading AG").check()
    await visit.fine("new webhook")
    await page.getByRole("button", { name: "Create the webhook" }).click()
    await page.getByRole("alert").waitFor()
    await page.getByLabel("URL").fill(receiver.url("/hooks"))
    await page.getByRole("button", { name: "Create the webhook" }).click()
    await page.locator("[data-secret]").waitFor()
    const secret = (await page.locator("[data-secret]").textContent()) ?? ""
    expect(secret).toStartWith("whsec_")
    await page.getByRole("link", { name: "I have stored it" }).click()
    await visit.heading("Ledger").waitFor()
    expect(await page.content()).not.toContain(secret)
    webhookId = page.url().split("/").at(-1) ?? ""
    await page.getByRole("button", { name: "Send a ping" }).click()
    await page.getByText("Your endpoint took it.").waitFor()
    await page.getByText("thank you").waitFor()
    await visit.fine("ping")
    await page.getByRole("button", { name: "Close" }).last().click()
    await app.feed([transaction("vault_a", 1)])
    await page.locator(".delivery .status", { hasText: "Delivered" }).waitFor()
    await page.locator(".delivery summary").first().click()
    await page.getByRole("button", { name: "Redeliver" }).waitFor()
    await visit.fine("webhook")
    await page.getByRole("button", { name: "Request and verification" }).click()
    await page.getByText("x-service-signature").waitFor()
    await visit.fine("request")
    await page.getByRole("tab", { name: "Python" }).click()
    await page.getByText("compare_digest").waitFor()
    await page.keyboard.press("Escape")
  }, 180_000)

  test("a failing delivery shows its attempts, is retried now, and is sent again", async () => {
    receiver.on("/hooks", (_, count) => new Response("no, not now", { status: count > 3 ? 200 : 503 }))
    await app.feed([transaction("vault_a", 2)])
    const waiting = page.locator(".delivery", { hasText: "Retrying" })
    await waiting.waitFor()
    await waiting.locator("summary").click()
    await page.getByText("HTTP 503").waitFor()
    await page.getByText("no, not now").waitFor()
    receiver.on("/hooks", () => new Response("yes"))
    await page.getByRole("button", { name: "Retry now" }).click()
    await page.getByText("2 attempts").waitFor()
    await page.locator(".delivery", { hasText: "2 attempts" }).getByText("Delivered", { exact: true }).waitFor()
    await page.locator(".delivery", { hasText: "2 attempts" }).getByRole("button", { name: "Redeliver" }).click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Redeliver" }).click()
    await until("the redelivery", () => receiver.to("/hooks").length >= 5, 60)
    await page.getByLabel("Status").selectOption("RETRYING")
    await page.getByText("No delivery is like that").waitFor()
    await page.getByRole("link", { name: "Webhooks" }).first().click()
    await page.locator(".row.webhook .status", { hasText: "Healthy" }).waitFor()
    await visit.fine("webhooks")
  }, 180_000)

  test("a secret is rotated with a countdown, and a webhook is disabled, enabled and edited", async () => {
    await visit.goto(`/webhooks/${webhookId}`)
    await page.getByRole("button", { name: "Rotate secret" }).click()
    await page.getByRole("button", { name: "Rotate", exact: true }).click()
    const secret = page.locator("[data-secret]")
    await secret.waitFor()
    expect(await secret.textContent()).toStartWith("whsec_")
    await visit.fine("rotated")
    await page.getByRole("button", { name: "I have stored it" }).click()
    await page.getByText(/signs along for\s+23:59/).waitFor()
    await page.getByRole("button", { name: "Disable" }).click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Disable" }).click()
    await page.getByText("It was disabled by hand.").waitFor()
    await visit.fine("disabled webhook")
    await page.getByRole("button", { name: "Enable" }).click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Enable" }).click()
    await page.getByRole("button", { name: "Disable" }).waitFor()
    await page.getByRole("link", { name: "Edit" }).click()
    await page.getByLabel("balance.updated").check()
    await page.getByRole("button", { name: "Save" }).click()
    await page.locator(".tag", { hasText: "balance.updated" }).waitFor()
  }, 180_000)

  test("events follow what happens, with counts, filters and the payload", async () => {
    await page.getByRole("link", { name: "Events", exact: true }).click()
    await page.locator(".row.event").first().waitFor()
    await app.feed([{ type: "balance", vaultId: "vault_b", asset: "ethereum/native", amount: "8" }])
    await page.locator(".row.event", { hasText: "balance.updated" }).getByText("1 matched, 1 delivered").waitFor()
    await visit.fine("events")
    await page.getByLabel("Kind").selectOption("balance.updated")
    await until("the filter", async () => (await page.locator(".row.event").count()) === 1, 30)
    await page.getByRole("link", { name: "balance.updated" }).click()
    await page.getByText('"amount": "8"').waitFor()
    await page.locator(".delivery summary").click()
    await visit.fine("event")
    await visit.goto("/events?kind=vault.created")
    await page.getByText("No event is like that").waitFor()
    await visit.fine("no events")
  }, 180_000)

  test("a webhook is deleted after a question, and is gone", async () => {
    const { secret } = await app.key("user_a")
    const { id } = await create(app, secret, { description: "To be deleted" })
    await visit.goto(`/webhooks/${id}`)
    await page.getByRole("button", { name: "Delete" }).click()
    await page.getByRole("button", { name: "Delete the webhook" }).click()
    await visit.heading("Webhooks").waitFor()
    await page.getByRole("link", { name: "Ledger" }).waitFor()
    await until("it is gone", async () => (await page.getByText("To be deleted").count()) === 0, 30)
    expect((await app.get(`/v1/webhooks/${id}`, secret)).status).toBe(404)
  }, 180_000)

  test("no page asked another host, broke its policy, or failed in its script", () => {
    expect(browser.faults).toEqual([])
  })
})
