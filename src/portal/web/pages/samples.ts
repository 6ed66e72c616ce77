/** Code that verifies a delivery, to paste. Tests run each of them against real deliveries. */

const library = `import { Webhook } from "standardwebhooks"

// The raw body as it came, the request's headers in lower case, and the secret: whsec_…
export const verify = (body, headers, secret) =>
  new Webhook(secret).verify(body, headers)
`

const node = `import { createHmac, timingSafeEqual } from "node:crypto"

// The raw body as it came, the header X-Service-Signature, and the secret: whsec_…
export const verify = (body, header, secret) => {
  const parts = header.split(",").map((part) => part.split("="))
  const time = parts.find(([name]) => name === "t")?.[1] ?? ""
  if (Math.abs(Date.now() / 1000 - Number(time)) > 300) throw new Error("too old")
  const expected = createHmac("sha256", secret)
    .update(time + "." + body)
    .digest("hex")
  const fits = parts.some(
    ([name, value = ""]) =>
      name === "v1" &&
      value.length === expected.length &&
      timingSafeEqual(Buffer.from(value), Buffer.from(expected))
  )
  if (!fits) throw new Error("not signed by the service")
  return JSON.parse(body)
}
`

const python = `import hashlib, hmac, json, time

# The raw body as bytes, the header X-Service-Signature, and the secret: whsec_…
def verify(body, header, secret):
    parts = [part.split("=", 1) for part in header.split(",")]
    sent = next(value for name, value in parts if name == "t")
    if abs(time.time() - int(sent)) > 300:
        raise ValueError("too old")
    expected = hmac.new(secret.encode(), sent.encode() + b"." + body, hashlib.sha256).hexdigest()
    if not any(name == "v1" and hmac.compare_digest(value, expected) for name, value in parts):
        raise ValueError("not signed by the service")
    return json.loads(body)
`

export const samples = [
  { name: "Library", text: library },
  { name: "Node.js", text: node },
  { name: "Python", text: python }
] as const
