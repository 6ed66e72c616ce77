/**
 * `bun run screenshots`: recreates the pictures of the portal in docs/images from the demo, which is started in a separate
 * folder and on free ports. Needs Chromium.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { chromium } from "playwright-core"
import { executable } from "../test/portal/browser.ts"
import { PortalPage } from "../test/portal/PortalPage.ts"
import { demoEnv, startDemo } from "./demoProcess.ts"

const root = path.resolve(import.meta.dir, "..")
const images = path.join(root, "docs/images")
/** Size of the pictures in CSS pixels. */
const viewport = { width: 1200, height: 900 }

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-screenshots-"))
fs.chmodSync(folder, 0o711)
if (executable === undefined) throw new Error("No Chromium was found on the PATH. Debian's package is “chromium”.")
const browser = await chromium.launch({ executablePath: executable, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] })
try {
  const demo = startDemo(demoEnv(path.join(folder, "data")))
  try {
    // The last part of the story: both secrets verify.
    const link = /http:\/\/\S+\/portal\/invitation#\S+/.exec(await demo.printed(/✓ new ✓ old/g, 3))?.[0]
    if (link === undefined) throw new Error("The demo printed no invitation")
    const invitation = new URL(link)
    const context = await browser.newContext({ viewport, reducedMotion: "reduce", locale: "en-GB", timezoneId: "UTC" })
    const page = await context.newPage()
    const portal = new PortalPage(invitation.origin, { context, page })
    await portal.goto(`/invitation${invitation.hash}`)
    await portal.choosePassword()
    await portal.setUpAuthenticator()
    await portal.enrol(await portal.authenticator.code())
    await portal.heading(/^Hello/).waitFor()
    const save = (name: string) => page.screenshot({ path: path.join(images, `${name}.png`) })

    await portal.goto("/webhooks")
    await page
      .getByRole("link", { name: /Demo: back office/ })
      .first()
      .click()
    await page.getByRole("tab", { name: "Deliveries" }).click()
    await page.getByText("2 attempts").first().click()
    await page.getByText("HTTP 503").first().waitFor()
    await save("portal-webhook")

    await portal.goto("/vaults")
    await page.getByRole("row").nth(1).getByRole("link").first().click()
    await page.getByRole("tab", { name: "Transactions" }).click()
    await page.locator("table").getByText("Confirmed").first().waitFor()
    await save("portal-vault")
  } finally {
    await demo.stop()
  }
} finally {
  await browser.close()
  fs.rmSync(folder, { recursive: true, force: true })
}
