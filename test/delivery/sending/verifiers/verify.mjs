// Verifies a v1a signature with Node's own crypto. Input: JSON on standard input.
import { createPublicKey, verify } from "node:crypto"
import { readFileSync } from "node:fs"

const { body, id, signature, timestamp, x } = JSON.parse(readFileSync(0, "utf8"))
const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })
const given = Buffer.from(signature.replace(/^v1a,/, ""), "base64")
console.log(verify(null, Buffer.from(`${id}.${timestamp}.${body}`), key, given) ? "valid" : "invalid")
