import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import type { Page } from "playwright-core"
import { create, patch } from "../support/webhookFixtures.ts"
import { signedIn } from "./client.ts"
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
    const { id } = await create(app, secret, { url: receiver.url("/hooks"), description: "Ledger" })
    await patch(app, secret, id, { status: "PAUSED" })
    await signedIn(app, "user_m")
    const { key: other } = await app.key("user_m", { label: "Max's import" })
    await page.evaluate(`Promise.all(["members/user_m/end-sessions", "keys/${other.id}/revoke"].map((path) => fetch("/portal/api/" + path,
      { method: "POST", headers: { "content-type": "application/json", "x-portal": "1" }, body: "{}" })))`)
    await page.getByRole("link", { name: "Audit log" }).click()
    await entry("Ada Keller created the webhook Ledger").waitFor()
    const changed = entry("Ada Keller changed the webhook Ledger")
    expect(await changed.textContent()).toMatch(/status: ACTIVE → PAUSED\s*With the API key Back office from 127\.0\.0\.1.*\d\d:\d\d:\d\d/)
    await entry(/An operator invited Max Muster.*At the command line/).waitFor()
    await entry("Ada Keller ended the sessions of Max Muster").waitFor()
    // A key has a page only for its user.
    const revoked = entry("Ada Keller revoked the API key Max's import")
    await revoked.waitFor()
    expect([await revoked.getByRole("link").count(), await changed.getByRole("link", { name: "Back office" }).count()]).toEqual([0, 1])
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

  test("no page contacted another host, violated its policy or had a script error", () => {
    expect(browser.faults).toEqual([])
  })
})
