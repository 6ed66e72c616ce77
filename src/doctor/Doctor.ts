/**
 * The doctor: looks at every setting and at everything that the service stands on, changes nothing and starts nothing,
 * and says of each how it is and what to do. Where settings do not fit, nothing else is looked at: it would be looked
 * at in the wrong place.
 */
import { Effect, Layer } from "effect"
import { DataDir } from "../embedded/DataDir.ts"
import { type Inspected, inspect, Settings } from "../settings/Settings.ts"
import { type Finding, fault, notice } from "./Finding.ts"
import { certificates, dataDirectory, ports, surroundings } from "./machineChecks.ts"
import { outside } from "./networkChecks.ts"
import { postgres } from "./postgresChecks.ts"
import { temporal } from "./temporalChecks.ts"

/** All that was found. */
export interface Report {
  /** Every setting with its effective value; secrets are not shown. */
  readonly settings: ReadonlyArray<Inspected>
  readonly findings: ReadonlyArray<Finding>
}

const settingFault = (text: string): Finding => {
  const [name = "", ...rest] = text.split(": ")
  return fault(name, rest.join(": "), `Set ${name} as expected, or unset it.`, 3)
}

/** Where a database is not the embedded one, its master key and the feed's token have to be given, as a start would demand. */
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

/** Looks at everything. */
export const examine = Effect.gen(function* () {
  const { faults, inspected, values } = yield* inspect
  if (values === undefined) return { settings: inspected, findings: faults.map(settingFault) }
  const looks = [missingKeys, dataDirectory, ports, certificates, postgres, temporal, outside, surroundings]
  const findings = yield* Effect.all(looks, { concurrency: "unbounded" }).pipe(
    Effect.provide(Layer.provideMerge(DataDir.layer, Layer.succeed(Settings, values)))
  )
  // The embedded server's UI is where its port is, whatever the default of the setting.
  const { embeddedTemporalUiPort, temporalAddress } = values
  const ui = temporalAddress === undefined ? `http://127.0.0.1:${embeddedTemporalUiPort}` : undefined
  const settings = inspected.map((one) => (one.name === "TEMPORAL_UI_URL" && !one.given && ui !== undefined ? { ...one, value: ui } : one))
  const report: Report = { settings, findings: findings.flat() }
  return report
})
