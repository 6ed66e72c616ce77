import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import type { Page } from "playwright-core"
import { until } from "../support/receiver.ts"
import { balance, transaction, transactionId, user, vault } from "../support/records.ts"
import { create } from "../support/webhookFixtures.ts"
import { sizes } from "./browser.ts"
import { hasBrowser, type PortalPage, useOwner } from "./PortalPage.ts"

const { app, browser, owner, receiver } = useOwner()
let portal: PortalPage, page: Page
beforeAll(() => {
  if (!hasBrowser) return
  portal = owner()
  page = portal.page
})

describe.skipIf(!hasBrowser)("vaults in a browser", () => {
  test("a vault shows every digit, and hashes to copy", async () => {
    await portal.goto("/vaults")
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    await portal.expectAccessible("vaults")
    await page.getByRole("link", { name: "Exchange hot wallet" }).click()
    await page.getByText("1,204.3500000").waitFor()
    await page.getByLabel("Every digit").check()
    await page.getByText("1,204.350000000000000017").waitFor()
    await portal.expectAccessible("balances")
    await page.getByRole("tab", { name: "Transactions" }).click()
    await page.locator("tbody tr").first().waitFor()
    await portal.context.grantPermissions(["clipboard-read", "clipboard-write"])
    await page.getByRole("button", { name: "Copy hash" }).first().click()
    await page.getByText("Hash copied").waitFor()
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toMatch(/^0x[0-9a-f]{64}$/)
    expect(await page.locator("tbody tr").count()).toBe(25)
    await page.getByRole("button", { name: "Show more" }).click()
    await until("the second page", async () => (await page.locator("tbody tr").count()) === 30)
    await page.reload()
    await until("the same rows after a reload", async () => (await page.locator("tbody tr").count()) === 30)
    await portal.expectAccessible("transactions")
    await page.getByRole("tab", { name: "Deposit addresses" }).click()
    await page.getByText("bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq").waitFor()
    await portal.expectAccessible("addresses")
    await portal.goto("/vaults/vault_z")
    await page.getByText("It does not exist, or you cannot see it.").waitFor()
    expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0)
    await portal.expectAccessible("a vault of others")
    // The second is the path of another vault's page to who decodes it.
    for (const path of ["/nowhere", "/vaults/vault_a%2f..%2fvault_b"]) {
      await portal.goto(path)
      await page.getByText("This page does not exist").waitFor()
    }
  })

  test("home sums balances over all vaults, and shows the latest movements", async () => {
    await portal.goto("/home")
    const total = page.getByRole("list", { name: "Balances" }).locator("details", { hasText: "2 vaults" })
    expect(await total.locator("summary .amount").getAttribute("title")).toBe("1,211.600000000000000017")
    await total.locator("summary").click()
    await total.getByRole("link", { name: "Settlement" }).waitFor()
    expect(await total.getByRole("list", { name: "Vaults" }).getByRole("listitem").allTextContents()).toEqual([
      expect.stringMatching(/^Exchange hot wallet.*1,204\.350000000000000017$/),
      expect.stringMatching(/^Settlement.*7\.25$/)
    ])
    const movements = page.getByRole("list", { name: "Latest movements" }).getByRole("listitem")
    await until("the movements", async () => (await movements.count()) === 8)
    await portal.expectAccessible("home with balances and movements")
    await page.getByRole("button", { name: "Export" }).click()
    const dialog = page.getByRole("dialog", { name: "Export transactions" })
    await dialog.getByText("All transactions of all vaults that you can see, whatever their status, newest first.").waitFor()
    const year = new Date().getUTCFullYear()
    await dialog.getByRole("radio", { name: String(year) }).check({ force: true })
    const days = () => Promise.all(["From", "To"].map((label) => dialog.getByLabel(label).inputValue()))
    expect(await days()).toEqual([`${year}-01-01`, `${year}-12-31`])
    await dialog.getByLabel("From").fill("2026-05-03")
    await dialog.getByLabel("To").fill("2026-05-02")
    await dialog.getByText("Must not be before From.").waitFor()
    expect(await dialog.getByRole("button", { name: "Download" }).isDisabled()).toBe(true)
    await dialog.getByLabel("From").fill("2026-05-02")
    await dialog.getByText("All transactions from the beginning of 2026-05-02 to the end of 2026-05-02, UTC, of all vaults").waitFor()
    await portal.expectAccessible("an export of all vaults")
    const download = page.waitForEvent("download")
    await dialog.getByRole("button", { name: "Download" }).click()
    expect((await download).suggestedFilename()).toBe("All-vaults-transactions-2026-05-02-to-2026-05-02.csv")
    const text = fs.readFileSync(await (await download).path(), "utf8")
    const period = "occurredAfter=2026-05-02T00:00:00Z&occurredUntil=2026-05-03T00:00:00Z"
    expect(text).toBe((await app.get(`/v1/transactions/export?format=csv&${period}`, (await app.key("user_a")).secret)).text)
    expect(text.split("\r\n").length).toBeGreaterThan(2)
    await movements.first().getByRole("link").click()
    await portal.heading("Transaction").waitFor()
  })

  test("a transaction shows its fee, block and memo, and what each change replaced", async () => {
    const fields = { amount: "3", memo: "104721", timestamp: "2026-06-01T12:00:00.000Z" }
    await app.feed([transaction("vault_a", 2_000, { ...fields, status: "pending" })])
    await app.feed([
      transaction("vault_a", 2_000, {
        ...fields,
        amount: "2.999",
        blockNumber: "19505152",
        fee: { asset: "ethereum/native", amount: "0.000000000000000021" }
      })
    ])
    await portal.goto("/vaults/vault_a?show=transactions")
    await page.locator("tbody tr").first().getByTitle("Details and history of this transaction").click()
    await page.waitForURL(`**/vaults/vault_a/transactions/${transactionId("vault_a", 2_000)}`)
    const facts = page.locator(".facts")
    await facts.getByText("104721").waitFor()
    // The symbols are loaded after the transaction.
    await facts.filter({ hasText: "0.000000000000000021 ETH" }).waitFor()
    const steps = page.getByRole("list", { name: "History" }).getByRole("listitem")
    expect(await steps.count()).toBe(2)
    await steps.last().filter({ hasText: "Amount: 3 ETH → 2.999 ETH" }).waitFor()
    expect(await steps.last().textContent()).toContain("Block: none → 19505152")
    await facts.getByText("Last change").waitFor()
    await portal.expectAccessible("a transaction")
    await steps.last().getByRole("link", { name: "View event" }).click()
    await portal.heading("transaction.confirmed").waitFor()
  })

  test("transactions show fee, block and memo, and can be filtered by asset", async () => {
    const usdc = "ethereum/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
    await app.feed(
      [
        transaction("vault_b", 1, {
          fee: { asset: "ethereum/native", amount: "0.000021" },
          blockNumber: "19505152",
          memo: "invoice \u202E07-4202"
        }),
        transaction("vault_b", 2, { asset: usdc, timestamp: "2024-06-01T12:00:59.999Z" })
      ],
      { "x-record-events": "none" }
    )
    await portal.goto("/vaults/vault_b?show=transactions")
    const rows = page.locator("tbody tr")
    await rows.nth(1).waitFor()
    const text = async () => (await rows.allInnerTexts()).join("\n")
    await rows.filter({ hasText: "Fee 0.000021 ETH" }).first().waitFor()
    expect(await text()).toContain("Block 19505152")
    // What would show the memo in another order is an escape.
    expect(await text()).toContain("Memo invoice \\u202E07-4202")
    await portal.expectAccessible("transactions with fee and memo")
    await page.getByLabel("Asset").selectOption({ label: "USDC · Ethereum · 0xa0b8…eb48" })
    await until("only its transactions", async () => (await rows.count()) === 1)
    expect(new URL(page.url()).searchParams.get("asset")).toBe(usdc)
    await page.reload()
    await rows.first().getByText("USDC").waitFor()
    expect([await rows.count(), await page.getByLabel("Asset").inputValue()]).toEqual([1, usdc])
    await page.getByLabel("Network").selectOption("ethereum")
    await until("every asset of the network", async () => (await rows.count()) === 2)
    await page.getByLabel("Until").fill("2024-06-01T13:59")
    await page.getByText("No transactions match these filters").waitFor()
    // The minute of the end belongs to the period.
    await page.getByLabel("Until").fill("2024-06-01T14:00")
    await until("both transactions of the minute", async () => (await rows.count()) === 2)
  })

  test("a phone shows the first rows of a long list, and the others when asked", async () => {
    await page.setViewportSize({ width: 390, height: 860 })
    // How many rows were shown before.
    await page.evaluate("sessionStorage.clear()")
    await portal.goto("/vaults/vault_a?show=transactions")
    const rows = page.locator("tbody tr:visible")
    await rows.first().waitFor()
    expect(await rows.count()).toBe(6)
    const more = page.getByRole("button", { name: "Show more" })
    await more.click()
    await until("the first page", async () => (await rows.count()) === 25)
    await more.click()
    await until("every row", async () => (await rows.count()) > 25 && (await more.count()) === 0)
    await page.setViewportSize(sizes.wide)
  })

  test("a vault's balances of zero are last, and names cannot reorder text beside them", async () => {
    await app.feed(
      [
        vault("vault_y", "entity_a", { label: "Cold \u202Etlov" }),
        user("user_a", "org_a", ["vault_a", "vault_b", "vault_c", "vault_y"], {
          organizationRole: "owner",
          name: "Ada Keller",
          email: "ada@northwind.example"
        }),
        balance("vault_y", "ethereum/native", "0"),
        balance("vault_y", "ethereum/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", "5")
      ],
      { "x-record-events": "none" }
    )
    await portal.goto("/vaults/vault_y")
    await portal.heading("Cold \\u202Etlov").waitFor()
    expect(await page.title()).toStartWith("Cold \\u202Etlov · ")
    await page.locator("tbody tr").nth(1).waitFor()
    expect(await page.locator("tbody tr th").allInnerTexts()).toEqual(["USDC", "ETH"])
    expect(await page.evaluate<boolean>("/[\\u202A-\\u202E\\u2066-\\u2069]/.test(document.body.innerText)")).toBe(false)
  })

  test("everything can be reached and left by keyboard alone", async () => {
    const focused = () => page.evaluate<string>("document.activeElement.textContent")
    await portal.goto("/vaults")
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    await page.keyboard.press("Tab")
    expect(await focused()).toBe("Skip to the content")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    expect(await focused()).toContain("Export CSV")
    const inRows = () => page.evaluate<boolean>("document.activeElement.closest('tbody') !== null")
    for (let press = 0; press < 6 && !(await inRows()); press++) await page.keyboard.press("Tab")
    expect(await inRows()).toBe(true)
    receiver.on("/hooks", () => new Response("thank you"))
    const { id } = await create(app, (await app.key("user_a")).secret, { url: receiver.url("/hooks") })
    await app.feed([transaction("vault_a", 1)])
    await portal.goto(`/webhooks/${id}`)
    const menu = page.locator(".menu > summary")
    await menu.focus()
    await page.keyboard.press("Enter")
    const reached: Array<string> = []
    for (let press = 0; press < 6 && reached.at(-1) !== "Disable"; press++) {
      await page.keyboard.press("Tab")
      reached.push(await focused())
    }
    expect(reached.at(-1)).toBe("Disable")
    await page.keyboard.press("Enter")
    await page.getByRole("alertdialog").waitFor()
    for (let press = 0; press < 4; press++) {
      await page.keyboard.press("Tab")
      expect(await page.evaluate<boolean>("document.activeElement.closest('[role=alertdialog]') !== null")).toBe(true)
    }
    await page.keyboard.press("Escape")
    await page.getByRole("alertdialog").waitFor({ state: "detached" })
    // The focus moves in a separate task, once the dialog is closed.
    await until("the focus on the button that opened it", () => page.evaluate<boolean>("document.activeElement.matches('.menu > summary')"))
    await page.getByRole("tab", { name: "Overview" }).focus()
    await page.keyboard.press("ArrowRight")
    await page.locator(".delivery summary").first().focus()
    await page.keyboard.press("Enter")
    await page.locator(".delivery[open]").waitFor()
  })

  test("a row shows its latest state while many newer ones wait", async () => {
    const start = Date.now() - 100_000
    const at = (index: number) => ({ timestamp: new Date(start + index * 1_000).toISOString() })
    await app.feed([transaction("vault_a", 5_000, { ...at(0), status: "pending" })])
    await portal.goto("/vaults/vault_a?show=transactions")
    const row = page.locator("tbody tr").first()
    await row.getByText("Pending").waitFor()
    await app.feed([transaction("vault_a", 5_000, at(0))])
    await portal.soon(row.getByText("Confirmed"))
    await app.feed(Array.from({ length: 40 }, (_, index) => transaction("vault_a", 5_001 + index, at(1 + index))))
    await portal.soon(page.locator(".news .pill", { hasText: /^\s*\d\d new/ }))
    expect(await row.getByText("Confirmed").count()).toBe(1)
    await app.feed([transaction("vault_a", 5_000, { ...at(0), status: "failed" })])
    await portal.soon(row.getByText("Failed"))
  })

  test("an unreachable service is reported, and data is shown again when it returns", async () => {
    await portal.goto("/vaults")
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    await portal.context.setOffline(true)
    await page.getByRole("link", { name: "Exchange hot wallet" }).click()
    await page.getByText("The service cannot be reached.").first().waitFor()
    await portal.expectAccessible("unreachable")
    await portal.context.setOffline(false)
    await page.getByRole("button", { name: "Try again" }).first().click()
    await portal.heading("Exchange hot wallet").waitFor()
  })

  test("no page contacted another host, violated its policy or had a script error", () => {
    expect(browser.faults).toEqual([])
  })
})
