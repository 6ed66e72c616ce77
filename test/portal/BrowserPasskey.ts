/** A passkey of a browser without a screen, and what it answers to the portal's challenges. */
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto"

/** Options of the portal, with a challenge. */
interface Asked {
  readonly challengeId: string
  readonly options: { readonly challenge: string }
}

const base64 = (bytes: Buffer) => bytes.toString("base64url")
const sha256 = (bytes: string | Buffer) => createHash("sha256").update(bytes).digest()

export class BrowserPasskey {
  readonly #keys = generateKeyPairSync("ec", { namedCurve: "P-256" })
  readonly #id = randomBytes(16)
  readonly #origin: string
  constructor(origin: string) {
    this.#origin = origin
  }

  /** The answer when it is created. */
  created({ challengeId, options }: Asked) {
    const { x = "", y = "" } = this.#keys.publicKey.export({ format: "jwk" })
    const authenticatorData = Buffer.concat([
      // User present and verified, with a credential; counter 0, no authenticator id, and the length of the credential's id.
      this.#data("45", `${"00".repeat(16)}0010`),
      this.#id,
      // The public key in CBOR: {1: 2, 3: -7, -1: 1, -2: x, -3: y}.
      Buffer.from(["a5010203262001215820", Buffer.from(x, "base64url").toString("hex"), "225820"].join(""), "hex"),
      Buffer.from(y, "base64url")
    ])
    // {fmt: "none", attStmt: {}, authData}
    const attestation = Buffer.concat([
      Buffer.from("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58", "latin1"),
      Buffer.from([authenticatorData.length]),
      authenticatorData
    ])
    const clientData = this.#clientData("webauthn.create", options.challenge)
    return this.#answer(challengeId, { clientDataJSON: base64(clientData), attestationObject: base64(attestation) })
  }

  /** The answer when its user signs in or confirms. */
  used({ challengeId, options }: Asked) {
    const authenticatorData = this.#data("05")
    const clientData = this.#clientData("webauthn.get", options.challenge)
    const signature = sign("sha256", Buffer.concat([authenticatorData, sha256(clientData)]), this.#keys.privateKey)
    return this.#answer(challengeId, {
      clientDataJSON: base64(clientData),
      authenticatorData: base64(authenticatorData),
      signature: base64(signature)
    })
  }

  #data(flags: string, more = ""): Buffer {
    return Buffer.concat([sha256(new URL(this.#origin).hostname), Buffer.from(`${flags}00000000${more}`, "hex")])
  }

  #clientData(type: string, challenge: string): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin: this.#origin }))
  }

  #answer(challengeId: string, response: Readonly<Record<string, string>>) {
    const id = base64(this.#id)
    return { challengeId, response: { id, rawId: id, type: "public-key", clientExtensionResults: {}, response } }
  }
}
