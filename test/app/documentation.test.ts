/** The pages at `/v1/docs` as people use them: search, contents, copied code, at any width. */
import { expect, test } from "bun:test"
import * as fs from "node:fs"
import { executable, sizes, useBrowser } from "../portal/browser.ts"
import { useApp } from "../support/app.ts"
import { until } from "../support/receiver.ts"

const app = useApp(["api"])
const browser = useBrowser()
const search = async (query: string) => (await app.get(`/v1/docs/search?q=${encodeURIComponent(query)}`)).text

test("a search finds operations, sections of guides and errors with all of its words", async () => {
  const text = await search("rotate SECRET")
  expect(text).toContain("POST /v1/webhooks/{webhookId}/rotate-secret")
  expect(text).toContain('href="/v1/docs/guides/operations#rotating-keys"')
  expect(text).toContain('href="/v1/docs/errors/rotation_limit_reached"')
  expect(text).not.toContain('href="/v1/docs/errors/invalid_cursor"')
  // The beginning of a word, not its middle.
  expect(await search("deliv signat")).toContain('href="/v1/docs/guides/delivery#signatures"')
  expect(await search("eliveries")).toContain("Nothing contains")
})

test("a search without a result says so and shows the query as text", async () => {
  expect(await search('nothing<script>"')).toContain("Nothing contains all of “nothing&lt;script&gt;&quot;”.")
  expect(await search("")).toContain("Type what you look for")
  expect((await app.get("/v1/docs/search")).status).toBe(200)
  expect((await app.get("/v1/docs/search?q=deposit+addresses&other=1")).text).toContain("/v1/vaults/{vaultId}/addresses")
})

test.skipIf(executable === undefined)("code can be copied, and a page's contents lead to its parts", async () => {
  const { page } = await browser.open(app.main?.baseUrl ?? "")
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
  await page.goto(`${app.main?.baseUrl}/v1/docs/guides/verifying`)
  await page.locator(".contents").getByRole("link", { name: "Python" }).click()
  expect(new URL(page.url()).hash).toBe("#python")
  const block = page.locator(".code").first()
  await block.getByRole("button", { name: "Copy" }).click()
  await until("the copy", async () => (await block.getByRole("button").textContent()) === "Copied")
  expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe((await block.locator("pre").textContent()) ?? "")
  expect(browser.faults).toEqual([])
})

test.skipIf(executable === undefined)(
  "the reference shows every operation before its script runs, and a result opens its operation",
  async () => {
    expect((await app.get("/v1/docs")).text).toContain("<td>POST</td><td><code>/v1/webhooks/{webhookId}/rotate-secret</code></td>")
    const { page } = await browser.open(app.main?.baseUrl ?? "")
    await page.goto(`${app.main?.baseUrl}/v1/docs/search?q=rotate+secret`)
    await page.getByRole("link", { name: /^Rotate the signing secret/ }).click()
    const heading = page.getByRole("heading", { name: /^Rotate the signing secret/ })
    await until("its part of the page", async () => {
      const box = await heading.boundingBox()
      return box !== null && box.y >= 0 && box.y < sizes.wide.height
    })
  }
)

test.skipIf(executable === undefined)("no page scrolls sideways at any width", async () => {
  const { page } = await browser.open(app.main?.baseUrl ?? "")
  const paths = new Set((await search("")).matchAll(/href="(\/v1\/docs[^"#]*)"/g).map(([, path = ""]) => path))
  for (const path of paths) {
    if (path.startsWith("/v1/docs/files/")) continue
    await page.goto(`${app.main?.baseUrl}${path}`)
    if (path === "/v1/docs") await page.getByRole("heading", { name: "Custody Data Service API" }).waitFor()
    for (const width of [1_280, 1_024, 820, 390]) {
      await page.setViewportSize({ width, height: 900 })
      expect([path, width, await page.evaluate<number>("document.documentElement.scrollWidth")]).toEqual([path, width, width])
    }
  }
})

const watches = process.platform === "linux" && Bun.which("python3") !== null

test.skipIf(!watches)(
  `clients that read no page share its memory, up to a limit${watches ? "" : " (skipped: it needs Linux and python3)"}`,
  async () => {
    const { host, port } = new URL(app.main?.baseUrl ?? "")
    const path = /\/v1\/docs\/files\/scalar-[^"]+/.exec((await app.get("/v1/docs")).text)?.[0] ?? ""
    const { byteLength } = await (await fetch(`http://${host}${path}`, { headers: { "accept-encoding": "identity" } })).arrayBuffer()
    expect(byteLength).toBeGreaterThan(2_000_000)
    const memory = () => Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${app.main?.child.pid}/status`, "utf8"))?.[1]) * 1_024
    const before = memory()
    // Each begins to receive, so its response is being sent, and reads no further.
    const clients = Bun.spawn(
      [
        "python3",
        "-c",
        `
import socket, sys
statuses, open_sockets = [], []
for _ in range(20):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", ${port}))
    one.sendall(b"GET ${path} HTTP/1.1\\r\\nHost: ${host}\\r\\nAccept-Encoding: identity\\r\\n\\r\\n")
    statuses.append(one.recv(12, socket.MSG_WAITALL)[9:12].decode())
    open_sockets.append(one)
print(" ".join(statuses), end="", flush=True)
sys.stdin.read()
`
      ],
      { stdin: "pipe", stdout: "pipe", stderr: "inherit" }
    )
    const said = await clients.stdout.getReader().read()
    // 16 MiB for a site, some of which the system has in its connections.
    const statuses = new TextDecoder().decode(said.value).split(" ")
    expect([statuses.length, new Set(statuses)]).toEqual([20, new Set(["200", "503"])])
    expect(statuses.filter((status) => status === "200").length * byteLength).toBeLessThan(16 * 1_048_576)
    expect(memory() - before).toBeLessThan(20 * byteLength)
    clients.stdin.end()
    expect(await clients.exited).toBe(0)
    await until("the next page", async () => (await fetch(`http://${host}${path}`)).ok)
  }
)
