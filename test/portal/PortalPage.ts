/** A user of the portal in a real browser, with the steps that tests share. */
import { beforeAll, expect } from "bun:test"
import type { BrowserContext, Locator, Page } from "playwright-core"
import type { Environment } from "../support/app.ts"
import { until } from "../support/receiver.ts"
import { executable, layout, sizes, useBrowser, violations, widths } from "./browser.ts"
import { Authenticator, PASSWORD, signedIn, type Visitor } from "./client.ts"
import { usePortalService } from "./portalFixture.ts"

/** Whether there is a browser for tests. */
export const hasBrowser = executable !== undefined

export class PortalPage {
  readonly origin: string
  readonly context: BrowserContext
  readonly page: Page
  #authenticator: Authenticator | undefined
  constructor(origin: string, { context, page }: { readonly context: BrowserContext; readonly page: Page }) {
    this.origin = origin
    this.context = context
    this.page = page
  }

  /** Opens a page of the portal. */
  goto(path: string) {
    return this.page.goto(`${this.origin}/portal${path}`)
  }

  heading(name: string | RegExp) {
    return this.page.getByRole("heading", { level: 1, name })
  }

  /**
   * Expects that at no width anything is wider than the window or broken into letters, that the navigation of narrow
   * windows is one row, and that axe reports nothing, both narrow and light and wide and dark.
   */
  async expectAccessible(what: string): Promise<void> {
    for (const width of widths) {
      await this.page.setViewportSize({ width, height: sizes.wide.height })
      const { collapsed, cut, overflows, rows } = await layout(this.page)
      expect([what, width, overflows, ...collapsed]).toEqual([what, width, false])
      // A bar of one row where the window is narrow, a column elsewhere.
      if (width < 800) expect([what, width, rows <= 1, cut]).toEqual([what, width, true, false])
    }
    for (const [size, colorScheme] of [
      ["narrow", "light"],
      ["wide", "dark"]
    ] as const) {
      await this.page.setViewportSize(sizes[size])
      await this.page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
      const { overflows } = await layout(this.page)
      expect([what, size, overflows, ...(await violations(this.page))]).toEqual([what, size, false])
    }
  }

  get authenticator(): Authenticator {
    if (this.#authenticator === undefined) throw new Error("no authenticator is set up")
    return this.#authenticator
  }

  /** Each works like a code of the authenticator, without waiting for the next code. */
  readonly backupCodes: Array<string> = []

  /** Goes on with the session of a visitor, who accepted an invitation without a browser. */
  async takeOver({ authenticator, backupCodes, cookies }: Visitor): Promise<void> {
    this.#authenticator = authenticator
    this.backupCodes.push(...backupCodes)
    await this.context.addCookies([...cookies].map(([name, value]) => ({ name, value, url: this.origin })))
  }

  /** Chooses a password on the page of an invitation. */
  async choosePassword(): Promise<void> {
    await this.page.getByLabel("Choose a password").fill(PASSWORD)
    await this.page.getByLabel("Confirm password").fill(PASSWORD)
    await this.page.getByRole("button", { name: "Create account" }).click()
  }

  /** Sets up an authenticator with the secret that the page shows. */
  async setUpAuthenticator(): Promise<void> {
    await this.page.getByText("Enter the secret manually").click()
    const secret = ((await this.page.locator("details .text code").textContent()) ?? "").replaceAll(" ", "")
    this.#authenticator = new Authenticator(`otpauth://totp/x?secret=${secret}`)
    this.backupCodes.push(...(await this.page.getByRole("list", { name: "Backup codes" }).getByRole("listitem").allTextContents()))
  }

  /** Confirms the authenticator with a code. */
  async enrol(code: string): Promise<void> {
    await this.page.getByLabel("Code from the app").fill(code)
    await this.page.getByRole("button", { name: "I have stored the backup codes" }).click()
  }

  /** Signs in with a password and a code. */
  async signIn(email: string, authenticator: Authenticator): Promise<void> {
    await this.page.getByLabel("E-mail address").fill(email)
    await this.page.getByLabel("Password").fill(PASSWORD)
    await this.page.getByRole("button", { name: "Sign in", exact: true }).click()
    await this.page.getByLabel("Code").fill(await authenticator.code())
    await this.page.getByRole("button", { name: "Continue" }).click()
  }

  /** Shows the rows that a live list received since it was loaded. */
  async showNewRows(): Promise<void> {
    await this.soon(this.page.locator(".news .pill"))
    await this.page.locator(".news .pill").click()
  }

  /** Waits for a change made at the service, by default for something to appear. Makes the page refresh at once, as when its window is shown. */
  async soon(what: Locator, state: "visible" | "detached" = "visible"): Promise<void> {
    await until("what changed", async () => {
      await this.page.evaluate("window.dispatchEvent(new Event('visibilitychange'))")
      return await what.waitFor({ state, timeout: 1_000 }).then(
        () => true,
        () => false
      )
    })
  }

  /** Opens the menu of a page and chooses from it. */
  async choose(name: string): Promise<void> {
    await this.page.locator(".menu > summary").click()
    await this.page.locator(".menu").getByRole("button", { name }).click()
  }

  /** Enters a code, a fresh one by default, and confirms. */
  async confirm(button: string, code?: string): Promise<void> {
    const dialog = this.page.getByRole("dialog")
    await dialog.getByLabel("Authenticator code").fill(code ?? (await this.authenticator.code()))
    await dialog.getByRole("button", { name: button }).click()
  }
}

/** A service, and a browser with its organization's owner, for the test file that calls this. */
export const useOwner = (env: Environment = {}) => {
  const service = usePortalService(hasBrowser, env)
  const browser = useBrowser()
  const opened: Array<PortalPage> = []
  beforeAll(async () => {
    if (!hasBrowser) return
    const portal = new PortalPage(service.origin(), await browser.open(service.origin()))
    opened.push(portal)
    await portal.takeOver(await signedIn(service.app, "user_a"))
    await portal.goto("/")
    await portal.heading("Hello, Ada").waitFor()
  })
  return {
    ...service,
    browser,
    /** The owner, signed in. */
    owner: () => {
      const [portal] = opened
      if (portal === undefined) throw new Error("there is no browser")
      return portal
    }
  }
}
