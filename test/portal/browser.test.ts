import { describe, expect, test } from "bun:test"
import type { BrowserContext, Page } from "playwright-core"
import { until } from "../support/receiver.ts"
import { transaction } from "../support/records.ts"
import { create } from "../webhooks/verbs.ts"
import { executable, overflows, sizes, useBrowser, violations } from "./browser.ts"
import { Authenticator, invite, PASSWORD } from "./client.ts"
import { useStage } from "./stage.ts"

const found = executable !== undefined
const { app, origin, receiver } = useStage(found)
const browser = useBrowser()
let context: BrowserContext, page: Page, authenticator: Authenticator
let webhookId = ""

const portal = (path: string) => `${origin()}/portal${path}`
const heading = (name: string | RegExp) => page.getByRole("heading", { level: 1, name })

/** Looks at the page as it is, narrow and light, wide and dark: nothing that axe finds, nothing wider than the window. */
const fine = async (what: string) => {
  for (const [size, colorScheme] of [
    ["narrow", "light"],
    ["wide", "dark"]
  ] as const) {
    await page.setViewportSize(sizes[size])
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
    expect([what, size, await overflows(page), ...(await violations(page))]).toEqual([what, size, false])
  }
}

/** Fills in a fresh code and confirms. */
const confirm = async (button: string) => {
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Code of your authenticator").fill(await authenticator.code())
  await dialog.getByRole("button", { name: button }).click()
}

