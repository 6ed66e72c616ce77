/**
 * `custody secrets reencrypt`: re-encrypts stored secrets during a rotation of the master key. First restart every process with the new key as
 * MASTER_KEY_PREVIOUS, then restart every process with the two keys swapped, then run this command.
 * MASTER_KEY_PREVIOUS can be removed 31 days later (docs/operations.md, Rotating keys). Decision D-25.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Console, Effect, Layer, Record, Schema } from "effect"
import { OPERATOR, record } from "../../../access/audit/AuditTrail.ts"
import { commandDatabase } from "../../../app/Base.ts"
import { sealedGatewayCredentials } from "../../../delivery/gateway/gatewayCredentials.ts"
import { sealedSecrets } from "../../../delivery/webhooks/signingSecret.ts"
import { sealedAnswers, sealedFingerprints } from "../../../http/Idempotency.ts"
import { sealedSecondFactors } from "../../../portal/signIn/SecondFactor.ts"
import { MasterKey, masterKeyLayer } from "../../../runtime/crypto/MasterKey.ts"
import { type Reencrypted, reencrypt as reencryptColumn } from "../../../runtime/crypto/reencryptSecrets.ts"
import { publish } from "../../../runtime/crypto/SigningKeys.ts"
import { decodeRows } from "../../../runtime/database/decodeRows.ts"
import { Settings } from "../../../runtime/settings/Settings.ts"
import { NotReencrypted } from "../exit.ts"

/** Every encrypted column, by the name that the command prints. */
export const sealedColumns = {
  webhookSecrets: sealedSecrets,
  gatewayCredentials: sealedGatewayCredentials,
  idempotencyAnswers: sealedAnswers,
  idempotencyFingerprints: sealedFingerprints,
  portalSecondFactors: sealedSecondFactors
} as const

const progress = (name: string) => (soFar: Reencrypted) =>
  Effect.sync(() => {
    if (process.stderr.isTTY) process.stderr.write(`\r${name}: ${soFar.checked} checked, ${soFar.reencrypted} re-encrypted\u001b[K`)
  })

/** Organizations per statement when the re-encryption is recorded. */
const ORGANIZATIONS = 500

const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

/** Records the re-encryption in the audit log of every organization. */
const audit = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  for (let last = ""; ; ) {
    const rows = yield* decodeIds(sql`SELECT id FROM organizations WHERE id > ${last} ORDER BY id LIMIT ${ORGANIZATIONS}`)
    yield* record(
      sql,
      rows.map(({ id }) => ({
        organizationId: id,
        actor: OPERATOR,
        action: "master_key.reencrypted",
        target: { type: "organization", id }
      }))
    )
    if (rows.length < ORGANIZATIONS) return
    last = rows.at(-1)?.id ?? ""
  }
})

const reencryptAll = Effect.fnUntraced(function* (keyLost: boolean) {
  // Before anything else: a wrong MASTER_KEY changes nothing.
  yield* publish({ isOnlyKey: keyLost })
  const sql = yield* SqlClient.SqlClient
  const master = yield* MasterKey
  const pass = Effect.all(
    Record.map(sealedColumns, (of, name) => reencryptColumn(sql, master, of, progress(name))),
    { concurrency: 1 }
  )
  const done = yield* pass
  yield* Effect.sync(() => process.stderr.isTTY && process.stderr.write("\r\u001b[K"))
  yield* audit(sql)
  yield* Console.log(JSON.stringify(done, null, 2))
  const unreadable = Object.values(done).reduce((sum, one) => sum + one.unreadable, 0)
  if (unreadable > 0 && keyLost) {
    // Otherwise every request with such a key would fail for a day, and a platform that repeats a batch would wait behind it.
    yield* sql`DELETE FROM idempotency_keys`
    yield* Console.error(
      `${unreadable} values cannot be read any more. Idempotency keys are forgotten. ` +
        "Owners rotate the secrets of their webhooks and set their headers and OAuth secrets again; invite portal users again with --reset." +
        ((yield* Settings).temporalPayloadCodec === "off"
          ? ""
          : " Terminate the workflows that were running: they cannot be read either. docs/operations.md, Rotating keys, has the command.")
    )
    return
  }
  if (unreadable > 0) {
    return yield* new NotReencrypted({
      message:
        `${unreadable} values are encrypted under a key that is neither MASTER_KEY nor MASTER_KEY_PREVIOUS, and were not changed. ` +
        "Set MASTER_KEY_PREVIOUS to that key and run this command again."
    })
  }
  // A value encrypted with the previous key after the first pass was written by a process that does not have the new one.
  const late = Object.values(yield* pass).reduce((sum, one) => sum + one.reencrypted + one.unreadable, 0)
  if (late > 0) {
    return yield* new NotReencrypted({
      message:
        `${late} values were encrypted under the previous key while this command ran: a process still uses it as MASTER_KEY. ` +
        "Restart every process with the new key as MASTER_KEY and the previous one as MASTER_KEY_PREVIOUS, then run this command again."
    })
  }
  // A key that an earlier rotation retired may be in use again.
  yield* publish({ isOnlyKey: true })
  if ((yield* Settings).temporalPayloadCodec !== "off") {
    yield* Console.error(
      "Temporal payloads are not re-encrypted: workflows that started under the previous key need MASTER_KEY_PREVIOUS until they end. " +
        "docs/operations.md, Rotating keys, says how to find them."
    )
  }
})

/** Re-encrypts everything and prints counts. `keyLost`: MASTER_KEY replaces a key that is lost. */
export const reencrypt = (keyLost: boolean) =>
  reencryptAll(keyLost).pipe(Effect.provide(Layer.merge(commandDatabase, masterKeyLayer)), Effect.scoped)
