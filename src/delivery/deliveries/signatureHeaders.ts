/**
 * Signatures of a delivery. Two schemes over the same raw bytes, so that libraries of either verify it: Stripe's format
 * in `X-Service-Signature` (key: the whole secret text; signed: `t.body`), and Standard Webhooks in the `webhook-*`
 * headers (key: the secret's decoded bytes; signed: `id.t.body`). Every valid secret signs, newest first. After them
 * comes one Ed25519 signature (`v1a`) by the key of `/v1/jwks.json`, for receivers without the secret. It is here and not in
 * sending/ because request previews and `custody listen` sign too, and nothing but the worker may import sending/. Spec:
 * Delivery contract 3. Decision D-24, C-8.
 */

import { createHmac } from "node:crypto"
import { Redacted } from "effect"

/** The input of the signatures. */
export interface Signed {
  /** Event id: `webhook-id`. */
  readonly id: string
  /** Unix seconds of this attempt. */
  readonly timestamp: number
  /** The raw body. */
  readonly body: string
  /** Valid secrets, newest first. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** The Ed25519 signature of {@link signedText}; none if absent. */
  readonly ed25519?: Uint8Array
}

/** The text that Standard Webhooks signs. */
export const signedText = ({ body, id, timestamp }: Pick<Signed, "id" | "timestamp" | "body">): string => `${id}.${timestamp}.${body}`

const keyBytes = (secret: string): Buffer => Buffer.from(secret.replace(/^whsec_/, ""), "base64")

/** The signature headers of an attempt. */
export const headers = ({ body, ed25519, id, secrets, timestamp }: Signed) => {
  const texts = secrets.map(Redacted.value)
  const stripe = texts.map((secret) => `v1=${createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex")}`)
  const standard = texts.map(
    (secret) => `v1,${createHmac("sha256", keyBytes(secret)).update(`${id}.${timestamp}.`).update(body).digest("base64")}`
  )
  return {
    "x-service-signature": [`t=${timestamp}`, ...stripe].join(","),
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": [...standard, ...(ed25519 === undefined ? [] : [`v1a,${Buffer.from(ed25519).toString("base64")}`])].join(" ")
  }
}

/** The `User-Agent` of every request to an endpoint or a token server. */
export const USER_AGENT = "custody-data-service-webhooks/1"

/** Other headers of a delivery's request. */
export const descriptive = ({
  attempt,
  deliveryId,
  kind,
  sequence,
  test = false
}: {
  readonly deliveryId: string
  readonly attempt: number
  readonly kind: string
  /** The delivery's number within its webhook; a ping has none. C-2. */
  readonly sequence?: number | undefined
  /** Whether it is a sample event. C-12. */
  readonly test?: boolean | undefined
}) => ({
  "content-type": "application/json",
  "user-agent": USER_AGENT,
  "x-service-delivery-id": deliveryId,
  "x-service-attempt": String(attempt),
  "x-service-event-kind": kind,
  ...(sequence === undefined ? {} : { "webhook-sequence": String(sequence) }),
  ...(test ? { "x-service-test": "true" } : {})
})
