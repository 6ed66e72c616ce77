/**
 * The key for signatures that others verify without a shared secret: checkpoints, statements and deliveries. It is an
 * Ed25519 key derived from the master key, so every process has it and none stores it. Its public key is stored when a
 * process starts and never removed: signatures of an old key still verify after the master key was rotated and the
 * previous one removed. It also shows whether a process has the database's master key. C-3, C-8.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign as signBytes } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Redacted, Schema } from "effect"
import { CompactSign, calculateJwkThumbprint } from "jose"
import { Bytes, decodeRows } from "../database/decodeRows.ts"
import { InvalidSettings, Settings } from "../settings/Settings.ts"
import { MasterKey, type Sealing, sealing } from "./MasterKey.ts"

/** A public key as a JSON Web Key (RFC 8037). `kid` is the key's SHA-256 thumbprint (RFC 7638). */
export interface SigningJwk {
  readonly kty: "OKP"
  readonly crv: "Ed25519"
  readonly alg: "EdDSA"
  readonly use: "sig"
  readonly kid: string
  /** The 32 bytes of the public key, base64url. */
  readonly x: string
}

/** DER of a PKCS #8 Ed25519 private key before its 32 bytes (RFC 8410). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex")

/** Most public keys that are published, newest first. */
const PUBLISHED = 100

/** The issuer of signatures if the service has no public address. */
const ISSUER = "custody-data-service"

const privateKeyOf = (seed: Buffer): KeyObject => createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" })

const xOf = (key: KeyObject): string => {
  const { x } = createPublicKey(key).export({ format: "jwk" })
  if (x === undefined) throw new Error("an Ed25519 key has no public half")
  return x
}

const jwkOf = (kid: string, x: string): SigningJwk => ({ kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid, x })

const kidOfX = (x: string) => Effect.promise(() => calculateJwkThumbprint({ kty: "OKP", crv: "Ed25519", x }))

/** The `kid` of the signing key that is derived from a master key. */
export const kidOf = (master: Sealing): Effect.Effect<string> => kidOfX(xOf(privateKeyOf(Redacted.value(master.keyOf("signing")))))

const decode = decodeRows(Schema.Struct({ kid: Schema.String, publicKey: Bytes })),
  decodeKids = decodeRows(Schema.Struct({ kid: Schema.String }))

/** The `kid` that was stored last, of the key that the database is used with; undefined if there is none yet. */
export const newestKid = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* decodeKids(sql`SELECT kid FROM signing_keys ORDER BY created_at DESC, kid LIMIT 1`)
  return row?.kid
})

/**
 * Stores the public key. Fails if the database is used with another master key, unless that is the previous one: a process with a
 * wrong key would sign what nobody can verify later, and encrypt what no other process can read. `isOnlyKey` stores it in any case, as
 * the newest: the previous one is lost, or nothing is encrypted with it any more.
 */
export const publish = ({ isOnlyKey = false } = {}) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const master = yield* MasterKey
    const { masterKeyPrevious } = yield* Settings
    const x = xOf(privateKeyOf(Redacted.value(master.keyOf("signing"))))
    const kid = yield* kidOfX(x)
    const previous = masterKeyPrevious && (yield* kidOf(sealing(Redacted.value(masterKeyPrevious), undefined)))
    if ((yield* newestKid) === kid) return
    yield* sql.withTransaction(
      Effect.gen(function* () {
        // Of two processes that store the first key at once, one finds the other's.
        yield* sql`LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE`
        const now = yield* newestKid
        // A retired key is as wrong as an unknown one.
        if (!isOnlyKey && now !== undefined && now !== kid && now !== previous)
          return yield* new InvalidSettings({
            faults: [
              "MASTER_KEY: read another key than the one that the database is used with, expected that one, here or in MASTER_KEY_PREVIOUS. If it is lost, run `custody secrets reencrypt --key-lost` with the new one first."
            ]
          })
        yield* sql`
          INSERT INTO signing_keys (kid, public_key) VALUES (${kid}, ${Buffer.from(x, "base64url")})
          ON CONFLICT (kid) DO UPDATE SET created_at = clock_timestamp() WHERE ${isOnlyKey}`
      })
    )
  })

export class SigningKeys extends Effect.Service<SigningKeys>()("custody/SigningKeys", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { portalBaseUrl } = yield* Settings
    const key = privateKeyOf(Redacted.value((yield* MasterKey).keyOf("signing")))
    const kid = yield* kidOfX(xOf(key))

    // The route needs no API key, so the database is read at most once a second. A client that disconnects does not cancel the
    // read for others.
    const jwks = yield* Effect.cachedWithTTL(
      Effect.uninterruptible(
        Effect.map(
          decode(sql`
            SELECT kid, public_key AS "publicKey" FROM signing_keys ORDER BY kid = ${kid} DESC, created_at DESC, kid LIMIT ${PUBLISHED}`),
          (rows) => ({ keys: rows.map((row) => jwkOf(row.kid, row.publicKey.toString("base64url"))) })
        )
      ).pipe(Effect.orDie),
      "1 second"
    )

    return {
      /** `iss` of signatures: the service's public address (`PORTAL_BASE_URL`), or its name. */
      issuer: portalBaseUrl?.replace(/\/+$/, "") ?? ISSUER,

      /** `kid` of the current signing key. */
      kid,

      /** The payload as a compact JWS (EdDSA), `kid` in its header. Equal payloads give equal text. */
      sign: (payload: object): Effect.Effect<string> =>
        Effect.promise(() => new CompactSign(Buffer.from(JSON.stringify(payload))).setProtectedHeader({ alg: "EdDSA", kid }).sign(key)),

      /** The 64 bytes of an Ed25519 signature. */
      signBytes: (bytes: Uint8Array): Effect.Effect<Buffer> => Effect.sync(() => signBytes(null, bytes, key)),

      /** The public keys, the one in use first, then the newest; at most a second old. */
      jwks
    }
  })
}) {
  static readonly layer = this.Default
}
