import { describe, expect, test } from "bun:test"
import type { Page } from "playwright-core"
import { user } from "../support/records.ts"
import { create } from "../support/webhookFixtures.ts"
import { sizes, useBrowser } from "./browser.ts"
import { invite, PASSWORD, signedIn } from "./client.ts"
import { hasBrowser, PortalPage } from "./PortalPage.ts"
import { usePortalService } from "./portalFixture.ts"

const { app, origin } = usePortalService(hasBrowser)
const browser = useBrowser()
let portal: PortalPage, page: Page

describe.skipIf(!hasBrowser)("accounts and keys in a browser", () => {
  test("an invitation leads to a password, a second factor and the home page", async () => {
    portal = new PortalPage(origin(), await browser.open(origin()))
    page = portal.page
    await portal.goto("/")
    await portal.heading("Sign in").waitFor()
    // Without a mail server, the operator helps.
    await page.getByText("custody users invite").waitFor()
    expect(await page.getByRole("link", { name: "Forgot your password?" }).count()).toBe(0)
    await portal.expectAccessible("sign-in")
    await portal.goto("/invitation#nonsense")
    await page.getByText("was already used, has expired").waitFor()
    await portal.expectAccessible("invitation that is none")
    await page.goto("about:blank")
    await portal.goto(`/invitation#${await invite(app, "user_a")}`)
    await portal.heading("Welcome, Ada Keller").waitFor()
    await portal.expectAccessible("invitation")
    await page.getByLabel("Choose a password").fill(PASSWORD)
    await page.getByLabel("Confirm password").fill("something else entirely")
    await page.getByRole("button", { name: "Create account" }).click()
    await page.getByText("The passwords do not match.").waitFor()
    await portal.choosePassword()
    await portal.heading("Set up a second factor").waitFor()
    expect(page.url()).not.toContain("#")
    await portal.setUpAuthenticator()
    const codes = page.getByRole("list", { name: "Backup codes" })
    const shown = await codes.allInnerTexts()
    await page.reload()
    await codes.waitFor()
    expect(await codes.allInnerTexts()).toEqual(shown)
    await portal.expectAccessible("enrolment")
    await portal.enrol("000000")
    await page.getByText("is not valid or was already used").waitFor()
    await portal.enrol(await portal.authenticator.code())
    await portal.heading("Hello, Ada").waitFor()
    await portal.expectAccessible("home of the first day")
    await page.getByRole("link", { name: "Vaults" }).click()
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    expect(await page.getByText("Vault of others").count()).toBe(0)
  })

  test("a key is created with a fresh confirmation, works, is edited and is revoked", async () => {
    await page.getByRole("link", { name: "API keys" }).click()
    await page.getByText("No API keys yet").waitFor()
    await portal.expectAccessible("no keys")
    await page.getByRole("link", { name: "New key" }).click()
    await page.getByRole("button", { name: "Create key" }).click()
    await page.locator("input:invalid:focus").waitFor()
    await page.getByLabel("Label").fill("Ledger import")
    await page.getByLabel("Only selected vaults").check()
    await page.getByLabel("Exchange hot wallet").check()
    await page.getByLabel("Allowed IP addresses").fill("not an address")
    await portal.expectAccessible("new key")
    await page.getByRole("button", { name: "Create key" }).click()
    // The form is checked before a code is required.
    await page.locator(".wrong").first().waitFor()
    expect(await page.getByRole("dialog").count()).toBe(0)
    await page.getByText("Check the marked fields.").waitFor()
    await page.getByLabel("Allowed IP addresses").fill("")
    await page.getByRole("button", { name: "Create key" }).click()
    await page.getByRole("dialog").waitFor()
    await portal.expectAccessible("confirmation")
    await portal.confirm("Create key")
    await portal.heading("API key created: Ledger import").waitFor()
    const secret = (await page.locator("[data-secret]").textContent()) ?? ""
    await portal.expectAccessible("new key's secret")
    expect((await app.get("/v1/vaults", secret)).json.data.map(({ id }: { id: string }) => id)).toEqual(["vault_a"])
    await page.getByRole("link", { name: "I have stored it" }).click()
    await page.getByRole("link", { name: "Ledger import" }).waitFor()
    expect(await page.content()).not.toContain(secret)
    await portal.expectAccessible("keys")
    await page.getByRole("link", { name: "Ledger import" }).click()
    await page.getByLabel("webhook:read").check()
    await page.getByLabel("Expiry").selectOption("never")
    await page.getByText("it works until somebody revokes the key").waitFor()
    await portal.expectAccessible("edit key")
    await page.getByRole("button", { name: "Save changes" }).click()
    await portal.expectAccessible("confirmation of an edit")
    await portal.confirm("Save changes", portal.backupCodes.pop())
    await page.getByText("No expiry").waitFor()
    expect((await app.get("/v1/webhooks", secret)).status).toBe(200)
    await page.getByRole("button", { name: "Revoke" }).click()
    await portal.expectAccessible("revoke?")
    await page.getByRole("button", { name: "Revoke key" }).click()
    await page.getByText("Revoked keys").click()
    await page.locator(".status", { hasText: "Revoked" }).waitFor()
    expect((await app.get("/v1/vaults", secret)).json.code).toBe("revoked_api_key")
  })

  test("keys have their expiry in words, and those that expire soon need attention", async () => {
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
    for (const [label, expiresAt] of [
      ["Soon", inDays(29.5)],
      ["Later", inDays(40.5)],
      ["Over", inDays(-1)],
      ["Endless", null]
    ] as const)
      await app.key("user_a", { label, expiresAt })
    await portal.goto("/keys")
    for (const [label, tone, words] of [
      ["Soon", "wait", "Expires in 29 days"],
      ["Later", "good", "Expires in 40 days"],
      ["Over", "bad", "Expired"],
      ["Endless", "wait", "No expiry"]
    ] as const)
      await page.locator("article.key", { hasText: label }).locator(`.status.${tone}`, { hasText: words }).waitFor()
    await portal.expectAccessible("keys that expire")
    await portal.goto("/")
    const attention = page.getByRole("list", { name: "Needs attention" })
    await attention.getByText("API key “Soon”: expires in 29 days").waitFor()
    await attention.getByText("API key “Over”: expired").waitFor()
    expect(await attention.getByText(/Later|Endless/).count()).toBe(0)
    await portal.expectAccessible("home with keys that expire")
  })

  test("an owner sees the keys of others and revokes one", async () => {
    const { secret } = await app.key("user_m", { label: "Import of Max" })
    await portal.goto("/keys")
    const others = page.getByRole("list", { name: "Keys of others" })
    const row = others.locator("article", { hasText: "Import of Max" })
    await row.getByText("Max Muster").waitFor()
    await portal.expectAccessible("keys of others")
    await row.getByRole("button", { name: "Revoke" }).click()
    await page.getByRole("button", { name: "Revoke key" }).click()
    await page.getByText("Nobody else has an API key.").waitFor()
    expect((await app.get("/v1/vaults", secret)).json.code).toBe("revoked_api_key")
  })

  test("an owner sees the members and signs one out", async () => {
    await app.feed([user("user_n", "org_a", ["vault_a"], { name: "Nina Neu", email: "nina@northwind.example" })])
    const nina = await signedIn(app, "user_n")
    // On a phone, the link is at the top.
    await page.setViewportSize(sizes.narrow)
    await page.getByRole("link", { name: "Members" }).click()
    await portal.heading("Members").waitFor()
    await page.getByText("This service sends no e-mail").waitFor()
    await page.getByRole("row", { name: /Ada Keller.*Owner.*Authenticator/ }).waitFor()
    const max = page.getByRole("row", { name: /Max Muster.*Member.*No account.*Never/ })
    await max.waitFor()
    expect(await max.getByRole("link", { name: "Audit log" }).getAttribute("href")).toBe("/portal/audit-log?actor=user_m")
    await portal.expectAccessible("members")
    await page
      .getByRole("row", { name: /Nina Neu/ })
      .getByRole("button", { name: "Sign out" })
      .click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Sign out" }).click()
    await page.getByText("Nina Neu is signed out").waitFor()
    expect(await nina.state()).toBe("signed_out")
  })

  test("a passkey is added, signs in alone and confirms", async () => {
    const devtools = await portal.context.newCDPSession(page)
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
    await portal.goto("/account")
    await page.getByLabel("Passkey name").fill("Test key")
    await page.getByRole("button", { name: "Add passkey" }).click()
    await portal.confirm("Continue", portal.backupCodes.pop())
    await page.getByRole("heading", { name: "Test key" }).waitFor()
    await portal.expectAccessible("account")
    await page.getByRole("button", { name: "New backup codes" }).click()
    await page.getByRole("button", { name: "Use a passkey" }).click()
    await page.getByRole("heading", { name: "Your new backup codes" }).waitFor()
    await page.getByRole("button", { name: "I have stored them" }).click()
    expect(await app.sql("SELECT recipient, subject FROM notices ORDER BY created_at, id")).toEqual([
      { recipient: "ada@northwind.example", subject: "A passkey of your account in the custody portal was added" },
      { recipient: "ada@northwind.example", subject: "The backup codes of your account in the custody portal were renewed" }
    ])
    await page.getByRole("button", { name: "Sign out", exact: true }).first().click()
    await portal.heading("Sign in").waitFor()
    await page.getByRole("button", { name: "Sign in with a passkey" }).click()
    await portal.heading("Account").waitFor()
  })

  test("signing in again requires password and code, and signing out everywhere ends the session", async () => {
    const other = new PortalPage(origin(), await browser.open(origin()))
    await other.goto("/keys")
    await other.page.getByLabel("E-mail address").fill("ada@northwind.example")
    await other.page.getByLabel("Password").fill("not the password")
    await other.page.getByRole("button", { name: "Sign in", exact: true }).click()
    await other.page.getByText("The e-mail address or the password is incorrect.").waitFor()
    await other.page.getByLabel("Password").fill(PASSWORD)
    await other.page.getByRole("button", { name: "Sign in", exact: true }).click()
    await other.heading("Second factor").waitFor()
    await other.expectAccessible("second factor")
    await other.page.getByLabel("Code").fill(await portal.authenticator.code())
    await other.page.getByRole("button", { name: "Continue" }).click()
    await other.heading("API keys").waitFor()
    await portal.goto("/account")
    await page.getByRole("button", { name: "Sign out everywhere" }).click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Sign out everywhere" }).click()
    await portal.heading("Sign in").waitFor()
    await other.page.getByRole("link", { name: "Vaults" }).click()
    await other.heading("Sign in").waitFor()
    await other.context.close()
  })

  test("the next person in the same window sees nothing of the previous one", async () => {
    const { authenticator } = await signedIn(app, "user_m")
    if (authenticator === undefined) throw new Error("no authenticator")
    await page.getByRole("button", { name: "Sign in with a passkey" }).click()
    await portal.heading("Account").waitFor()
    await page.getByRole("link", { name: "Vaults" }).click()
    await page.getByRole("link", { name: "Cold treasury" }).waitFor()
    await app.sql("DELETE FROM portal_sessions WHERE user_id = 'user_a'")
    await page.getByRole("link", { name: "Events" }).click()
    await portal.heading("Sign in").waitFor()
    const { promise, resolve } = Promise.withResolvers<void>()
    await page.route("**/api/v1/vaults?*", async (route) => {
      await promise
      await route.continue()
    })
    await portal.signIn("max@northwind.example", authenticator)
    await portal.heading("Events").waitFor()
    await page.getByRole("link", { name: "Vaults" }).click()
    await portal.heading("Vaults").waitFor()
    await page.getByText("Loading").first().waitFor({ state: "attached" })
    expect(await page.getByText("Cold treasury").count()).toBe(0)
    resolve()
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    expect(await page.locator("tbody tr").count()).toBe(1)
  })

  test("a member sees what the role allows and manages nothing, until the platform deactivates them", async () => {
    const { id } = await create(app, (await app.key("user_a")).secret, { description: "Ledger" })
    await portal.goto(`/webhooks/${id}`)
    await portal.heading("Ledger").waitFor()
    for (const name of ["Send a test event", "More actions", "Edit"]) expect(await page.getByRole("button", { name }).count()).toBe(0)
    await portal.goto("/webhooks/new")
    await page.getByText("Owners manage webhooks").waitFor()
    await portal.expectAccessible("not an owner")
    await app.feed([user("user_m", "org_a", [], { name: "Max Muster", email: "max@northwind.example", status: "deactivated" })])
    await page.getByRole("link", { name: "Vaults" }).click()
    await portal.heading("Sign in").waitFor()
  })

  test("no page contacted another host, violated its policy or had a script error", () => {
    expect(browser.faults).toEqual([])
  })
})
