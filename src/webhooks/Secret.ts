/**
 * Signing secrets of webhooks: `whsec_` and 32 random bytes in base64. At rest they are ciphertext, bound to their
 * webhook; the text exists only in the answer that creates it and while a delivery is signed.
 * Spec: Delivery contract 5. Decisions D-24, D-25.
 */

import { randomBytes } from "node:crypto"
import { Redacted } from "effect"
import type { Sealing } from "../http/MasterKey.ts"
import type { SealedColumn } from "../http/reseal.ts"

/** A new secret. */
export const make = (): Redacted.Redacted => Redacted.make(`whsec_${randomBytes(32).toString("base64")}`)

/** The ciphertext of a webhook's secret. */
export const seal = (master: Sealing, webhookId: string, secret: Redacted.Redacted): Buffer =>
  master.seal("webhook-secret", Buffer.from(Redacted.value(secret)), webhookId)

/** A webhook's secret from its ciphertext; undefined when neither the current nor the previous master key opens it. */
export const open = (master: Sealing, webhookId: string, ciphertext: Buffer): Redacted.Redacted | undefined => {
  const plain = master.open("webhook-secret", ciphertext, webhookId)
  return plain === undefined ? undefined : Redacted.make(plain.toString())
}

/** Where they are at rest. */
export const sealedSecrets: SealedColumn = {
  purpose: "webhook-secret",
  table: "webhook_secrets",
  column: "ciphertext",
  key: [["id", "bigint"]],
  context: "webhook_id"
}
