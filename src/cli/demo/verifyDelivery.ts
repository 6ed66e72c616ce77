/**
 * Verifies a delivery as a consumer does: on the raw body, before anything else. The Standard Webhooks library verifies
 * the `webhook-*` headers; a few lines verify `X-Service-Signature`. Spec: Delivery contract 3. Decision D-24.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { Webhook } from "standardwebhooks"

/** Headers of a request, names in lower case. */
export type Headers = Readonly<Record<string, string>>

/** Tolerance of a signature's time, in seconds. */
const TOLERANCE = 300

const standard = (secret: string, headers: Headers, body: string): boolean => {
  try {
    new Webhook(secret).verify(body, headers)
    return true
  } catch {
    return false
  }
}

const service = (secret: string, header: string, body: string): boolean => {
  const parts = header.split(",").map((part) => part.split("=", 2))
  const time = parts.find(([name]) => name === "t")?.[1] ?? ""
  if (!(Math.abs(Date.now() / 1_000 - Number(time)) <= TOLERANCE)) return false
  const expected = createHmac("sha256", secret).update(`${time}.${body}`).digest()
  return parts.some(([name, value = ""]) => {
    const given = Buffer.from(value, "hex")
    return name === "v1" && given.length === expected.length && timingSafeEqual(given, expected)
  })
}

/** Whether this secret signed the request, with both schemes. */
export const signedBy = (secret: string, headers: Headers, body: string): boolean =>
  standard(secret, headers, body) && service(secret, headers["x-service-signature"] ?? "", body)
