/**
 * The doctor: checks every setting and every dependency and explains how to fix each fault. It changes and starts nothing.
 * If settings are invalid, it checks nothing else, because the other checks depend on them.
 */
import { Effect, Layer } from "effect"
import { DataDir } from "../../runtime/embedded/DataDir.ts"
import { type Inspected, inspect, Settings } from "../../runtime/settings/Settings.ts"
import { unknownSettings } from "../../runtime/settings/unknownSettings.ts"
import { type Finding, fault, notice } from "./Finding.ts"
import { certificates, conditions, dataDirectory, ports } from "./machineChecks.ts"
import { outside } from "./networkChecks.ts"
import { postgres } from "./postgresChecks.ts"
import { readReplica } from "./replicaChecks.ts"
import { temporal } from "./temporalChecks.ts"

/** The findings. */
export interface Report {
  /** Every setting with its effective value; secrets are hidden. */
  readonly settings: ReadonlyArray<Inspected>
  readonly findings: ReadonlyArray<Finding>
}

const settingFault = (text: string): Finding => {
  const [name = "", ...rest] = text.split(": ")
  return fault(name, rest.join(": "), `Set ${name} as expected, or unset it.`, 3)
}

/** With a database of your own, the master key and the feed's token must be set, as startup requires. */
const missingKeys = Effect.map(Settings, ({ databaseUrl, masterKey, platformToken }): ReadonlyArray<Finding> => {
  if (databaseUrl === undefined) return []
  const says = "It is not set, but DATABASE_URL is."
  return [
    ...(masterKey === undefined
      ? [fault("MASTER_KEY", says, "Set it to the output of `openssl rand -base64 32`, and keep it safe.", 3)]
      : []),
    ...(platformToken === undefined
      ? [notice("PLATFORM_TOKEN", `${says} A process with the API does not start.`, "Set it to the output of `openssl rand -hex 24`.")]
      : [])
  ]
})

/** Runs all checks. */
export const examine = Effect.gen(function* () {
  const { faults, inspected, values } = yield* inspect
  const unknown = unknownSettings().map(({ name, nearest }) =>
    fault(name, "It is not a setting and has no effect.", `The nearest setting is ${nearest}. Rename it, or unset it.`, 3)
  )
  if (values === undefined) return { settings: inspected, findings: [...faults.map(settingFault), ...unknown] }
  const looks = [missingKeys, dataDirectory, ports, certificates, postgres, readReplica, temporal, outside, conditions]
  const [findings, servers] = yield* Effect.all([
    Effect.all(looks, { concurrency: "unbounded" }),
    Effect.map(DataDir, (dataDir) => dataDir.servers())
  ] as const).pipe(Effect.provide(Layer.provideMerge(DataDir.layer, Layer.succeed(Settings, values))))
  // Shows where the UI of the embedded server is, which has its own port, and not the default of TEMPORAL_UI_URL.
  const { embeddedTemporalUiPort, temporalAddress } = values
  const embedded =
    embeddedTemporalUiPort === 0 ? (servers.temporalUi ?? "a free port, chosen at start") : `http://127.0.0.1:${embeddedTemporalUiPort}`
  const ui = temporalAddress === undefined ? embedded : undefined
  const settings = inspected.map((one) => (one.name === "TEMPORAL_UI_URL" && !one.given && ui !== undefined ? { ...one, value: ui } : one))
  const report: Report = { settings, findings: [...unknown, ...findings.flat()] }
  return report
})
