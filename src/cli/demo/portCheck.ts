/** Allows one demo per data directory and port. Reports all conflicts together, before anything starts. */
import { Effect } from "effect"
import { DataDir } from "../../runtime/embedded/DataDir.ts"
import { EmbeddedServerError, livePid, portInUse } from "../../runtime/embedded/Process.ts"
import { Settings } from "../../runtime/settings/Settings.ts"

const PORTS = ["PORT", "PLATFORM_PORT", "EMBEDDED_POSTGRES_PORT", "EMBEDDED_TEMPORAL_PORT", "EMBEDDED_TEMPORAL_UI_PORT"]

/** A command that starts a demo beside whatever is running. */
const BESIDE = `DATA_DIR=.data-2 ${PORTS.map((name) => `${name}=0`).join(" ")} npx --yes bun@1.4.5 run demo`

/** Ports that this run will listen on, by setting; without those of servers that are running already. */
const wanted = Effect.gen(function* () {
  const settings = yield* Settings
  const dataDir = yield* DataDir
  const ownPostgres = settings.databaseUrl === undefined && livePid(dataDir.at("run", "postgres.pid")) === undefined
  const ownTemporal = settings.temporalAddress === undefined && livePid(dataDir.at("run", "temporal.pid")) === undefined
  return [
    ["PORT", settings.port],
    ["PLATFORM_PORT", settings.platformPort],
    ...(ownPostgres ? [["EMBEDDED_POSTGRES_PORT", settings.embeddedPostgresPort] as const] : []),
    ...(ownTemporal
      ? ([
          ["EMBEDDED_TEMPORAL_PORT", settings.embeddedTemporalPort],
          ["EMBEDDED_TEMPORAL_UI_PORT", settings.embeddedTemporalUiPort]
        ] as const)
      : [])
  ] as const
})

/** Fails if there is another demo of the data directory, or a port is in use. */
export const portsFree = Effect.gen(function* () {
  const dataDir = yield* DataDir
  const taken = yield* Effect.filter(yield* wanted, ([, port]) => (port === 0 ? Effect.succeed(false) : portInUse(port)))
  const other = livePid(dataDir.at("run", "demo.pid"), "demo")
  const faults = [
    ...(other === undefined ? [] : [`A demo of ${dataDir.root} is already running (process ${other}).`]),
    ...taken.map(([setting, port]) => `Port ${port} (${setting}) is in use.`)
  ]
  if (faults.length > 0) {
    return yield* new EmbeddedServerError({
      message: `${faults.join("\n")}\nStop it, or run this demo beside it:\n  ${BESIDE}`
    })
  }
  yield* dataDir.pidFile("demo")
})
