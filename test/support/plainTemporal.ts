/** A Temporal server without the program's settings for it, with its default settings: no fairness keys. */
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { Effect } from "effect"
import { freePort } from "./freePort.ts"
import { until } from "./receiver.ts"
import { keptTemporal } from "./servers.ts"

/** Starts one. */
export const startPlainTemporal = async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-temporal-"))
  const port = await Effect.runPromise(freePort)
  const database = path.join(folder, "temporal.db")
  const pragmas = ["journal_mode=WAL", "synchronous=NORMAL"].flatMap((pragma) => ["--sqlite-pragma", pragma])
  const where = ["--headless", "--ip", "127.0.0.1", "--port", String(port), "--db-filename", database, "--log-level", "never"]
  const child = Bun.spawn([keptTemporal(), "server", "start-dev", ...where, ...pragmas], { stdio: ["ignore", "ignore", "inherit"] })
  const accepts = () =>
    new Promise<boolean>((resolve) => {
      const socket = net.connect(port, "127.0.0.1", () => resolve(true))
      socket.once("error", () => resolve(false)).once("connect", () => socket.destroy())
    })
  const stop = async () => {
    child.kill("SIGINT")
    await child.exited
    fs.rmSync(folder, { recursive: true, force: true })
  }
  try {
    await until("a Temporal server", accepts)
  } catch (error) {
    await stop()
    throw error
  }
  return { address: `127.0.0.1:${port}`, stop }
}
