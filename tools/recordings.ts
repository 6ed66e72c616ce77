/**
 * `bun run recordings`: records the screens of the demo and of `custody listen` into docs/images, as they are in a terminal of
 * 88 columns. Pauses over two seconds are shortened. Needs Chromium, which draws the terminal, and ffmpeg.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { chromium } from "playwright-core"
import { executable } from "../test/portal/browser.ts"
import { demoEnv, startDemo } from "./demoProcess.ts"

const root = path.resolve(import.meta.dir, "..")
const COLUMNS = 88
/** Longest pause and how long the last picture stays, in ms. What is printed within `TOGETHER` appears at once. */
const LONGEST_PAUSE = 2_000,
  LAST_PICTURE = 5_000,
  TOGETHER = 100

/** What a command printed, and when. */
interface Recording {
  readonly name: string
  readonly rows: number
  readonly chunks: ReadonlyArray<{ readonly at: number; readonly text: string }>
}

/** Runs a command in a terminal until `during` ends, and then interrupts it. */
const record = async (
  name: string,
  rows: number,
  shown: string,
  command: ReadonlyArray<string>,
  env: Record<string, string | undefined>,
  during: (printed: (pattern: RegExp, count?: number) => Promise<void>) => Promise<void>
): Promise<Recording> => {
  const chunks = [{ at: performance.now(), text: `$ ${shown}\r\n` }]
  let output = ""
  let changed = () => {}
  const decoder = new TextDecoder()
  const child = Bun.spawn([...command], {
    cwd: root,
    env: { ...env, TERM: "xterm-256color" },
    terminal: {
      cols: COLUMNS,
      rows,
      data: (_, data) => {
        const text = decoder.decode(data, { stream: true })
        output += text
        chunks.push({ at: performance.now(), text })
        changed()
      }
    }
  })
  const ended = child.exited.then((code) => {
    throw new Error(`${shown} ended with ${code}:\n${output}`)
  })
  const printed = (pattern: RegExp, count = 1) =>
    new Promise<void>((resolve) => {
      changed = () => {
        if ((Bun.stripANSI(output).match(pattern) ?? []).length >= count) resolve()
      }
      changed()
    })
  await Promise.race([during(printed), ended])
  const recorded = [...chunks]
  child.kill("SIGINT")
  await child.exited
  return { name, rows, chunks: recorded }
}

/** Draws a recording as an animated picture: one frame for each change of the screen. */
const draw = async ({ chunks, name, rows }: Recording, folder: string) => {
  const browser = await chromium.launch({
    executablePath: executable ?? "",
    args: ["--disable-gpu", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])]
  })
  try {
    const page = await browser.newPage({ viewport: { width: 1_000, height: 1_000 } })
    const xterm = path.join(root, "node_modules/@xterm/xterm")
    const mono = fs.readFileSync(path.join(root, "node_modules/@fontsource/ibm-plex-mono/files/ibm-plex-mono-latin-400-normal.woff2"))
    await page.setContent(
      `<style>@font-face { font-family: Plex; src: url(data:font/woff2;base64,${mono.toString("base64")}) }
       body { margin: 0 } #screen { display: inline-block; padding: 12px; background: #16181d }</style><div id="screen"></div>`
    )
    await page.addStyleTag({ path: path.join(xterm, "css/xterm.css") })
    await page.addScriptTag({ path: path.join(xterm, "lib/xterm.js") })
    const look = JSON.stringify({
      cols: COLUMNS,
      rows,
      fontFamily: "Plex, monospace",
      fontSize: 14,
      scrollback: 0,
      cursorInactiveStyle: "none",
      theme: { background: "#16181d", foreground: "#e6e6e6" }
    })
    await page.evaluate(`(async () => {
      await document.fonts.load("14px Plex")
      window.terminal = new Terminal(${look})
      terminal.open(document.querySelector("#screen"))
    })()`)
    const frames: Array<{ readonly file: string; readonly at: number }> = []
    for (let index = 0; index < chunks.length; ) {
      const at = chunks[index]?.at ?? 0
      let text = ""
      for (; index < chunks.length && (chunks[index]?.at ?? 0) < at + TOGETHER; index++) text += chunks[index]?.text
      await page.evaluate(`new Promise((done) => terminal.write(${JSON.stringify(text)}, () => requestAnimationFrame(done)))`)
      const file = path.join(folder, `${name}-${frames.length}.png`)
      await page.locator("#screen").screenshot({ path: file })
      frames.push({ file, at })
    }
    const list = path.join(folder, `${name}.txt`)
    const lengths = frames.map(({ at }, index) => Math.min(LONGEST_PAUSE, (frames[index + 1]?.at ?? Number.POSITIVE_INFINITY) - at))
    const last = frames.at(-1)?.file
    fs.writeFileSync(
      list,
      `${frames.map(({ file }, index) => `file '${file}'\nduration ${(lengths[index] ?? 0) / 1_000}`).join("\n")}\nfile '${last}'\nduration ${LAST_PICTURE / 1_000}\n`
    )
    const filter = "fps=5,split[a][b];[a]palettegen=max_colors=16:stats_mode=full[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
    const target = path.join(root, "docs/images", `${name}.gif`)
    const made = Bun.spawnSync(["ffmpeg", "-y", "-loglevel", "error", "-f", "concat", "-safe", "0", "-i", list, "-vf", filter, target])
    if (made.exitCode !== 0) throw new Error(`ffmpeg: ${made.stderr}`)
  } finally {
    await browser.close()
  }
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-recordings-"))
fs.chmodSync(folder, 0o711)
if (executable === undefined) throw new Error("No Chromium was found on the PATH. Debian's package is “chromium”.")
try {
  const demo = ["demo", 32, "bun run demo", [process.execPath, "src/main.ts", "demo"]] as const
  await draw(await record(...demo, demoEnv(path.join(folder, "demo")), (printed) => printed(/✓ complete/g)), folder)

  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(null, { status: 204 }) })
  // The second demo has the address of the first.
  const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() })
  const port = taken.port ?? 0
  await taken.stop(true)
  const env = demoEnv(path.join(folder, "listen"), port)
  const first = startDemo(env)
  await first.printed(/Deliveries/g)
  const { keys }: { readonly keys: { readonly owner: string } } = JSON.parse(fs.readFileSync(path.join(folder, "listen/demo.json"), "utf8"))
  const args = ["listen", "--forward-to", `http://localhost:${server.port}/hook`]
  const listen = ["listen", 24, `custody ${args.join(" ")}`, [process.execPath, "src/main.ts", ...args]] as const
  let second: ReturnType<typeof startDemo> | undefined
  const listened = await record(
    ...listen,
    { ...env, CUSTODY_URL: `http://127.0.0.1:${port}`, CUSTODY_API_KEY: keys.owner },
    async (printed) => {
      await printed(/#3/g)
      await first.stop()
      await printed(/Connecting again/g)
      second = startDemo(env)
      await printed(/No event was missed/g)
      await printed(/✓ 204/g, 12)
    }
  )
  await second?.stop()
  await draw(listened, folder)
  await server.stop(true)
} finally {
  fs.rmSync(folder, { recursive: true, force: true })
}
