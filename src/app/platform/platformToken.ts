/** The bearer token of the platform listener. */
import { Effect } from "effect"
import { DataDir, generateKey } from "../../runtime/embedded/DataDir.ts"
import { InvalidSettings, Settings } from "../../runtime/settings/Settings.ts"

/** The token of the record feed: from the settings, or generated into the data directory beside the embedded Postgres. */
export const platformToken = Effect.gen(function* () {
  const { databaseUrl, platformToken } = yield* Settings
  const dataDir = yield* DataDir
  if (platformToken === undefined && databaseUrl !== undefined) {
    return yield* new InvalidSettings({ faults: ["PLATFORM_TOKEN: not set, expected at least 16 characters because DATABASE_URL is set."] })
  }
  return platformToken ?? dataDir.secret("platform-token", generateKey)
})
