/** The doctor's checks of signatures and statements: whether the current signing key is published, and how far statements are sealed. */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Redacted, Schema } from "effect"
import { sealedUntil } from "../../custody/statements/sealedUntil.ts"
import { sealing as masterOf, type Sealing } from "../../runtime/crypto/MasterKey.ts"
import { kidOf, newestKid } from "../../runtime/crypto/SigningKeys.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { dayAfter } from "../../values/Day.ts"
import { type Finding, fault, notice, well } from "./Finding.ts"

/** Seconds after which unsealed statements are a notice: the schedule runs every minute. */
const LATE = 900

const decode = decodeRows(Schema.Struct({ kid: Schema.String }))

const signingKey = (master: Sealing | undefined): Effect.Effect<Finding, SqlError.SqlError, SqlClient.SqlClient | Settings> =>
  Effect.gen(function* () {
    if (master === undefined) return well("Signing key", "derived from the master key that the first start creates")
    const sql = yield* SqlClient.SqlClient
    const { masterKeyPrevious } = yield* Settings
    const kid = yield* kidOf(master)
    const previous = masterKeyPrevious && (yield* kidOf(masterOf(Redacted.value(masterKeyPrevious), undefined)))
    const newest = yield* newestKid
    if (newest !== undefined && newest !== kid && newest !== previous)
      return fault(
        "Signing key",
        `MASTER_KEY gives ${kid}, but the database is used with ${newest}: no process starts.`,
        "Set MASTER_KEY to the key that the database is used with; to rotate it, set the old one as MASTER_KEY_PREVIOUS.",
        3
      )
    const rows = yield* decode(sql`SELECT kid FROM signing_keys`)
    const earlier = rows.filter((row) => row.kid !== kid).length
    const others = earlier === 0 ? "" : `; ${earlier} earlier ${earlier === 1 ? "key stays" : "keys stay"} published`
    return well("Signing key", `${kid} is published${rows.length > earlier ? "" : " with its first signature"}${others}`)
  })

/** How long ago, in hours or days. */
const span = (seconds: number): string => (seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} days`)

const sealing: Effect.Effect<Finding, SqlError.SqlError, SqlClient.SqlClient | Settings> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { statementDelay } = yield* Settings
  const { nextDate, overdueSeconds } = yield* sealedUntil(sql, statementDelay)
  if (nextDate === null) return well("Statements", "there are no vaults yet")
  return overdueSeconds > LATE
    ? notice(
        "Statements",
        `The statements of ${nextDate} are not sealed for every vault. They have been due for ${span(overdueSeconds)}.`,
        "A worker seals them every minute: check that one is running, and its log; `custody statements seal` seals at once."
      )
    : well("Statements", `sealed for every vault up to ${dayAfter(nextDate, -1)}`)
})

/** All checks of signatures and statements. */
export const statementChecks = (master: Sealing | undefined) => Effect.all([signingKey(master), sealing])
