/**
 * `bun run screenshots`: makes the pictures of the portal in docs/images anew, from the demo, which is started in a folder
 * of its own and on free ports. Needs Chromium.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { chromium } from "playwright-core"
import { executable } from "../test/portal/browser.ts"
import { PortalPage } from "../test/portal/PortalPage.ts"

const root = path.resolve(import.meta.dir, "..")
const images = path.join(root, "docs/images")
/** Size of the pictures in CSS pixels. */
const viewport = { width: 1200, height: 900 }
const PORTS = ["PORT", "PLATFORM_PORT", "EMBEDDED_POSTGRES_PORT", "EMBEDDED_TEMPORAL_PORT", "EMBEDDED_TEMPORAL_UI_PORT"]

/** Starts the demo, and waits until it has told its story. Returns the link of its invitation and how to stop it. */
const startDemo = async (folder: string) => {
  const child = Bun.spawn([process.execPath, "src/main.ts", "demo"], {
    cwd: root,
    env: { ...process.env, ...Object.fromEntries(PORTS.map((name) => [name, "0"])), DATA_DIR: folder },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit"
  })
  let shown = ""
  await new Promise<void>((told) => {
    const read = async () => {
      // It is read to its end: a demo that nobody listens to stops.
      for await (const chunk of child.stdout) {
        shown += Buffer.from(chunk).toString()
        // The last part of the story: both secrets verify.
        if ((shown.match(/✓ new ✓ old/g) ?? []).length >= 3) told()
      }
      told()
    }
    void read()
  })
  const invitation = /http:\/\/\S+\/portal\/invitation#\S+/.exec(shown)?.[0]
  if (invitation === undefined) throw new Error(`The demo did not start:\n${shown}`)
  return {
    invitation: new URL(invitation),
    stop: async () => {
      child.kill("SIGINT")
      await child.exited
    }
  }
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-screenshots-"))
fs.chmodSync(folder, 0o711)
if (executable === undefined) throw new Error("No Chromium was found on the PATH. Debian's package is “chromium”.")
const browser = await chromium.launch({ executablePath: executable, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] })
try {
  const demo = await startDemo(path.join(folder, "data"))
  try {
    const context = await browser.newContext({ viewport, reducedMotion: "reduce", locale: "en-GB", timezoneId: "UTC" })
    const page = await context.newPage()
    const portal = new PortalPage(demo.invitation.origin, { context, page })
    await portal.goto(`/invitation${demo.invitation.hash}`)
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
