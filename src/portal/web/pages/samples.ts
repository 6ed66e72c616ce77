/** Code that verifies a delivery, to paste. Tests run each of them against real deliveries. */

const library = `import { Webhook } from "standardwebhooks"

// The raw body as it came, and the request's headers in lower case.
export const verify = (body, headers) =>
  new Webhook(process.env.WEBHOOK_SECRET).verify(body, headers)
`

const node = `import { createHmac, timingSafeEqual } from "node:crypto"

// The raw body as it came, and the header X-Service-Signature.
export const verify = (body, header) => {
  const parts = header.split(",").map((part) => part.split("="))
  const time = parts.find(([name]) => name === "t")?.[1] ?? ""
  if (Math.abs(Date.now() / 1000 - Number(time)) > 300) throw new Error("too old")
  const expected = createHmac("sha256", process.env.WEBHOOK_SECRET)
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

const python = `import hashlib, hmac, json, os, time

# The raw body as bytes, and the header X-Service-Signature.
def verify(body, header):
    parts = [part.split("=", 1) for part in header.split(",")]
    sent = next(value for name, value in parts if name == "t")
    if abs(time.time() - int(sent)) > 300:
        raise ValueError("too old")
    secret = os.environ["WEBHOOK_SECRET"].encode()
    expected = hmac.new(secret, sent.encode() + b"." + body, hashlib.sha256).hexdigest()
    if not any(name == "v1" and hmac.compare_digest(value, expected) for name, value in parts):
        raise ValueError("not signed by the service")
    return json.loads(body)
`

export const samples = [
  { name: "Library", text: library },
  { name: "Node.js", text: node },
  { name: "Python", text: python }
] as const
