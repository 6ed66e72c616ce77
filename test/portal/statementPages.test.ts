import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import type { Download, Page } from "playwright-core"
import { type Statement, verifyCheckpoint, verifyStatement } from "../../src/client/index.ts"
import { beginDay, dayOf, timeOf } from "../custody/statements/statementFixtures.ts"
import { cli } from "../support/app.ts"
import { transaction, user, vault } from "../support/records.ts"
import { hasBrowser, type PortalPage, useOwner } from "./PortalPage.ts"

await beginDay()

const { app, owner } = useOwner({ STATEMENT_HISTORY: "70d" })
let portal: PortalPage, page: Page
const DAY = dayOf(-4)
const USDC = "ethereum/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"

const day = (offset: number, amount: string, asset = "ethereum/native") => ({
  type: "balance",
  vaultId: "vault_s",
  asset,
  amount,
  occurredAt: timeOf(offset, "12:00:00.000")
})

beforeAll(async () => {
  if (!hasBrowser) return
  portal = owner()
  page = portal.page
  await app.feed(
    // All at once, or the schedule could seal the day between the vault and its records.
    [
      vault("vault_s", "entity_a", { label: "Statements" }),
      user("user_a", "org_a", ["vault_a", "vault_b", "vault_c", "vault_s"], {
        organizationRole: "owner",
        name: "Ada Keller",
        email: "ada@northwind.example"
      }),
      ...Array.from({ length: 40 }, (_, index) => day(-400 + index * 10, `${(index * 37) % 90}.000000000000000001`)),
      day(-4, "12.5"),
      day(-500, "0", USDC),
      day(-450, "4", USDC),
      day(-400, "5", USDC),
      transaction("vault_s", 1, { amount: "3", timestamp: timeOf(-4, "11:00:00.000") }),
      transaction("vault_s", 2, { amount: "0.25", direction: "outbound", timestamp: timeOf(-4, "13:00:00.000") })
    ],
    { "x-record-events": "none" }
  )
  const seal = async () => expect((await cli(["statements", "seal"], app.env)).code).toBe(0)
  await seal()
  await app.feed([day(-4, "12.75")], { "x-record-events": "none" })
  await seal()
})

const saved = async (press: () => Promise<void>): Promise<{ readonly name: string; readonly text: string }> => {
  const [download] = await Promise.all([page.waitForEvent("download") as Promise<Download>, press()])
  return { name: download.suggestedFilename(), text: fs.readFileSync(await download.path(), "utf8") }
}

