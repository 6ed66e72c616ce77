import { beforeAll, describe, expect, test } from "bun:test"
import type { Page } from "playwright-core"
import { until } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { signedIn, type Visitor } from "./client.ts"
import { hasBrowser, PortalPage, useOwner } from "./PortalPage.ts"

const { app, browser, origin, owner } = useOwner()
let portal: PortalPage, page: Page, member: Visitor, stranger: Visitor
beforeAll(async () => {
  if (!hasBrowser) return
  ;[member, stranger] = await Promise.all([signedIn(app, "user_m"), signedIn(app, "user_z")])
  portal = owner()
  page = portal.page
})

describe.skipIf(!hasBrowser)("the keyboard", () => {
  test("opens pages with g and a letter, search with /, its list with ?", async () => {
    for (const [letter, title] of [
      ["v", "Vaults"],
      ["e", "Events"],
      ["w", "Webhooks"],
      ["k", "API keys"],
      ["m", "Members"],
      ["l", "Audit log"],
      ["a", "Account"],
      ["h", "Hello, Ada"]
    ] as const) {
      // On a busy machine the letter may come too late.
      await until(title, async () => {
        await page.keyboard.press("g")
        await page.keyboard.press(letter)
        return await portal
          .heading(title)
          .waitFor({ timeout: 5_000 })
          .then(
            () => true,
            () => false
          )
      })
    }
    await page.keyboard.press("?")
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).getByText("Webhooks").waitFor()
    await portal.expectAccessible("keyboard shortcuts")
    // An open dialog has the keys.
    await page.keyboard.press("g")
    await page.keyboard.press("v")
    await page.keyboard.press("Escape")
    await portal.heading("Hello, Ada").waitFor()
    await page.keyboard.press("/")
    const search = page.getByRole("combobox", { name: "Search" })
    await search.fill("g")
    await page.keyboard.press("v")
    expect(await search.inputValue()).toBe("gv")
    await page.keyboard.press("Escape")
    await portal.heading("Hello, Ada").waitFor()
  })

  test("does nothing while somebody types in a field, or once it is turned off", async () => {
    await portal.goto("/keys/new")
    await page.getByLabel("Label").pressSequentially("g v ? /")
    expect(await page.getByLabel("Label").inputValue()).toBe("g v ? /")
    await portal.heading("New API key").waitFor()
    await page.getByRole("button", { name: "Keyboard shortcuts" }).click()
    await page.getByLabel("Use keys without ⌘ or Ctrl").uncheck()
    await page.keyboard.press("Escape")
    await page.reload()
    await portal.heading("New API key").waitFor()
    await page.keyboard.press("?")
    await page.keyboard.press("Control+k")
    await page.getByRole("combobox", { name: "Search" }).waitFor()
    expect(await page.getByRole("dialog").count()).toBe(1)
    await page.keyboard.press("Escape")
    await page.getByRole("button", { name: "Keyboard shortcuts" }).click()
    await page.getByLabel("Use keys without ⌘ or Ctrl").check()
    await page.keyboard.press("Escape")
  })

  test("leads nobody to pages of owners", async () => {
    const theirs = new PortalPage(origin(), await browser.open(origin()))
    await theirs.takeOver(member)
    await theirs.goto("/vaults")
    await theirs.heading("Vaults").waitFor()
    await theirs.page.keyboard.press("?")
    await theirs.page.getByRole("dialog").getByText("Webhooks").waitFor()
    expect(await theirs.page.getByRole("dialog").getByText("Members").count()).toBe(0)
    await theirs.context.close()
  })
})

describe.skipIf(!hasBrowser)("the theme", () => {
  const scheme = () => page.evaluate<string>("getComputedStyle(document.documentElement).colorScheme")
  const shows = (color: string) =>
    until(`the background ${color}`, async () => (await page.evaluate<string>("getComputedStyle(document.body).backgroundColor")) === color)
  const LIGHT = "rgb(246, 247, 249)",
    DARK = "rgb(14, 17, 22)"
  test("is that of the system, light or dark, and is kept in the browser", async () => {
    await portal.goto("/account")
    await page.emulateMedia({ colorScheme: "light" })
    await shows(LIGHT)
    const choice = page.locator("main").getByLabel("Theme")
    await choice.selectOption("dark")
    await shows(DARK)
    expect(await scheme()).toBe("dark")
    await page.reload()
    await portal.heading("Account").waitFor()
    expect(await choice.inputValue()).toBe("dark")
    await shows(DARK)
    await portal.expectAccessible("account with a theme")
    await page.emulateMedia({ colorScheme: "light" })
    await page.locator(".foot").getByLabel("Theme").selectOption("system")
    await shows(LIGHT)
    expect(await scheme()).toBe("light dark")
  })
})

