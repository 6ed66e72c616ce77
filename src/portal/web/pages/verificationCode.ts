/** Code that verifies the signature of a delivery. Tests run it against real deliveries. */

const library = `// npm install standardwebhooks
import { Webhook } from "standardwebhooks"

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

const go = `package custody

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Verify takes the raw body, the header X-Service-Signature, and the secret: whsec_…
func Verify(body []byte, header, secret string) error {
	var sent string
	var signatures []string
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(part, "=")
		if name == "t" {
			sent = value
		}
		if name == "v1" {
			signatures = append(signatures, value)
		}
	}
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if err != nil || math.Abs(float64(time.Now().Unix()-seconds)) > 300 {
		return errors.New("too old")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(sent + "."))
	mac.Write(body)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	for _, signature := range signatures {
		if hmac.Equal([]byte(signature), expected) {
			return nil
		}
	}
	return errors.New("not signed by the service")
}
`

/** Signs an event in a shell and posts it to a local server. */
export const tryLocally = `SECRET='whsec_…'
BODY='{"id":"evt_test","kind":"webhook.ping","schemaVersion":1,"date":"2026-01-01T00:00:00.000Z","entityId":"entity_test","vaultIds":null,"data":{"webhookId":"whs_test"}}'
T=$(date +%s)
V1=$(printf '%s' "$T.$BODY" | openssl dgst -sha256 -hmac "$SECRET" -hex | sed 's/.*= //')
curl -sS http://localhost:3000/webhook \\
  -H 'Content-Type: application/json' \\
  -H "X-Service-Signature: t=$T,v1=$V1" \\
  -d "$BODY"
`

export const verificationCode = [
  { name: "Library", text: library },
  { name: "Node.js", text: node },
  { name: "Python", text: python },
  { name: "Go", text: go }
] as const
