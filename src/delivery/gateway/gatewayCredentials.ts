/**
 * What authenticates a webhook's requests to a gateway in front of its endpoint. It is stored encrypted in one column, bound to the
 * webhook, and reaches an attempt like the signing secrets. Null for a webhook without any. C-12.
 */
import { Either, Schema } from "effect"
import type { Sealing } from "../../runtime/crypto/MasterKey.ts"
import type { SealedColumn } from "../../runtime/crypto/reencryptSecrets.ts"

import { OAuth } from "./oauth.ts"

const GatewayCredentials = Schema.Struct({
  /** Names and values. */
  headers: Schema.Array(Schema.Tuple(Schema.String, Schema.Redacted(Schema.String))),
  /** OAuth client credentials. */
  oauth: Schema.NullOr(OAuth)
})
export type GatewayCredentials = typeof GatewayCredentials.Type

const Stored = Schema.parseJson(GatewayCredentials)
const encode = Schema.encodeSync(Stored),
  decode = Schema.decodeEither(Stored)

/** No credentials. */
export const NONE: GatewayCredentials = { headers: [], oauth: null }

/** The ciphertext of a webhook's credentials; null if there are none. */
export const seal = (master: Sealing, webhookId: string, credentials: GatewayCredentials): Buffer | null =>
  credentials.headers.length === 0 && credentials.oauth === null
    ? null
    : master.seal("gateway-credentials", Buffer.from(encode(credentials)), webhookId)

/** A webhook's credentials from their ciphertext; undefined if neither the current nor the previous master key decrypts it. */
export const open = (master: Sealing, webhookId: string, sealed: Buffer | null): GatewayCredentials | undefined => {
  if (sealed === null) return NONE
  const plain = master.open("gateway-credentials", sealed, webhookId)
  return plain === undefined ? undefined : Either.getOrUndefined(decode(plain.toString()))
}

/** Where they are stored. */
export const sealedGatewayCredentials: SealedColumn = {
  purpose: "gateway-credentials",
  table: "webhooks",
  column: "gateway_credentials",
  key: [["id", "text"]],
  context: "id"
}
