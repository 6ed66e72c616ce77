/** A real browser for the portal: this machine's Chromium, driven over its own protocol. */
import { afterAll, beforeAll } from "bun:test"
import axe from "axe-core"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"

/** The path of Chromium, of its headless build if there is one, which takes a third less CPU; undefined if none is installed. */
export const executable = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"].flatMap(
  (name) => Bun.which(name) ?? []
)[0]

if (executable === undefined)
  console.log("The browser tests are skipped: no Chromium was found on the PATH. Debian's package is “chromium-headless-shell”.")

/** Window sizes in which pages are checked. */
export const sizes = { narrow: { width: 360, height: 760 }, wide: { width: 1280, height: 860 } } as const

/** A browser for the test file that calls this, with contexts that record every script error and every refused request. */
export const useBrowser = () => {
  let browser: Browser | undefined
  const faults: Array<string> = []
  beforeAll(async () => {
    if (executable === undefined) return
    // Without a GPU process: on a busy machine it can stop drawing, and a click waits for a frame.
    const args = ["--disable-gpu", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])]
    browser = await chromium.launch({ executablePath: executable, args })
  })
  afterAll(async () => {
    await browser?.close()
  })

  const watch = (page: Page, origin: string) => {
    page.on("pageerror", (error) => faults.push(`${page.url()}: ${error.message}`))
    page.on("console", (message) => {
      // Refused requests that a page expects and shows, or repeats, are not errors.
      if (message.type() === "error" && !/status of (400|401|403|404|409|410|422|429|503)|ERR_INTERNET_DISCONNECTED/.test(message.text()))
        faults.push(`${page.url()}: ${message.text()}`)
    })
    page.on("request", (request) => {
      if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) faults.push(`a request to ${request.url()}`)
    })
  }
  return {
    /** The errors of all pages; empty without any. */
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

/** The violations that axe-core finds in a page as it is now: the rule, and where. */
export const violations = async (page: Page): Promise<ReadonlyArray<string>> => {
  // The page's policy allows no foreign script, so the checker is evaluated by the debugger instead of being inserted.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source)
  const found = await page.evaluate<
    ReadonlyArray<{ id: string; nodes: ReadonlyArray<{ target: ReadonlyArray<string>; failureSummary?: string }> }>
  >("axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)")
  return found.flatMap(({ id, nodes }) => nodes.map(({ failureSummary, target }) => `${id}: ${target.join(" ")}: ${failureSummary ?? ""}`))
}

/** Widths at which pages are measured, from a small phone to a large screen. */
export const widths = [320, 390, 600, 820, 900, 1024, 1280, 1920]

/** How a page fits into its window. */
export interface Layout {
  /** Whether something is wider than the window, or than the frame around it. */
  readonly overflows: boolean
  /** Texts in a column so narrow that they break into single letters. */
  readonly collapsed: ReadonlyArray<string>
  /** The rows of the navigation's entries, and whether one of them is wider than its place. */
  readonly rows: number
  readonly cut: boolean
}

/** Measures a page as it is now. */
export const layout = (page: Page): Promise<Layout> =>
  page.evaluate<Layout>(`(() => {
    const wider = (one) => one.scrollWidth > one.clientWidth + 1
    const collapsed = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const text = node.textContent.trim()
      if (text.length < 8 || node.parentElement.closest("pre, script, style") !== null) continue
      let hidden = false
      for (let one = node.parentElement; one !== null; one = one.parentElement) hidden ||= one.getBoundingClientRect().width <= 1
      if (hidden) continue
      const range = document.createRange()
      range.selectNodeContents(node)
      const lines = new Set([...range.getClientRects()].filter(({ width }) => width > 1).map(({ top }) => Math.round(top)))
      if (lines.size >= 3 && text.length / lines.size < 6) collapsed.push(text)
    }
    const links = [...document.querySelectorAll("nav[aria-label=Portal] a")].filter((one) => one.checkVisibility())
    return {
      overflows: [document.documentElement, ...document.querySelectorAll('.table, .rows, .card, .dialog, .facts')].some(wider),
      collapsed,
      rows: new Set(links.map((one) => Math.round(one.getBoundingClientRect().top))).size,
      cut: links.some(wider)
    }
  })()`)
