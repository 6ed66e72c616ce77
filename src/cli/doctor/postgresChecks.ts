/** The doctor's checks of Postgres: connection, version, clock, schema, signatures, and whether the master key decrypts stored secrets. */
import * as fs from "node:fs"
import * as SqlClient from "@effect/sql/SqlClient"
import { Cause, Duration, Effect, Exit, Redacted, Schema } from "effect"
import { open } from "../../delivery/webhooks/signingSecret.ts"
import { type Sealing, sealing } from "../../runtime/crypto/MasterKey.ts"
import * as Database from "../../runtime/database/Database.ts"
import { Bytes, decodeRows } from "../../runtime/database/decodeRows.ts"
import * as Migrations from "../../runtime/database/Migrations.ts"
import { DataDir } from "../../runtime/embedded/DataDir.ts"
import { livePid } from "../../runtime/embedded/Process.ts"
import { InvalidSettings, Settings } from "../../runtime/settings/Settings.ts"
import { type Finding, fault, notice, unready, well, why } from "./Finding.ts"
import { holdChecks } from "./holdChecks.ts"
import { statementChecks } from "./statementChecks.ts"

/** Oldest supported version of Postgres. */
const OLDEST = 15
/** Difference of clocks, in seconds, above which times of events and signatures become misleading. */
const SKEW = 5
/** Encrypted secrets that are tried. */
const TRIED = 100

const causeOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "cause" in error && error.cause instanceof Error ? error.cause : error

const decodeVersion = decodeRows(
    Schema.Struct({ number: Schema.Number, name: Schema.String, skew: Schema.Number, readOnly: Schema.Boolean, commit: Schema.String })
  ),
  decodeSecrets = decodeRows(Schema.Struct({ webhookId: Schema.String, ciphertext: Bytes }))

const version = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* decodeVersion(sql`
    SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS name,
      extract(epoch FROM clock_timestamp())::float8 - ${Date.now() / 1_000}::float8 AS skew, pg_is_in_recovery() AS "readOnly",
      current_setting('synchronous_commit') AS commit`)
  const skew = Math.round((row?.skew ?? 0) * 10) / 10
  const findings: Array<Finding> = []
  if ((row?.number ?? 0) < OLDEST * 10_000)
    findings.push(fault("Postgres", `It is version ${row?.name}.`, `Use Postgres ${OLDEST} or newer.`, 5))
  else if (row?.readOnly === true)
    findings.push(fault("Postgres", "It is a standby, which is read-only.", "Point DATABASE_URL to the primary.", 5))
  else findings.push(well("Postgres", `version ${row?.name} answers`))
  if (row?.commit === "off")
    findings.push(
      unready(
        "Durability",
        "synchronous_commit is off: if Postgres crashes, records and changes are lost that were acknowledged.",
        "Set it to on, for the role, for the database or in postgresql.conf."
      )
    )
  findings.push(
    Math.abs(skew) > SKEW
      ? fault(
          "Clock",
          `This machine is ${Math.abs(skew)} s ${skew > 0 ? "behind" : "ahead of"} Postgres.`,
          "Synchronize both with NTP: signatures contain the time.",
          1
        )
      : well("Clock", `within ${SKEW} s of Postgres`)
  )
  return findings
})

const schema = Effect.map(Migrations.compare, ({ missing, newer }) =>
  missing.length === 0
    ? { finding: well("Migrations", `applied up to ${newer.at(-1) ?? Object.keys(Migrations.steps).at(-1)}`), complete: true }
    : {
        finding: notice(
          "Migrations",
          `${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} missing.`,
          "Run `custody migrate` or `custody start` to apply them."
        ),
        complete: false
      }
).pipe(
  Effect.catchTag("OutdatedDatabase", ({ problem, remedy }) =>
    Effect.succeed({ finding: fault("Migrations", problem, remedy, 5), complete: false })
  )
)