describe.skipIf(!hasBrowser)("the search", () => {
  interface Found {
    readonly is: string
    readonly label: string
    readonly note: string
  }
  const search = async (visitor: Visitor, text: string) => {
    const { data, searched } = (await visitor.get(`/api/search?q=${encodeURIComponent(text)}`)).json
    return { searched, found: data.map(({ is, label, note }: Found) => `${is}: ${label}, ${note}`) }
  }
  /** Of a chain whose hashes are short. */
  const short = "7HqJ2vXcTnR5kWpZ8sLd+YbGf3uMa="
  const ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"
  let hash = "",
    eventId = "",
    transactionId = ""
  beforeAll(async () => {
    if (!hasBrowser) return
    await app.feed([transaction("vault_a", 4_712, { hash: short })])
    await app.feed([transaction("vault_a", 4_711, { hash: `0x${"5eed0c".repeat(10)}cafe` })])
    const { data } = (await member.get("/api/v1/webhook-events?limit=1")).json
    await app.feed([
      {
        type: "address",
        vaultId: "vault_a",
        network: "ethereum",
        address: ADDRESS,
        assetType: "native",
        createdAt: "2026-01-01T00:00:00Z"
      }
    ])
    const { hash: newest, id } = data[0].payload.data.transaction
    ;[hash, eventId, transactionId] = [newest, data[0].id, id]
  })

  test("finds ids and hashes by their beginning, and says where it looked", async () => {
    const event = `event: transaction.confirmed, ${eventId}`,
      received = "transaction: Received, confirmed, Exchange hot wallet"
    for (const [text, searched, found] of [
      [hash, "transaction hashes that begin so, events of a whole one, deposit addresses", [received, event]],
      [hash.slice(0, -2), "transaction hashes that begin so, events of a whole one, deposit addresses", [received]],
      [short, "transaction hashes that begin so", [received, expect.stringMatching(/^event: transaction.confirmed/)]],
      [hash.slice(0, 12), "transaction hashes that begin so, deposit addresses", [received]],
      [hash.slice(0, 12).toUpperCase().replace("0X", "0x"), "transaction hashes that begin so", [received]],
      [hash.slice(0, 7), "names, URLs and ids", []],
      [eventId, "ids of events and deliveries", [event]],
      [eventId.slice(0, -1), "ids of events and deliveries that begin so", [event]],
      [transactionId, "ids of transactions", [received]],
      [transactionId.slice(0, 12), "ids of transactions that begin so", [received]],
      [`${transactionId}0`, "ids of transactions", []],
      ["tx_zzzzzzzzz", "ids of transactions that begin so", []],
      ["evt_01", "nothing yet: at least 8 characters after evt_", []],
      ["vault_", "names, URLs and ids of vaults", ["vault: Exchange hot wallet, vault_a"]],
      [ADDRESS.toLowerCase(), "deposit addresses", [`address: ${ADDRESS}, Exchange hot wallet, ethereum`]],
      ["hot wal", "names, URLs and ids of vaults", ["vault: Exchange hot wallet, vault_a"]]
    ] as const)
      expect([text, await search(member, text)]).toEqual([text, { searched: expect.stringContaining(searched), found }])
    const { to } = (await member.get(`/api/search?q=${encodeURIComponent(short)}`)).json.data[0]
    expect(new URL(to, "https://custody.example.com").searchParams.get("hash")).toBe(short)
  })

  test("shows nothing of another organization by a beginning", async () => {
    for (const text of [hash, hash.slice(0, 12), eventId, eventId.slice(0, 20), transactionId, ADDRESS, "hot wal"])
      expect([text, (await search(stranger, text)).found]).toEqual([text, []])
  })

  test("shows in the dialog where it looked", async () => {
    await portal.goto("/vaults")
    await portal.heading("Vaults").waitFor()
    await page.keyboard.press("/")
    await page.getByRole("combobox", { name: "Search" }).fill(hash.slice(0, 12))
    await page.getByText("1 found. Searched transaction hashes that begin so").waitFor()
    await page.getByRole("option", { name: /Received, confirmed/ }).waitFor()
    await portal.expectAccessible("search by a beginning")
    await page.keyboard.press("Escape")
    await page.keyboard.press("/")
    await page.getByRole("combobox", { name: "Search" }).fill("memb")
    await page.getByRole("option", { name: "Members" }).click()
    await portal.heading("Members").waitFor()
    await portal.goto("/search?q=0xabcdef012345")
    await page.getByText("Searched transaction hashes that begin so").waitFor()
    await portal.expectAccessible("search that found nothing")
  })

  test("no page had a script error", () => {
    expect(browser.faults).toEqual([])
  })
})