describe.skipIf(!found)("the portal in a browser", () => {
  test("an invitation leads to a password, a second factor, and in", async () => {
    ;({ context, page } = await browser.open(origin()))
    await page.goto(portal("/"))
    await heading("Sign in").waitFor()
    await fine("sign-in")
    await page.goto(portal("/invitation#nonsense"))
    await page.getByText("was used already, has expired").waitFor()
    await fine("invitation that is none")
    await page.goto("about:blank")
    await page.goto(portal(`/invitation#${await invite(app, "user_a")}`))
    await heading("Welcome, Ada Keller").waitFor()
    await fine("invitation")
    await page.getByLabel("Choose a password").fill(PASSWORD)
    await page.getByLabel("The same once more").fill("something else entirely")
    await page.getByRole("button", { name: "Create my account" }).click()
    await page.getByText("The two are not the same.").waitFor()
    await page.getByLabel("The same once more").fill(PASSWORD)
    await page.getByRole("button", { name: "Create my account" }).click()
    await heading("Set up a second factor").waitFor()
    expect(page.url()).not.toContain("#")
    await page.getByText("Type it in instead").click()
    const secret = ((await page.locator("details .text code").textContent()) ?? "").replaceAll(" ", "")
    await fine("enrolment")
    authenticator = new Authenticator(`otpauth://totp/x?secret=${secret}`)
    await page.getByLabel("The code that the app shows now").fill("000000")
    await page.getByRole("button", { name: "I have kept the backup codes" }).click()
    await page.getByText("is not valid, or was used already").waitFor()
    await page.getByLabel("The code that the app shows now").fill(await authenticator.code())
    await page.getByRole("button", { name: "I have kept the backup codes" }).click()
    await heading("Vaults").waitFor()
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    expect(await page.getByText("Vault of others").count()).toBe(0)
  }, 180_000)

  test("a key is created with a fresh confirmation, works, is edited, and is revoked", async () => {
    await page.getByRole("link", { name: "API keys" }).click()
    await page.getByText("You have no keys").waitFor()
    await fine("no keys")
    await page.getByRole("link", { name: "New key" }).click()
    await page.getByLabel("Label").fill("Ledger import")
    await page.getByLabel("Only these").check()
    await page.getByLabel("Exchange hot wallet").check()
    await page.getByLabel("Allowed addresses").fill("not an address")
    await fine("new key")
    await page.getByRole("button", { name: "Create the key" }).click()
    await fine("confirmation")
    await confirm("Create the key")
    await page.getByText("is not an IP").or(page.locator(".wrong")).first().waitFor()
    await page.getByLabel("Allowed addresses").fill("")
    await page.getByRole("button", { name: "Create the key" }).click()
    await confirm("Create the key")
    await heading("Your new key: Ledger import").waitFor()
    const secret = (await page.locator("[data-secret]").textContent()) ?? ""
    await fine("new key's secret")
    expect((await app.get("/v1/vaults", secret)).json.data.map(({ id }: { id: string }) => id)).toEqual(["vault_a"])
    await page.getByRole("link", { name: "I have stored it" }).click()
    await page.getByRole("link", { name: "Ledger import" }).waitFor()
    expect(await page.content()).not.toContain(secret)
    await fine("keys")
    await page.getByRole("link", { name: "Ledger import" }).click()
    await page.getByLabel("webhook:read").check()
    await page.getByLabel("Expiry").selectOption("never")
    await fine("edit key")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("No expiry").waitFor()
    expect((await app.get("/v1/webhooks", secret)).status).toBe(200)
    await page.getByRole("button", { name: "Revoke" }).click()
    await fine("revoke?")
    await page.getByRole("button", { name: "Revoke the key" }).click()
    await page.locator(".status", { hasText: "Revoked" }).waitFor()
    expect((await app.get("/v1/vaults", secret)).json.code).toBe("revoked_api_key")
  }, 180_000)

  test("a webhook is created, pinged, and delivers an event", async () => {
    receiver.on("/hooks", () => new Response("thank you"))
    await page.getByRole("link", { name: "Webhooks" }).click()
    await page.getByText("There are no webhooks").waitFor()
    await page.getByRole("link", { name: "New webhook" }).click()
    await page.getByLabel("URL").fill("https://10.0.0.1/hooks")
    await page.getByLabel("Description").fill("Ledger")
    await page.getByLabel("Northwind Trading AG").check()
    await fine("new webhook")
    await page.getByRole("button", { name: "Create the webhook" }).click()
    await page.getByRole("alert").waitFor()
    await page.getByLabel("URL").fill(receiver.url("/hooks"))
    await page.getByRole("button", { name: "Create the webhook" }).click()
    await page.locator("[data-secret]").waitFor()
    const secret = (await page.locator("[data-secret]").textContent()) ?? ""
    expect(secret).toStartWith("whsec_")
    await page.getByRole("link", { name: "I have stored it" }).click()
    await heading("Ledger").waitFor()
    expect(await page.content()).not.toContain(secret)
    webhookId = page.url().split("/").at(-1) ?? ""
    await page.getByRole("button", { name: "Send a ping" }).click()
    await page.getByText("Your endpoint took it.").waitFor()
    await page.getByText("thank you").waitFor()
    await fine("ping")
    await page.getByRole("button", { name: "Close" }).last().click()
    await app.feed([transaction("vault_a", 1)])
    await page.locator(".delivery .status", { hasText: "Delivered" }).waitFor()
    await page.locator(".delivery summary").first().click()
    await page.getByRole("button", { name: "Redeliver" }).waitFor()
    await fine("webhook")
    await page.getByRole("button", { name: "Request and verification" }).click()
    await page.getByText("x-service-signature").waitFor()
    await fine("request")
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
    await fine("webhooks")
  }, 180_000)

  test("a secret is rotated with a countdown, and a webhook is disabled, enabled and edited", async () => {
    await page.goto(portal(`/webhooks/${webhookId}`))
    await page.getByRole("button", { name: "Rotate secret" }).click()
    await page.getByRole("button", { name: "Rotate", exact: true }).click()
    const secret = page.locator("[data-secret]")
    await secret.waitFor()
    expect(await secret.textContent()).toStartWith("whsec_")
    await fine("rotated")
    await page.getByRole("button", { name: "I have stored it" }).click()
    await page.getByText(/signs along for\s+23:59/).waitFor()
    await page.getByRole("button", { name: "Disable" }).click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Disable" }).click()
    await page.getByText("It was disabled by hand.").waitFor()
    await fine("disabled webhook")
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
    await fine("events")
    await page.getByLabel("Kind").selectOption("balance.updated")
    await until("the filter", async () => (await page.locator(".row.event").count()) === 1, 30)
    await page.getByRole("link", { name: "balance.updated" }).click()
    await page.getByText('"amount": "8"').waitFor()
    await page.locator(".delivery summary").click()
    await fine("event")
    await page.goto(portal("/events?kind=vault.created"))
    await page.getByText("No event is like that").waitFor()
    await fine("no events")
  }, 180_000)

  test("a vault shows every digit, and hashes to copy", async () => {
    await page.goto(portal("/vaults"))
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    await fine("vaults")
    await page.getByRole("link", { name: "Exchange hot wallet" }).click()
    await page.getByText("1204.350000000000000017").waitFor()
    await fine("balances")
    await page.getByRole("tab", { name: "Transactions" }).click()
    await page.locator(".row.transaction").first().waitFor()
    await context.grantPermissions(["clipboard-read", "clipboard-write"])
    await page.getByRole("button", { name: "Copy hash" }).first().click()
    await page.getByText("Hash copied").waitFor()
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toMatch(/^0x[0-9a-f]{64}$/)
    expect(await page.locator(".row.transaction").count()).toBe(25)
    await page.getByRole("button", { name: "Show more" }).click()
    await until("the second page", async () => (await page.locator(".row.transaction").count()) === 32, 30)
    await fine("transactions")
    await page.getByRole("tab", { name: "Addresses" }).click()
    await page.getByText("bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq").waitFor()
    await fine("addresses")
    await page.goto(portal("/vaults/vault_z"))
    await page.getByText("It does not exist, or you cannot see it.").waitFor()
    await fine("a vault of others")
    await page.goto(portal("/nowhere"))
    await page.getByText("There is no such page").waitFor()
  }, 180_000)

  test("everything is reached and left by the keyboard alone", async () => {
    const focused = () => page.evaluate<string>("document.activeElement.textContent")
    await page.goto(portal("/vaults"))
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    await page.keyboard.press("Tab")
    expect(await focused()).toBe("Skip to the content")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    expect(await page.evaluate<boolean>("document.activeElement.closest('.row.vault') !== null")).toBe(true)
    await page.goto(portal(`/webhooks/${webhookId}`))
    const disable = page.getByRole("button", { name: "Disable" })
    await disable.focus()
    await page.keyboard.press("Enter")
    await page.getByRole("alertdialog").waitFor()
    for (let press = 0; press < 4; press++) {
      await page.keyboard.press("Tab")
      expect(await page.evaluate<boolean>("document.activeElement.closest('[role=alertdialog]') !== null")).toBe(true)
    }
    await page.keyboard.press("Escape")
    await page.getByRole("alertdialog").waitFor({ state: "detached" })
    expect(await focused()).toBe("Disable")
    await page.locator(".delivery summary").first().focus()
    await page.keyboard.press("Enter")
    await page.locator(".delivery[open]").waitFor()
  }, 180_000)

  test("a service that cannot be reached is said to be, and shown again when it can", async () => {
    await page.goto(portal("/vaults"))
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    await context.setOffline(true)
    await page.getByRole("link", { name: "Exchange hot wallet" }).click()
    await page.getByText("The service cannot be reached.").first().waitFor()
    await fine("unreachable")
    await context.setOffline(false)
    await page.getByRole("button", { name: "Try again" }).first().click()
    await heading("Exchange hot wallet").waitFor()
  }, 180_000)

  test("a webhook is deleted after a question, and is gone", async () => {
    const { secret } = await app.key("user_a")
    const { id } = await create(app, secret, { description: "To be deleted" })
    await page.goto(portal(`/webhooks/${id}`))
    await page.getByRole("button", { name: "Delete" }).click()
    await page.getByRole("button", { name: "Delete the webhook" }).click()
    await heading("Webhooks").waitFor()
    await page.getByRole("link", { name: "Ledger" }).waitFor()
    await until("it is gone", async () => (await page.getByText("To be deleted").count()) === 0, 30)
    expect((await app.get(`/v1/webhooks/${id}`, secret)).status).toBe(404)
  }, 180_000)

  test("a passkey is added, signs in by itself, and confirms", async () => {
    const devtools = await context.newCDPSession(page)
    await devtools.send("WebAuthn.enable")
    await devtools.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true
      }
    })
    await page.goto(portal("/account"))
    await page.getByLabel("Name of a new passkey").fill("Test key")
    await page.getByRole("button", { name: "Add a passkey" }).click()
    await confirm("Go on")
    await page.getByRole("heading", { name: "Test key" }).waitFor()
    await fine("account")
    await page.getByRole("button", { name: "New backup codes" }).click()
    await page.getByRole("button", { name: "Use a passkey" }).click()
    await page.getByRole("heading", { name: "Your new backup codes" }).waitFor()
    await page.getByRole("button", { name: "I have kept them" }).click()
    await page.getByRole("button", { name: "Sign out", exact: true }).first().click()
    await heading("Sign in").waitFor()
    await page.getByRole("button", { name: "Sign in with a passkey" }).click()
    await heading("Account").waitFor()
  }, 180_000)

  test("signing in again takes a password and a code, and signing out everywhere ends it", async () => {
    const other = await browser.open(origin())
    await other.page.goto(portal("/keys"))
    await other.page.getByLabel("E-mail address").fill("ada@northwind.example")
    await other.page.getByLabel("Password").fill("not the password")
    await other.page.getByRole("button", { name: "Sign in", exact: true }).click()
    await other.page.getByText("The e-mail address or the password is not right.").waitFor()
    await other.page.getByLabel("Password").fill(PASSWORD)
    await other.page.getByRole("button", { name: "Sign in", exact: true }).click()
    await other.page.getByRole("heading", { name: "Second factor" }).waitFor()
    const own = page
    page = other.page
    await fine("second factor")
    page = own
    await other.page.getByLabel("Code").fill(await authenticator.code())
    await other.page.getByRole("button", { name: "Go on" }).click()
    await other.page.getByRole("heading", { level: 1, name: "API keys" }).waitFor()
    await page.goto(portal("/account"))
    await page.getByRole("button", { name: "Sign out everywhere" }).click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Sign out everywhere" }).click()
    await heading("Sign in").waitFor()
    await other.page.getByRole("link", { name: "Vaults" }).click()
    await other.page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor()
    await other.context.close()
  }, 180_000)

  test("a member sees what the role allows and manages nothing", async () => {
    const member = await browser.open(origin())
    page = member.page
    await page.goto(portal(`/invitation#${await invite(app, "user_m")}`))
    await page.getByLabel("Choose a password").fill(PASSWORD)
    await page.getByLabel("The same once more").fill(PASSWORD)
    await page.getByRole("button", { name: "Create my account" }).click()
    await page.getByText("Type it in instead").click()
    const secret = ((await page.locator("details .text code").textContent()) ?? "").replaceAll(" ", "")
    await page.getByLabel("The code that the app shows now").fill(await new Authenticator(`otpauth://totp/x?secret=${secret}`).code())
    await page.getByRole("button", { name: "I have kept the backup codes" }).click()
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    expect(await page.locator(".row.vault").count()).toBe(1)
    await page.goto(portal(`/webhooks/${webhookId}`))
    await heading("Ledger").waitFor()
    for (const name of ["Send a ping", "Rotate secret", "Delete", "Disable"])
      expect(await page.getByRole("button", { name }).count()).toBe(0)
    await page.goto(portal("/webhooks/new"))
    await page.getByText("Owners manage webhooks").waitFor()
    await fine("not an owner")
    await app.feed([
      {
        type: "user",
        id: "user_m",
        organizationId: "org_a",
        email: "max@northwind.example",
        name: "Max Muster",
        status: "deactivated",
        organizationRole: "member",
        vaultRoles: []
      }
    ])
    await page.getByRole("link", { name: "Vaults" }).click()
    await heading("Sign in").waitFor()
    await member.context.close()
  }, 180_000)

  test("no page asked another host, broke its policy, or failed in its script", () => {
    expect(browser.faults).toEqual([])
  })
})
