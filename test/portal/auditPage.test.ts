import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import type { Page, Route } from "playwright-core"
import { user } from "../support/records.ts"
import { create, patch } from "../support/webhookFixtures.ts"
import { PASSWORD, signedIn, Visitor } from "./client.ts"
import { hasBrowser, type PortalPage, useOwner } from "./PortalPage.ts"

const { app, browser, owner, receiver } = useOwner()
let portal: PortalPage, page: Page
beforeAll(() => {
  if (!hasBrowser) return
  portal = owner()
  page = portal.page
})

const entry = (text: string | RegExp) => page.getByRole("list", { name: "Audit log" }).getByRole("listitem").filter({ hasText: text })

describe.skipIf(!hasBrowser)("the audit log in a browser", () => {
  test("an entry says who did what, with which key, when and from where", async () => {
    const { secret } = await app.key("user_a", { label: "Back office" })
    await app.key("user_a", { label: "Treasury", vaultIds: ["vault_a", "vault_c"] })
    const { id } = await create(app, secret, { url: receiver.url("/hooks"), description: "Ledger" })
    await patch(app, secret, id, { status: "PAUSED" })
    const { backupCodes } = await signedIn(app, "user_m")
    const again = new Visitor(app)
    await again.request("POST", "/api/sign-in", { email: "max@northwind.example", password: PASSWORD })
    expect((await again.request("POST", "/api/sign-in/second-factor", { code: backupCodes[0] })).status).toBe(200)
    const { key: other } = await app.key("user_m", { label: "Max's import" })
    await page.evaluate(`Promise.all(["members/user_m/end-sessions", "keys/${other.id}/revoke"].map((path) => fetch("/portal/api/" + path,
      { method: "POST", headers: { "content-type": "application/json", "x-portal": "1" }, body: "{}" })))`)
    await page.getByRole("link", { name: "Audit log" }).click()
    await entry("Ada Keller created the webhook Ledger").waitFor()
    const changed = entry("Ada Keller changed the webhook Ledger")
    expect(await changed.textContent()).toMatch(/status: ACTIVE → PAUSED\s*With the API key Back office from 127\.0\.0\.1.*\d\d:\d\d:\d\d/)
    await entry("An operator created the API key Back office for all vaults").waitFor()
    await entry("An operator created the API key Treasury for the vaults Exchange hot wallet and Cold treasury").waitFor()
    await entry("Max Muster signed in with an authenticator app").waitFor()
    expect(await entry("Max Muster signed in with a backup code").textContent()).not.toContain("second factor")
    await entry("Max Muster used a backup code").waitFor()
    await entry(/An operator invited Max Muster.*At the command line/).waitFor()
    await entry("Ada Keller ended the sessions of Max Muster").waitFor()
    // A key has a page only for its user.
    const revoked = entry("Ada Keller revoked the API key Max's import")
    await revoked.waitFor()
    expect([
      await revoked.getByRole("link", { name: "Open" }).count(),
      await changed.getByRole("link", { name: "Back office" }).count()
    ]).toEqual([0, 1])
    expect(await changed.getByRole("link", { name: "Open Ledger" }).getAttribute("href")).toBe(`/portal/webhooks/${id}`)
    await entry(/Ada Keller accepted the invitation.*In the portal from/)
      .first()
      .waitFor()
    expect(await page.locator("main").textContent()).not.toMatch(/whs_|user_|key_/)
    await portal.expectAccessible("audit log")
  })

  test("entries are filtered by person, action and time, in a link and in the file", async () => {
    await page.getByLabel("Action").selectOption({ label: "Webhook updated" })
    await entry("created the webhook").waitFor({ state: "detached" })
    await entry("changed the webhook Ledger").waitFor()
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export CSV" }).click()])
    const [head, ...lines] = fs
      .readFileSync(await file.path(), "utf8")
      .trim()
      .split("\r\n")
    expect(head).toStartWith("at,who,what,key,clientAddress,changes,action,")
    expect(lines).toEqual([expect.stringMatching(/^[^,]+Z,Ada Keller,changed the webhook Ledger,Back office,127\.0\.0\.1,.*PAUSED/)])
    await page.getByLabel("Person").selectOption({ label: "Max Muster" })
    await page.getByText("No entries match these filters").waitFor()
    expect(new URL(page.url()).search).toBe("?action=webhook.updated&actor=user_m")
    await page.getByRole("button", { name: "Clear filters" }).click()
    await page.getByLabel("Until").fill("2026-01-01T00:00")
    await page.getByText("No entries match these filters").waitFor()
    await page.getByRole("button", { name: "Clear filters" }).click()
    await entry("created the webhook").waitFor()
  })

  test("a target's name shows only what was done to it, in link and file", async () => {
    await page.getByLabel("Action").selectOption({ label: "Webhook updated" })
    await entry("changed the webhook Ledger").getByRole("link", { name: "Ledger", exact: true }).click()
    await page.getByRole("button", { name: "Clear filters" }).waitFor()
    const chip = page.getByRole("button", { name: "Remove the filter Target: Ledger" })
    await chip.waitFor()
    expect(new URL(page.url()).search).toMatch(/^\?action=webhook\.updated&target=whs_\w+$/)
    await page.getByLabel("Action").selectOption({ label: "Any" })
    await entry("created the webhook Ledger").waitFor()
    expect(await page.getByRole("list", { name: "Audit log" }).getByRole("listitem").count()).toBe(2)
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export CSV" }).click()])
    expect(
      fs
        .readFileSync(await file.path(), "utf8")
        .trim()
        .split("\r\n")
    ).toHaveLength(3)
    await portal.expectAccessible("audit log of a webhook")
    await page.reload()
    await entry("created the webhook Ledger").waitFor()
    await chip.click()
    await entry("Ada Keller revoked the API key").waitFor()
    await entry("revoked the API key Max's import").getByRole("link", { name: "Max's import" }).click()
    await page.getByRole("button", { name: "Remove the filter Target: Max's import" }).waitFor()
    await entry("revoked the API key Max's import").waitFor()
    await entry("An operator created the API key Max's import for all vaults").waitFor()
  })

  test("an export waits while the service is busy", async () => {
    const busy = { status: 503, headers: { "retry-after": "1" }, json: { code: "service_unavailable", detail: "Busy." } }
    let refusals = 0
    const refuse = (route: Route) => {
      refusals++
      return route.fulfill(busy)
    }
    await page.route("**/api/v1/audit-log?*", refuse, { times: 1 })
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export CSV" }).click()])
    expect(fs.readFileSync(await file.path(), "utf8")).toContain("revoked the API key Max's import")
    expect(refusals).toBe(1)
  })

  test("a person's entries are shown, however many people there are", async () => {
    await app.feed(Array.from({ length: 500 }, (_, number) => user(`user_${number}`, "org_a", [], { name: `Aaron ${number}` })))
    await portal.goto("/audit-log?action=account.signed_in")
    await page.getByLabel("Person").locator("option", { hasText: "More people" }).waitFor({ state: "attached" })
    expect(await page.getByLabel("Person").locator("option", { hasText: "Max Muster" }).count()).toBe(0)
    await entry("Max Muster signed in").getByRole("link", { name: "Max Muster" }).first().click()
    await entry("Ada Keller signed in").first().waitFor({ state: "detached" })
    await entry("Max Muster signed in").first().waitFor()
    expect(await page.getByLabel("Person").inputValue()).toBe("user_m")
  })

  test("no page contacted another host, violated its policy or had a script error", () => {
    expect(browser.faults).toEqual([])
  })
})
