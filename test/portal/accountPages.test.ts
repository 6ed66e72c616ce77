import { describe, expect, test } from "bun:test"
import type { Page } from "playwright-core"
import { user } from "../support/records.ts"
import { create } from "../support/webhookFixtures.ts"
import { useBrowser } from "./browser.ts"
import { invite, PASSWORD, signedIn } from "./client.ts"
import { found, PortalPage } from "./PortalPage.ts"
import { useStage } from "./portalFixture.ts"

const { app, origin } = useStage(found)
const browser = useBrowser()
let visit: PortalPage, page: Page

describe.skipIf(!found)("accounts and keys in a browser", () => {
  test("an invitation leads to a password, a second factor, and in", async () => {
    visit = new PortalPage(origin(), await browser.open(origin()))
    page = visit.page
    await visit.goto("/")
    await visit.heading("Sign in").waitFor()
    await visit.fine("sign-in")
    await visit.goto("/invitation#nonsense")
    await page.getByText("was already used, has expired").waitFor()
    await visit.fine("invitation that is none")
    await page.goto("about:blank")
    await visit.goto(`/invitation#${await invite(app, "user_a")}`)
    await visit.heading("Welcome, Ada Keller").waitFor()
    await visit.fine("invitation")
    await page.getByLabel("Choose a password").fill(PASSWORD)
    await page.getByLabel("Confirm password").fill("something else entirely")
    await page.getByRole("button", { name: "Create account" }).click()
    await page.getByText("The passwords do not match.").waitFor()
    await visit.choosePassword()
    await visit.heading("Set up a second factor").waitFor()
    expect(page.url()).not.toContain("#")
    await visit.setUpAuthenticator()
    await visit.fine("enrolment")
    await visit.enrol("000000")
    await page.getByText("is not valid or was already used").waitFor()
    await visit.enrol(await visit.authenticator.code())
    await visit.heading("Hello, Ada").waitFor()
    await visit.fine("home of the first day")
    await page.getByRole("link", { name: "Vaults" }).click()
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    expect(await page.getByText("Vault of others").count()).toBe(0)
  }, 180_000)

  test("a key is created with a fresh confirmation, works, is edited, and is revoked", async () => {
    await page.getByRole("link", { name: "API keys" }).click()
    await page.getByText("No API keys yet").waitFor()
    await visit.fine("no keys")
    await page.getByRole("link", { name: "New key" }).click()
    await page.getByLabel("Label").fill("Ledger import")
    await page.getByLabel("Only selected vaults").check()
    await page.getByLabel("Exchange hot wallet").check()
    await page.getByLabel("Allowed IP addresses").fill("not an address")
    await visit.fine("new key")
    await page.getByRole("button", { name: "Create key" }).click()
    // The form is checked before a code is asked for.
    await page.locator(".wrong").first().waitFor()
    expect(await page.getByRole("dialog").count()).toBe(0)
    await page.getByText("Check the marked fields.").waitFor()
    await page.getByLabel("Allowed IP addresses").fill("")
    await page.getByRole("button", { name: "Create key" }).click()
    await page.getByRole("dialog").waitFor()
    await visit.fine("confirmation")
    await visit.confirm("Create key")
    await visit.heading("API key created: Ledger import").waitFor()
    const secret = (await page.locator("[data-secret]").textContent()) ?? ""
    await visit.fine("new key's secret")
    expect((await app.get("/v1/vaults", secret)).json.data.map(({ id }: { id: string }) => id)).toEqual(["vault_a"])
    await page.getByRole("link", { name: "I have stored it" }).click()
    await page.getByRole("link", { name: "Ledger import" }).waitFor()
    expect(await page.content()).not.toContain(secret)
    await visit.fine("keys")
    await page.getByRole("link", { name: "Ledger import" }).click()
    await page.getByLabel("webhook:read").check()
    await page.getByLabel("Expiry").selectOption("never")
    await visit.fine("edit key")
    await page.getByRole("button", { name: "Save changes" }).click()
    await visit.fine("confirmation of an edit")
    await visit.confirm("Save changes", visit.backupCodes.pop())
    await page.getByText("No expiry").waitFor()
    expect((await app.get("/v1/webhooks", secret)).status).toBe(200)
    await page.getByRole("button", { name: "Revoke" }).click()
    await visit.fine("revoke?")
    await page.getByRole("button", { name: "Revoke key" }).click()
    await page.getByText("1 revoked key").click()
    await page.locator(".status", { hasText: "Revoked" }).waitFor()
    expect((await app.get("/v1/vaults", secret)).json.code).toBe("revoked_api_key")
  }, 180_000)

  test("a passkey is added, signs in by itself, and confirms", async () => {
    const devtools = await visit.context.newCDPSession(page)
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
    await visit.goto("/account")
    await page.getByLabel("Passkey name").fill("Test key")
    await page.getByRole("button", { name: "Add passkey" }).click()
    await visit.confirm("Continue", visit.backupCodes.pop())
    await page.getByRole("heading", { name: "Test key" }).waitFor()
    await visit.fine("account")
    await page.getByRole("button", { name: "New backup codes" }).click()
    await page.getByRole("button", { name: "Use a passkey" }).click()
    await page.getByRole("heading", { name: "Your new backup codes" }).waitFor()
    await page.getByRole("button", { name: "I have stored them" }).click()
    await page.getByRole("button", { name: "Sign out", exact: true }).first().click()
    await visit.heading("Sign in").waitFor()
    await page.getByRole("button", { name: "Sign in with a passkey" }).click()
    await visit.heading("Account").waitFor()
  }, 180_000)

  test("signing in again takes a password and a code, and signing out everywhere ends it", async () => {
    const other = new PortalPage(origin(), await browser.open(origin()))
    await other.goto("/keys")
    await other.page.getByLabel("E-mail address").fill("ada@northwind.example")
    await other.page.getByLabel("Password").fill("not the password")
    await other.page.getByRole("button", { name: "Sign in", exact: true }).click()
    await other.page.getByText("The e-mail address or the password is incorrect.").waitFor()
    await other.page.getByLabel("Password").fill(PASSWORD)
    await other.page.getByRole("button", { name: "Sign in", exact: true }).click()
    await other.heading("Second factor").waitFor()
    await other.fine("second factor")
    await other.page.getByLabel("Code").fill(await visit.authenticator.code())
    await other.page.getByRole("button", { name: "Continue" }).click()
    await other.heading("API keys").waitFor()
    await visit.goto("/account")
    await page.getByRole("button", { name: "Sign out everywhere" }).click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Sign out everywhere" }).click()
    await visit.heading("Sign in").waitFor()
    await other.page.getByRole("link", { name: "Vaults" }).click()
    await other.heading("Sign in").waitFor()
    await other.context.close()
  }, 180_000)

  test("who signs in after somebody else in the same window sees nothing of theirs", async () => {
    const { authenticator } = await signedIn(app, "user_m")
    if (authenticator === undefined) throw new Error("no authenticator")
    await page.getByRole("button", { name: "Sign in with a passkey" }).click()
    await visit.heading("Account").waitFor()
    await page.getByRole("link", { name: "Vaults" }).click()
    await page.getByRole("link", { name: "Cold treasury" }).waitFor()
    await app.sql("DELETE FROM portal_sessions WHERE user_id = 'user_a'")
    await page.getByRole("link", { name: "Events" }).click()
    await visit.heading("Sign in").waitFor()
    const { promise, resolve } = Promise.withResolvers<void>()
    await page.route("**/api/v1/vaults?*", async (route) => {
      await promise
      await route.continue()
    })
    await visit.signIn("max@northwind.example", authenticator)
    await visit.heading("Events").waitFor()
    await page.getByRole("link", { name: "Vaults" }).click()
    await visit.heading("Vaults").waitFor()
    await page.getByText("Loading").first().waitFor({ state: "attached" })
    expect(await page.getByText("Cold treasury").count()).toBe(0)
    resolve()
    await page.getByRole("link", { name: "Exchange hot wallet" }).waitFor()
    expect(await page.locator("tbody tr").count()).toBe(1)
  }, 180_000)

  test("a member sees what the role allows and manages nothing, until the platform deactivates them", async () => {
    const { id } = await create(app, (await app.key("user_a")).secret, { description: "Ledger" })
    await visit.goto(`/webhooks/${id}`)
    await visit.heading("Ledger").waitFor()
    for (const name of ["Send a test event", "More actions", "Edit"]) expect(await page.getByRole("button", { name }).count()).toBe(0)
    await visit.goto("/webhooks/new")
    await page.getByText("Owners manage webhooks").waitFor()
    await visit.fine("not an owner")
    await app.feed([user("user_m", "org_a", [], { name: "Max Muster", email: "max@northwind.example", status: "deactivated" })])
    await page.getByRole("link", { name: "Vaults" }).click()
    await visit.heading("Sign in").waitFor()
  }, 180_000)

  test("no page asked another host, broke its policy, or failed in its script", () => {
    expect(browser.faults).toEqual([])
  })
})
