/** The doctor's check of endpoints: how many are down, and since when. */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { type Finding, notice, well } from "./Finding.ts"

const decode = decodeRows(Schema.Struct({ down: Schema.Number, since: Schema.NullOr(Schema.String) }))

/** Endpoints that are down. Their owners must fix them; many at once suggest a fault of the service's network. C-5. */
export const holdChecks: Effect.Effect<Finding, SqlError.SqlError, SqlClient.SqlClient | Settings> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { smtpUrl } = yield* Settings
  const [row] = yield* decode(sql`
    SELECT count(*)::integer AS down, min(q.down_at) AS since FROM webhook_queues q WHERE q.down`)
  const { down = 0, since = null } = row ?? {}
  return since === null
    ? well("Endpoints", "none is down")
    : notice(
        "Endpoints",
        `${down === 1 ? "One is" : `${down} are`} down, the first since ${since}. Their deliveries are held, and nothing is lost.`,
        `${smtpUrl === undefined ? "Tell their owners: without SMTP_URL no e-mail does." : "Their owners get an e-mail when it lasts."} If many are down at once, check your own network.`
      )
})
