/** Somebody at the portal in a real browser: what tests do there again and again. */
import { beforeAll, expect } from "bun:test"
import type { BrowserContext, Page } from "playwright-core"
import { collapsed, executable, overflows, sizes, useBrowser, violations, widths } from "./browser.ts"
import { Authenticator, invite, PASSWORD } from "./client.ts"
import { useStage } from "./portalFixture.ts"

/** Whether there is a browser to test in. */
export const found = executable !== undefined

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
   * Looks at the page as it is: at no width is anything wider than the window or broken into letters, and axe finds
   * nothing, neither narrow and light nor wide and dark.
   */
  async fine(what: string): Promise<void> {
    for (const width of widths) {
      await this.page.setViewportSize({ width, height: sizes.wide.height })
      expect([what, width, await overflows(this.page), ...(await collapsed(this.page))]).toEqual([what, width, false])
    }
    for (const [size, colorScheme] of [
      ["narrow", "light"],
      ["wide", "dark"]
    ] as const) {
      await this.page.setViewportSize(sizes[size])
      await this.page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
      expect([what, size, await overflows(this.page), ...(await violations(this.page))]).toEqual([what, size, false])
    }
  }

  get authenticator(): Authenticator {
    if (this.#authenticator === undefined) throw new Error("no authenticator is set up")
    return this.#authenticator
  }

  /** Taken like a code of the authenticator, without waiting for the next one. */
  readonly backupCodes: Array<string> = []

  /** Chooses a password on the page of an invitation. */
  async choosePassword(): Promise<void> {
    await this.page.getByLabel("Choose a password").fill(PASSWORD)
    await this.page.getByLabel("Confirm password").fill(PASSWORD)
    await this.page.getByRole("button", { name: "Create account" }).click()
  }

  /** Takes the secret that is shown into an authenticator. */
  async setUpAuthenticator(): Promise<void> {
    await this.page.getByText("Enter the secret by hand").click()
    const secret = ((await this.page.locator("details .text code").textContent()) ?? "").replaceAll(" ", "")
    this.#authenticator = new Authenticator(`otpauth://totp/x?secret=${secret}`)
    this.backupCodes.push(...(await this.page.getByRole("list", { name: "Backup codes" }).getByRole("listitem").allTextContents()))
  }

  /** Enters a code where an authenticator is set up. */
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

  /** Shows the rows that came to a live list since it was read. */
  async takeIn(): Promise<void> {
    await this.page.locator(".news .pill").click()
  }

  /** Opens the menu of a page and chooses from it. */
  async choose(name: string): Promise<void> {
    await this.page.locator(".menu > summary").click()
    await this.page.locator(".menu").getByRole("button", { name }).click()
  }

  /** Fills in a code, a fresh one unless it is given, and confirms. */
  async confirm(button: string, code?: string): Promise<void> {
    const dialog = this.page.getByRole("dialog")
    await dialog.getByLabel("Authenticator code").fill(code ?? (await this.authenticator.code()))
    await dialog.getByRole("button", { name: button }).click()
  }
}

/** A service, a browser, and in it the owner of the stage's organization, for the test file that calls this. */
export const useOwner = () => {
  const stage = useStage(found)
  const browser = useBrowser()
  const visits: Array<PortalPage> = []
  beforeAll(async () => {
    if (!found) return
    const visit = new PortalPage(stage.origin(), await browser.open(stage.origin()))
    visits.push(visit)
    await visit.goto(`/invitation#${await invite(stage.app, "user_a")}`)
    await visit.choosePassword()
    await visit.setUpAuthenticator()
    await visit.enrol(await visit.authenticator.code())
    await visit.heading("Hello, Ada").waitFor()
  }, 180_000)
  return {
    ...stage,
    browser,
    /** The owner, signed in. */
    owner: () => {
      const [visit] = visits
      if (visit === undefined) throw new Error("there is no browser")
      return visit
    }
  }
}
