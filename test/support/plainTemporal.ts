/** A Temporal server without the program's settings for it, as somebody else runs it: no fairness keys. */
import { afterAll, beforeAll } from "bun:test"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { Effect } from "effect"
import { freePort } from "../../src/embedded/Process.ts"
import { until } from "./receiver.ts"
import { keptTemporal } from "./servers.ts"

/** Starts one for the tests of this file. Its address is known once they run. */
export const usePlainTemporal = (): { readonly address: () => string } => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-temporal-"))
  let child: Bun.Subprocess | undefined
  let address = ""
  beforeAll(async () => {
    const port = await Effect.runPromise(freePort)
    address = `127.0.0.1:${port}`
    const database = path.join(folder, "temporal.db")
    const pragmas = ["journal_mode=WAL", "synchronous=NORMAL"].flatMap((pragma) => ["--sqlite-pragma", pragma])
    const where = ["--headless", "--ip", "127.0.0.1", "--port", String(port), "--db-filename", database, "--log-level", "never"]
    child = Bun.spawn([keptTemporal(), "server", "start-dev", ...where, ...pragmas], { stdio: ["ignore", "ignore", "inherit"] })
    const accepts = () =>
      new Promise<boolean>((resolve) => {
        const socket = net.connect(port, "127.0.0.1", () => resolve(true))
        socket.once("error", () => resolve(false)).once("connect", () => socket.destroy())
      })
    await until("a Temporal server", accepts, 60)
  }, 60_000)
  afterAll(async () => {
    child?.kill("SIGINT")
    await child?.exited
    fs.rmSync(folder, { recursive: true, force: true })
  }, 60_000)
  return { address: () => address }
}
