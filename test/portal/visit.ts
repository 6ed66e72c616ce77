/** Somebody at the portal in a real browser: what tests do there again and again. */
import { beforeAll, expect } from "bun:test"
import type { BrowserContext, Page } from "playwright-core"
import { executable, overflows, sizes, useBrowser, violations } from "./browser.ts"
import { Authenticator, invite, PASSWORD } from "./client.ts"
import { useStage } from "./stage.ts"

/** Whether there is a browser to test in. */
export const found = executable !== undefined

export class Visit {
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

  /** Looks at the page as it is, narrow and light, wide and dark: nothing that axe finds, nothing wider than the window. */
  async fine(what: string): Promise<void> {
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
    await this.page.getByLabel("The same once more").fill(PASSWORD)
    await this.page.getByRole("button", { name: "Create my account" }).click()
  }

  /** Takes the secret that is shown into an authenticator. */
  async setUpAuthenticator(): Promise<void> {
    await this.page.getByText("Type it in instead").click()
    const secret = ((await this.page.locator("details .text code").textContent()) ?? "").replaceAll(" ", "")
    this.#authenticator = new Authenticator(`otpauth://totp/x?secret=${secret}`)
    this.backupCodes.push(...(await this.page.getByRole("list", { name: "Backup codes" }).getByRole("listitem").allTextContents()))
  }

  /** Enters a code where an authenticator is set up. */
  async enrol(code: string): Promise<void> {
    await this.page.getByLabel("The code that the app shows now").fill(code)
    await this.page.getByRole("button", { name: "I have kept the backup codes" }).click()
  }

  /** Signs in with a password and a code. */
  async signIn(email: string, authenticator: Authenticator): Promise<void> {
    await this.page.getByLabel("E-mail address").fill(email)
    await this.page.getByLabel("Password").fill(PASSWORD)
    await this.page.getByRole("button", { name: "Sign in", exact: true }).click()
    await this.page.getByLabel("Code").fill(await authenticator.code())
    await this.page.getByRole("button", { name: "Go on" }).click()
  }

  /** Fills in a code, a fresh one unless it is given, and confirms. */
  async confirm(button: string, code?: string): Promise<void> {
    const dialog = this.page.getByRole("dialog")
    await dialog.getByLabel("Code of your authenticator").fill(code ?? (await this.authenticator.code()))
    await dialog.getByRole("button", { name: button }).click()
  }
}

/** A service, a browser, and in it the owner of the stage's organization, for the test file that calls this. */
export const useOwner = () => {
  const stage = useStage(found)
  const browser = useBrowser()
  const visits: Array<Visit> = []
  beforeAll(async () => {
    if (!found) return
    const visit = new Visit(stage.origin(), await browser.open(stage.origin()))
    visits.push(visit)
    await visit.goto(`/invitation#${await invite(stage.app, "user_a")}`)
    await visit.choosePassword()
    await visit.setUpAuthenticator()
    await visit.enrol(await visit.authenticator.code())
    await visit.heading("Vaults").waitFor()
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
