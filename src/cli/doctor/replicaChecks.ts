/** The doctor's checks of the read replica: connection, that it follows this primary, its lag, and its feedback. Decision D-58. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Layer, type Redacted, Schema } from "effect"
import * as Database from "../../runtime/database/Database.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { LOST_SETTINGS, rejectedSettings } from "../../runtime/database/pooler.ts"
import { MAX_LAG } from "../../runtime/database/replica/ReadReplica.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { type Finding, fault, notice, well } from "./Finding.ts"

const NAME = "Read replica"
/** How long the replica may take to replay up to the primary's position at the time of the check. */
const WAIT = Duration.seconds(MAX_LAG)

const CLUSTER = "(SELECT system_identifier::text FROM pg_control_system()) AS cluster"

const decodePrimary = decodeRows(Schema.Struct({ cluster: Schema.String, flushed: Schema.Number, inserted: Schema.Number })),
  decodeReplica = decodeRows(
    Schema.Struct({
      cluster: Schema.String,
      standby: Schema.Boolean,
      replayed: Schema.NullOr(Schema.Number),
      feedback: Schema.Boolean,
      pooled: Schema.Boolean
    })
  )

const primary = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  decodePrimary(
    sql.unsafe(
      `SELECT ${CLUSTER}, (pg_current_wal_flush_lsn() - '0/0')::float8 AS flushed, (pg_current_wal_insert_lsn() - '0/0')::float8 AS inserted`
    )
  )
)

const replica = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  decodeReplica(
    sql.unsafe(`SELECT ${CLUSTER}, pg_is_in_recovery() AS standby, (pg_last_wal_replay_lsn() - '0/0')::float8 AS replayed,
      current_setting('hot_standby_feedback') = 'on' AS feedback, ${LOST_SETTINGS} AS pooled`)
  )
)

const pooled = fault(
  NAME,
  "It is behind a connection pooler, so it is not used.",
  "Point DATABASE_READ_URL to the replica itself, or unset it.",
  3
)

const pool = (url: Redacted.Redacted) => Database.layer(url, { ...Database.pools.command, acquire: Duration.seconds(5) })

/** Whether lists can be read from DATABASE_READ_URL; no finding without it. The service works in any case. */
export const readReplica = Effect.gen(function* () {
  const { databaseReadUrl, databaseUrl } = yield* Settings
  if (databaseReadUrl === undefined || databaseUrl === undefined) return []
  return yield* Effect.gen(function* () {
    const [one] = yield* Effect.provide(primary, pool(databaseUrl))
    const begun = performance.now()
    const services = yield* Layer.build(pool(databaseReadUrl))
    const look = Effect.provide(replica, services)
    const [first] = yield* look
    if (first?.pooled === true) return [pooled]
    if (first?.standby !== true) {
      return [notice(NAME, "It is not a standby, so it is not used.", "Point DATABASE_READ_URL to a streaming replica, or unset it.")]
    }
    if (first.cluster !== one?.cluster) {
      return [fault(NAME, "It follows another primary, so it is not used.", "Point DATABASE_READ_URL to a replica of DATABASE_URL.", 3)]
    }
    const [now] = yield* Effect.provide(primary, pool(databaseUrl))
    if ((first.replayed ?? 0) > (now?.inserted ?? Number.POSITIVE_INFINITY)) {
      return [
        fault(
          NAME,
          "It is ahead of the primary, as after a failover, so it is not used.",
          "Make it a standby of the new primary again (pg_rewind, or a new copy).",
          3
        )
      ]
    }
    const reached = yield* look.pipe(
      Effect.repeat({ until: ([row]) => (row?.replayed ?? 0) >= one.flushed }),
      Effect.as(true),
      Effect.timeoutTo({ duration: WAIT, onSuccess: (done) => done, onTimeout: () => false })
    )
    const findings: Array<Finding> = [
      reached
        ? well(NAME, `${Math.round(performance.now() - begun)} ms behind the primary at most`)
        : notice(
            NAME,
            `It is more than ${MAX_LAG} s behind the primary, so lists are read from the primary.`,
            "Check `pg_stat_replication` on the primary, and look for long statements on the replica."
          )
    ]
    if (!first.feedback) {
      findings.push(
        notice(
          NAME,
          "hot_standby_feedback is off: Postgres cancels exports there, or falls behind because of them.",
          "Set hot_standby_feedback = on on the replica."
        )
      )
    }
    return findings
  }).pipe(
    Effect.scoped,
    Effect.timeout("20 seconds"),
    Effect.catchAll((error) =>
      Effect.succeed([
        rejectedSettings(error)
          ? pooled
          : notice(NAME, "It cannot be reached, so lists are read from the primary.", "Start it, check DATABASE_READ_URL, or unset it.")
      ])
    )
  )
})