/** The master key as startup would find it; nothing is generated here. */
const masterKey = Effect.gen(function* () {
  const settings = yield* Settings
  const dataDir = yield* DataDir
  const previous = settings.masterKeyPrevious === undefined ? undefined : Redacted.value(settings.masterKeyPrevious)
  if (settings.masterKey !== undefined) return sealing(Redacted.value(settings.masterKey), previous)
  const file = dataDir.at("master-key")
  return fs.existsSync(file) ? sealing(Buffer.from(fs.readFileSync(file, "utf8").trim(), "base64"), previous) : undefined
})

const sealed = Effect.fnUntraced(function* (master: Sealing | undefined) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* decodeSecrets(sql`
    SELECT webhook_id AS "webhookId", ciphertext FROM webhook_secrets ORDER BY id DESC LIMIT ${TRIED}`)
  if (master === undefined) {
    return rows.length === 0
      ? well("Master key", "the first start creates one")
      : fault("Master key", "There are encrypted secrets, but no key.", "Set MASTER_KEY to the key that they were encrypted with.", 3)
  }
  if (rows.length === 0) return well("Master key", "nothing is encrypted yet")
  const opened = rows.filter(({ ciphertext, webhookId }) => open(master, webhookId, ciphertext) !== undefined)
  const old = opened.filter(({ ciphertext, webhookId }) => !master.isCurrent("webhook-secret", ciphertext, webhookId)).length
  if (opened.length < rows.length) {
    return fault(
      "Master key",
      `${rows.length - opened.length} of the last ${rows.length} webhook secrets were encrypted with another key: their deliveries cannot be signed.`,
      "Set MASTER_KEY, or MASTER_KEY_PREVIOUS, to the key that they were encrypted with. If it is lost, their owners rotate them.",
      3
    )
  }
  return old === 0
    ? well("Master key", `decrypts the last ${rows.length} webhook secrets`)
    : notice(
        "Master key",
        `${old} of the last ${rows.length} webhook secrets are encrypted with MASTER_KEY_PREVIOUS.`,
        "Run `custody secrets reencrypt` before you remove MASTER_KEY_PREVIOUS."
      )
})

const answering = Effect.gen(function* () {
  const { complete, finding } = yield* schema
  const found = yield* version
  if (!complete) return [...found, finding]
  const master = yield* masterKey
  return [...found, finding, yield* sealed(master), ...(yield* statementChecks(master)), yield* holdChecks]
})

/** The URL of Postgres; undefined if the embedded one is not running. */
const url = Effect.gen(function* () {
  const { databaseUrl } = yield* Settings
  const dataDir = yield* DataDir
  if (databaseUrl !== undefined) return databaseUrl
  const known = livePid(dataDir.at("run", "postgres.pid"), dataDir.at("postgres")) === undefined ? undefined : dataDir.servers().databaseUrl
  return known === undefined ? undefined : Redacted.make(known)
})

/** All checks of Postgres. */
export const postgres = Effect.gen(function* () {
  const settings = yield* Settings
  const dataDir = yield* DataDir
  const at = yield* url
  if (at === undefined) {
    const kept = fs.existsSync(dataDir.at("postgres", "PG_VERSION"))
    return [well("Postgres", `the embedded server is not running; \`custody start\` ${kept ? "starts it on its data" : "creates it"}`)]
  }
  const exit = yield* Effect.exit(
    answering.pipe(
      Effect.provide(Database.layer(at, { ...Database.pools.command, acquire: Duration.seconds(5) })),
      Effect.timeout("15 seconds")
    )
  )
  if (Exit.isSuccess(exit)) return exit.value
  const cause = causeOf(Cause.squash(exit.cause))
  if (cause instanceof InvalidSettings)
    return [fault("Postgres", "It is behind a connection pooler.", "Point DATABASE_URL to Postgres itself.", 3)]
  const advice =
    settings.databaseUrl === undefined
      ? `See ${dataDir.at("log", "postgres.log")}; \`custody start\` restarts a server whose service has ended; one of a running service is reached only where that runs.`
      : "Check DATABASE_URL: host, port, user, password, database and, if Postgres requires it, ?sslmode=require."
  return [fault("Postgres", `It cannot be reached: ${why(cause)}.`, advice, 5)]
})
