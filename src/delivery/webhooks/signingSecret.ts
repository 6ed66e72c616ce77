/**
 * Signing secrets of webhooks: `whsec_` and 32 random bytes in base64. They are stored encrypted, bound to their webhook;
 * the plain text exists only in the response that creates it and while a delivery is signed. Spec: Delivery contract 5.
 * Decisions D-24, D-25.
 */

import { randomBytes } from "node:crypto"
import type { SqlClient } from "@effect/sql"
import { Redacted } from "effect"
import type { Sealing } from "../../runtime/crypto/MasterKey.ts"
import type { SealedColumn } from "../../runtime/crypto/reencryptSecrets.ts"

/** Most secrets of a webhook that are valid at the same time. Decision D-25. */
export const LIVE_SECRETS = 3

/** A new secret. */
export const make = (): Redacted.Redacted => Redacted.make(`whsec_${randomBytes(32).toString("base64")}`)

/** The ciphertext of a webhook's secret. */
export const seal = (master: Sealing, webhookId: string, secret: Redacted.Redacted): Buffer =>
  master.seal("webhook-secret", Buffer.from(Redacted.value(secret)), webhookId)

/**
 * The ciphertexts of a webhook's valid secrets, newest first, as an SQL expression: those that sign now. `column` is the
 * column with the webhook's id. Decision D-25.
 */
export const live = (sql: SqlClient.SqlClient, column: string) => sql`
  ARRAY(SELECT s.ciphertext FROM webhook_secrets s WHERE s.webhook_id = ${sql.literal(column)}
    AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp()) ORDER BY s.id DESC)`

/** A webhook's secret from its ciphertext; undefined if neither the current nor the previous master key decrypts it. */
export const open = (master: Sealing, webhookId: string, ciphertext: Buffer): Redacted.Redacted | undefined => {
  const plain = master.open("webhook-secret", ciphertext, webhookId)
  return plain === undefined ? undefined : Redacted.make(plain.toString())
}

/** A webhook's secrets from their ciphertexts, in their order, without those that cannot be decrypted. */
export const openAll = (master: Sealing, webhookId: string, ciphertexts: ReadonlyArray<Buffer>): ReadonlyArray<Redacted.Redacted> =>
  ciphertexts.flatMap((ciphertext) => open(master, webhookId, ciphertext) ?? [])

/** Where they are stored. */
export const sealedSecrets: SealedColumn = {
  purpose: "webhook-secret",
  table: "webhook_secrets",
  column: "ciphertext",
  key: [["id", "bigint"]],
  context: "webhook_id"
}
