/** A real browser at the portal: the Chromium of this machine, driven over its own protocol. */
import { afterAll, beforeAll } from "bun:test"
import axe from "axe-core"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"

/** Where Chromium is; undefined where there is none. */
export const executable = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"].flatMap(
  (name) => Bun.which(name) ?? []
)[0]

if (executable === undefined)
  console.log("The browser tests are skipped: no Chromium was found on the PATH. Debian's package is “chromium”.")

/** Sizes that pages are looked at in. */
export const sizes = { narrow: { width: 360, height: 760 }, wide: { width: 1280, height: 860 } } as const

/** A browser for the test file that calls this, with contexts that tell of every script error and every refused request. */
export const useBrowser = () => {
  let browser: Browser | undefined
  const faults: Array<string> = []
  beforeAll(async () => {
    if (executable === undefined) return
    browser = await chromium.launch({ executablePath: executable, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] })
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
  }, 60_000)

  const watch = (page: Page, origin: string) => {
    page.on("pageerror", (error) => faults.push(`${page.url()}: ${error.message}`))
    page.on("console", (message) => {
      // Refusals that a page asked for and shows are no faults of it.
      if (message.type() === "error" && !/status of (400|401|403|404|409|410|422|429)|ERR_INTERNET_DISCONNECTED/.test(message.text()))
        faults.push(`${page.url()}: ${message.text()}`)
    })
    page.on("request", (request) => {
      if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) faults.push(`a request to ${request.url()}`)
    })
  }
  return {
    /** What went wrong in any page, empty when nothing did. */
    faults,
    open: async (
      origin: string,
      options: Parameters<Browser["newContext"]>[0] = {}
    ): Promise<{ readonly context: BrowserContext; readonly page: Page }> => {
      if (browser === undefined) throw new Error("there is no browser")
      const context = await browser.newContext({ viewport: sizes.wide, locale: "en-GB", timezoneId: "Europe/Zurich", ...options })
      context.on("page", (page) => watch(page, origin))
      const page = await context.newPage()
      page.setDefaultTimeout(30_000)
      return { context, page }
    }
  }
}

/** What axe-core finds wrong with a page as it is now: the rule, and where. */
export const violations = async (page: Page): Promise<ReadonlyArray<string>> => {
  // The page's policy takes no foreign script, so the checker is evaluated by the debugger instead of being put in.
  await page.evaluate(axe.source)
  const found = await page.evaluate<
    ReadonlyArray<{ id: string; nodes: ReadonlyArray<{ target: ReadonlyArray<string>; failureSummary?: string }> }>
  >("axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)")
  return found.flatMap(({ id, nodes }) => nodes.map(({ failureSummary, target }) => `${id}: ${target.join(" ")}: ${failureSummary ?? ""}`))
}

/** Whether something is wider than the window. */
export const overflows = (page: Page): Promise<boolean> =>
  page.evaluate<boolean>("document.documentElement.scrollWidth > document.documentElement.clientWidth")
