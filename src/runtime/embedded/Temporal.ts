/**
 * The embedded Temporal dev server: state in `DATA_DIR/temporal.db`, with its UI, both on loopback. Processes share it
 * (Shared.ts).
 */

import * as net from "node:net"
import { Effect } from "effect"
import { Settings } from "../settings/Settings.ts"
import { DataDir } from "./DataDir.ts"
import * as Process from "./Process.ts"
import { shared } from "./Shared.ts"
import * as TemporalBinary from "./TemporalBinary.ts"

/** Addresses of a Temporal server: gRPC and UI. */
export interface Addresses {
  readonly address: string
  readonly ui: string
}

const accepts = (port: number): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    const socket = net.connect({ port, host: "127.0.0.1" })
    const done = (answer: boolean) => {
      socket.destroy()
      resume(Effect.succeed(answer))
    }
    socket.once("connect", () => done(true))
    socket.once("error", () => done(false))
  })

/** Values of Temporal's dynamic configuration, by name. */
interface DynamicConfig {
  readonly [name: string]: boolean | number
}
/** What every server has: fairness between the organizations of a task queue. */
export const dynamicConfig: DynamicConfig = { "matching.useNewMatcher": true, "matching.enableFairness": true }

/** The embedded Temporal server, started with more dynamic configuration if it is not running. Scoped: the last that uses it stops it. */
export const acquireWith = Effect.fnUntraced(function* (more: DynamicConfig) {
  const settings = yield* Settings
  const dataDir = yield* DataDir
  const database = dataDir.at("temporal.db"),
    pidFile = dataDir.at("run", "temporal.pid")
  const stopSignal = "SIGTERM" as const

  const start = Effect.gen(function* () {
    const command = yield* TemporalBinary.find
    const found = yield* Effect.gen(function* () {
      const port = yield* Process.choosePort("EMBEDDED_TEMPORAL_PORT", settings.embeddedTemporalPort)
      const uiPort = yield* Process.choosePort("EMBEDDED_TEMPORAL_UI_PORT", settings.embeddedTemporalUiPort)
      yield* Process.start({
        name: "Temporal server",
        command,
        pidFile,
        marker: database,
        stopSignal,
        logFile: dataDir.at("log", "temporal.log"),
        args: [
          "server",
          "start-dev",
          "--ip",
          "127.0.0.1",
          "--port",
          String(port),
          "--ui-port",
          String(uiPort),
          "--db-filename",
          database,
          "--sqlite-pragma",
          "journal_mode=WAL",
          "--sqlite-pragma",
          "synchronous=NORMAL",
          "--log-level",
          "error",
          "--namespace",
          settings.temporalNamespace,
          ...Object.entries({ ...dynamicConfig, ...more }).flatMap(([name, value]) => ["--dynamic-config-value", `${name}=${value}`])
        ],
        ready: Effect.zipWith(accepts(port), accepts(uiPort), (a, b) => a && b)
      })
      return { address: `127.0.0.1:${port}`, ui: `http://127.0.0.1:${uiPort}` } satisfies Addresses
    }).pipe(Effect.retry({ times: 4, while: Process.isPortTaken }))
    dataDir.writeServers({ temporalAddress: found.address, temporalUi: found.ui })
    return found
  })

  const running = Effect.gen(function* () {
    const { temporalAddress, temporalUi } = dataDir.servers()
    if (temporalAddress === undefined || temporalUi === undefined || Process.livePid(pidFile, database) === undefined) return undefined
    return (yield* accepts(Number(temporalAddress.split(":")[1]))) ? { address: temporalAddress, ui: temporalUi } : undefined
  })

  return yield* shared({ name: "temporal", pidFile, marker: database, stopSignal, running, start })
})

/** The embedded Temporal server, started if it is not running. Scoped: the last that uses it stops it. */
export const acquire = acquireWith({})