describe.skipIf(!hasBrowser)("statements and past balances in a browser", () => {
  test("a vault's statements are listed and verified, and their files verify elsewhere", async () => {
    await portal.goto("/vaults/vault_s")
    await page.getByRole("tab", { name: "Statements" }).click()
    await page.getByLabel("Month").selectOption(DAY.slice(0, 7))
    const row = page.getByRole("row", { name: new RegExp(DAY) })
    await row.getByText("Verified", { exact: true }).waitFor()
    await portal.expectAccessible("statements")
    await page.getByRole("button", { name: "Verify the whole chain" }).click()
    await page.getByText(/^Verified: \d+ statements in one unbroken chain\.$/).waitFor()
    await row.getByRole("link", { name: DAY }).click()
    await portal.heading(`Statement of ${DAY}`).waitFor()
    await page.getByText("This browser recomputed the hash and verified the signature with the published key.").waitFor()
    const cells = page.getByRole("row", { name: /ETH/ }).getByRole("cell")
    expect((await cells.allTextContents()).map((text) => text.trim())).toEqual([
      expect.any(String),
      "3",
      "0.25",
      "0",
      expect.any(String),
      "12.75",
      "2"
    ])
    await portal.expectAccessible("a statement")
    const { name, text: json } = await saved(() => page.getByRole("button", { name: "JSON" }).click())
    expect(name).toBe(`Statements-statement-${DAY}-2.json`)
    expect(await verifyStatement(JSON.parse(json), (await app.get("/v1/jwks.json")).json)).toMatchObject({ valid: true })
    expect((await saved(() => page.getByRole("button", { name: "CSV" }).click())).text).toContain("ethereum/native,ETH,")
    await page.getByRole("link", { name: "1", exact: true }).click()
    await page.getByRole("cell", { name: "12.5", exact: true }).waitFor()
    await page.getByText("Later records changed this day.").waitFor()
    await portal.expectAccessible("an earlier revision")
    await portal.goto(`/vaults/vault_s/statements/${dayOf(0)}`)
    await page.getByText("It does not exist, or you cannot see it.").waitFor()
  })

  test("a month is added up, and its files have the same sums", async () => {
    await portal.goto("/vaults/vault_s?show=statements")
    await page.getByRole("heading", { name: "A month" }).waitFor()
    await page.getByLabel("Month").selectOption(DAY.slice(0, 7))
    const sums = page.getByRole("table", { name: "Lines of the statement" }).getByRole("row", { name: /ETH/ })
    await sums.getByRole("cell", { name: "3", exact: true }).waitFor()
    // Balances were recorded that do not follow from the transactions.
    const mark = { name: "Not explained by transactions" }
    expect(await sums.getByRole("img", mark).count()).toBe(1)
    const still = page.getByRole("table", { name: "Lines of the statement" }).getByRole("row", { name: /USDC/ })
    expect(await still.getByRole("img", mark).count()).toBe(0)
    await page.getByText("Other is the change of a balance that no transaction and no fee explains").waitFor()
    await portal.expectAccessible("the sums of a month")
    const month = `Statements-statements-${DAY.slice(0, 7)}`
    const csv = async () => {
      const { name, text } = await saved(() => page.getByRole("button", { name: "Sums as CSV" }).click())
      expect(name).toBe(`${month}.csv`)
      return text
    }
    expect(await csv()).toMatch(/^asset,symbol,.*\r\nethereum\/native,ETH,'.*,'3,'0.25,'0,.*\r\nethereum\/erc20.*,USDC,.*\r\n$/)
    await page.getByLabel("Moved only").check()
    await still.waitFor({ state: "detached" })
    expect(await sums.count()).toBe(1)
    expect(await csv()).toMatch(/^asset,symbol,.*\r\nethereum\/native,ETH,.*\r\n$/)
    const byDay = await saved(() => page.getByRole("button", { name: "Days as CSV" }).click())
    expect(byDay.name).toBe(`${month}-days.csv`)
    expect(byDay.text).toContain(`${DAY},2,ethereum/native,ETH,`)
  })

  test("the days of the chosen month are listed, and the unexplained ones marked", async () => {
    const month = dayOf(-40).slice(0, 7)
    const { data } = (await app.get("/v1/vaults/vault_s/statements?limit=500", (await app.key("user_a")).secret)).json
    const days = (data as ReadonlyArray<Statement>).filter(({ date }) => date.startsWith(month))
    const marked = days.filter(({ assets }) => assets.some(({ other }) => other !== "0"))
    expect([marked.length > 0, marked.length < days.length]).toEqual([true, true])
    await portal.goto("/vaults/vault_s?show=statements")
    await page.getByLabel("Month").selectOption(month)
    const links = page.getByRole("table", { name: "Statements" }).getByRole("rowheader")
    const checkDays = async () => {
      await page.getByRole("link", { name: days[0]?.date ?? "" }).waitFor()
      expect((await links.allTextContents()).map((text) => text.trim())).toEqual(days.map(({ date }) => date))
      const withMark = links.filter({ has: page.getByRole("img", { name: "Not explained by transactions" }) })
      expect((await withMark.allTextContents()).map((text) => text.trim())).toEqual(marked.map(({ date }) => date))
    }
    await checkDays()
    await page.getByText("In the list below, this mark is beside the days with such a change.").waitFor()
    await page.reload()
    await checkDays()
    const [one] = marked
    await page.getByRole("link", { name: one?.date ?? "" }).click()
    await portal.heading(`Statement of ${one?.date}`).waitFor()
    await page.getByRole("link", { name: "Statements", exact: true }).click()
    await checkDays()
  })

  test("every month since the first statement can be chosen, and no other", async () => {
    const { data } = (await app.get("/v1/vaults/vault_s/statements?limit=500", (await app.key("user_a")).secret)).json
    const days: ReadonlyArray<string> = data.map(({ date }: { readonly date: string }) => date)
    await portal.goto("/vaults/vault_s?show=statements")
    const months = page.getByLabel("Month").locator("option")
    await months.first().waitFor({ state: "attached" })
    expect(await months.allTextContents()).toEqual([...new Set(days.map((day) => day.slice(0, 7)))])
    const first = days.at(-1) ?? ""
    await page.getByLabel("Month").selectOption(first.slice(0, 7))
    await page.getByText(`From the beginning of ${first} to the end of`).waitFor()
    await portal.goto(`/vaults/vault_s/statements/${first}`)
    await page.getByRole("link", { name: "Day after" }).waitFor()
    expect(await page.getByRole("link", { name: "Day before" }).count()).toBe(0)
  })

  test("a vault without statements says when they begin", async () => {
    // Recorded in the future, so that no day is due.
    await app.sql(
      `INSERT INTO vaults SELECT (jsonb_populate_record(v, jsonb_build_object('id', 'vault_n', 'recorded_at', now() + interval '90 days'))).*
       FROM vaults v WHERE v.id = 'vault_s'`,
      []
    )
    await app.feed([
      user("user_a", "org_a", ["vault_a", "vault_b", "vault_c", "vault_s", "vault_n"], {
        organizationRole: "owner",
        name: "Ada Keller",
        email: "ada@northwind.example"
      })
    ])
    await portal.goto("/vaults/vault_n?show=statements")
    await page.getByText(`This vault's statements begin at ${dayOf(20)}. Each UTC day gets one`).waitFor()
    expect(await page.getByLabel("Month").count()).toBe(0)
    await portal.expectAccessible("a vault without statements")
  })

  test("checkpoints of an entity are shown and verified, and their files verify elsewhere", async () => {
    const today = new Date().toISOString().slice(0, 10)
    await app.sql(
      `INSERT INTO event_checkpoints (entity_id, at, count, hash, position)
       SELECT id, $1::timestamptz, 0, decode(repeat('00', 32), 'hex'), 0 FROM entities ON CONFLICT DO NOTHING`,
      [`${today}T00:00:00Z`]
    )
    await portal.goto("/events")
    await page.getByRole("link", { name: "Checkpoints" }).click()
    await portal.heading("Checkpoints").waitFor()
    const now = page.getByRole("heading", { name: "Now" }).locator("xpath=ancestor::section")
    await now.getByText("Verified", { exact: true }).waitFor()
    const row = page.getByRole("row", { name: new RegExp(today) })
    await row.getByText("Verified", { exact: true }).waitFor()
    await portal.expectAccessible("checkpoints")
    const keys = (await app.get("/v1/jwks.json")).json
    for (const place of [now, row]) {
      const kept = JSON.parse((await saved(() => place.getByRole("button", { name: "Download" }).click())).text)
      expect(await verifyCheckpoint(kept, kept.entityId, keys)).toBeUndefined()
    }
    await page.route("**/portal/api/v1/event-checkpoints/latest*", async (route) => {
      const answer = await route.fetch()
      await route.fulfill({ response: answer, body: (await answer.text()).replace(/"count":\d+/, '"count":123456') })
    })
    await page.reload()
    await now.getByText("Does not verify", { exact: true }).waitFor()
    await page.unroute("**/portal/api/v1/event-checkpoints/latest*")
  })

  test("a statement that was changed in transit is shown as not verified", async () => {
    await page.route("**/portal/api/v1/vaults/vault_s/statements/*", async (route) => {
      const answer = await route.fetch()
      await route.fulfill({ response: answer, body: (await answer.text()).replace('"closing":"12.75"', '"closing":"13.75"') })
    })
    await portal.goto(`/vaults/vault_s/statements/${DAY}`)
    await page.getByText("Does not verify", { exact: true }).waitFor()
    await page.getByText(/has a different hash from the one it states/).waitFor()
    await page.unroute("**/portal/api/v1/vaults/vault_s/statements/*")
  })

  test("balances at a date are shown, and a balance over time with every record", async () => {
    await portal.goto("/vaults/vault_s")
    await page.getByLabel("Balances at").fill(`${dayOf(-395)}T12:00`)
    await page.getByText("0.000000000000000001").or(page.getByTitle("0.000000000000000001 ETH")).first().waitFor()
    await portal.expectAccessible("balances at a date")
    await page.reload()
    expect(await page.getByLabel("Balances at").inputValue()).toBe(`${dayOf(-395)}T12:00`)
    await page.getByRole("link", { name: "ETH" }).click()
    await portal.heading("ETH over time").waitFor()
    await page.locator(".chart canvas").waitFor()
    expect(await page.getByRole("radio", { name: "1 year" }).isChecked()).toBe(true)
    await page.getByRole("radio", { name: "All" }).check({ force: true })
    await page.locator(".chart canvas").waitFor()
    await page.getByRole("table", { name: "Records of the balance" }).waitFor()
    await portal.expectAccessible("a balance over time")
    // It did not change for a year, and was zero at first.
    await portal.goto(`/vaults/vault_s/balance-history?asset=${encodeURIComponent(USDC)}`)
    await page.locator(".chart canvas").waitFor()
    expect(await page.getByRole("radio", { name: "All" }).isChecked()).toBe(true)
    await page.getByText(`USDC since ${dayOf(-450)}.`).waitFor()
    await app.feed([day(-500, "1", "bitcoin/native"), day(-12, "2", "bitcoin/native")])
    await portal.goto("/vaults/vault_s/balance-history?asset=bitcoin/native")
    await page.locator(".chart canvas").waitFor()
    expect(await page.getByRole("radio", { name: "30 days" }).isChecked()).toBe(true)
  })

  test("transactions are saved as the API exports them, in the chosen form, with the filters", async () => {
    await portal.goto("/vaults/vault_s?show=transactions&direction=outbound")
    const exported = async (form: string) => {
      await page.getByRole("button", { name: "Export" }).click()
      const dialog = page.getByRole("dialog", { name: "Export transactions" })
      await dialog.getByText("The transactions of this vault that match the filters, newest first.").waitFor()
      await dialog.getByLabel(form).check()
      if (form === "NDJSON") await portal.expectAccessible("an export")
      const file = await saved(() => dialog.getByRole("button", { name: "Download" }).click())
      await dialog.waitFor({ state: "detached" })
      return file
    }
    const key = (await app.key("user_a")).secret
    for (const [form, query] of [
      ["CSV for a spreadsheet", "format=csv"],
      ["CSV for a program", "format=csv&amounts=plain"],
      ["NDJSON", "format=ndjson"]
    ] as const) {
      const { name, text } = await exported(form)
      expect(text).toBe((await app.get(`/v1/vaults/vault_s/transactions/export?${query}&direction=outbound`, key)).text)
      expect(name).toMatch(/^Statements-transactions-to-\d{4}-\d{2}-\d{2}\.(csv|ndjson)$/)
    }
  })

  test("the page of a key shows what it sees, and why a vault is hidden", async () => {
    const { key } = await app.key("user_a", { scopes: ["vault:read"], vaultIds: ["vault_a"], label: "Import" })
    await portal.goto(`/keys/${key.id}`)
    await page.getByRole("heading", { name: "What this key can see" }).waitFor()
    const why = async (vaultId: string, said: string) => {
      await page.getByLabel("Why is a vault not visible?").fill(vaultId)
      await page.getByRole("button", { name: "Check" }).click()
      await page.getByText(said).waitFor()
    }
    await why("vault_a", "The key can see this vault.")
    await why("vault_s", "The key's vault allowlist does not include this vault.")
    await why("vault_z", "There is no such vault, or you do not have the Developer role on it.")
    await why("vault_nothing", "There is no such vault, or you do not have the Developer role on it.")
    expect(await page.locator(".numbers dd").allTextContents()).toEqual(["5", "1", "1"])
    await portal.expectAccessible("what a key sees")
  })
})
