/**
 * The master key: 32 bytes that every key of the service is derived from, one per purpose, so that no two purposes share
 * a key. During a rotation the previous key still decrypts what it encrypted. Decision D-25.
 */

import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto"
import { Context, Effect, Layer, Redacted } from "effect"
import { DataDir, generateKey } from "../embedded/DataDir.ts"
import { InvalidSettings, Settings } from "../settings/Settings.ts"

/** The purposes; each has its own key. */
export type Purpose = (typeof purposes)[number]

const purposes = [
  "cursor",
  "webhook-secret",
  "gateway-credentials",
  "idempotent-answer",
  "idempotent-body",
  "portal-cookie",
  "portal-second-factor",
  "signing",
  "temporal-payload"
] as const

/** AES-256-GCM under keys derived from the master key. */
export interface Sealing {
  /** Encrypts with the current key: one byte of key id, 12 of nonce, ciphertext, 16 of tag. */
  readonly seal: (purpose: Purpose, plain: Buffer, context: string) => Buffer
  /**
   * Decrypts what {@link seal} returned for the same purpose and context, with the current or the previous key; undefined
   * otherwise.
   */
  readonly open: (purpose: Purpose, sealed: Buffer, context: string) => Buffer | undefined
  /** Whether the current key decrypts it; if not, it needs re-encryption. */
  readonly isCurrent: (purpose: Purpose, sealed: Buffer, context: string) => boolean
  /** The current key of a purpose, 32 bytes, for a library that does its own signing. */
  readonly keyOf: (purpose: Purpose) => Redacted.Redacted<Buffer>
}

export class MasterKey extends Context.Tag("custody/MasterKey")<MasterKey, Sealing>() {}

interface Derived {
  readonly id: number
  readonly keys: Map<Purpose, Buffer>
}

const NONCE = 12,
  TAG = 16

const derive = (master: Buffer): Derived => ({
  // One byte distinguishes the keys without revealing anything about them; a collision only costs a second try.
  id: createHash("sha256").update("custody key id").update(master).digest()[0] ?? 0,
  keys: new Map(purposes.map((purpose) => [purpose, Buffer.from(hkdfSync("sha256", master, "", `custody/${purpose}/v1`, 32))] as const))
})

/** Encrypts with `current`, decrypts with `current` and `previous`. Both are 32 bytes. */
export const sealing = (current: Buffer, previous: Buffer | undefined): Sealing => {
  const now = derive(current)
  const all = previous === undefined ? [now] : [now, derive(previous)]
  const keyOf = (from: Derived, purpose: Purpose) => from.keys.get(purpose) ?? Buffer.alloc(0)
  const openWith = (from: Derived, purpose: Purpose, sealed: Buffer, context: string): Buffer | undefined => {
    if (sealed.length < 1 + NONCE + TAG || from.id !== sealed[0]) return undefined
    const decipher = createDecipheriv("aes-256-gcm", keyOf(from, purpose), sealed.subarray(1, 1 + NONCE))
    decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(sealed.length - TAG))
    try {
      return Buffer.concat([decipher.update(sealed.subarray(1 + NONCE, sealed.length - TAG)), decipher.final()])
    } catch {
      return undefined
    }
  }
  return {
    seal: (purpose, plain, context) => {
      const nonce = randomBytes(NONCE)
      const cipher = createCipheriv("aes-256-gcm", keyOf(now, purpose), nonce).setAAD(Buffer.from(context))
      return Buffer.concat([Buffer.of(now.id), nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
    },
    open: (purpose, sealed, context) => {
      for (const from of all) {
        const plain = openWith(from, purpose, sealed, context)
        if (plain !== undefined) return plain
      }
      return undefined
    },
    // The key id is not enough: both keys can have the same, and a value wrongly taken for current would be lost with the
    // previous key.
    isCurrent: (purpose, sealed, context) => openWith(now, purpose, sealed, context) !== undefined,
    keyOf: (purpose) => Redacted.make(keyOf(now, purpose))
  }
}

/** The master key: from the settings, or generated into the data directory beside the embedded Postgres. */
export const masterKeyLayer = Layer.effect(
  MasterKey,
  Effect.gen(function* () {
    const settings = yield* Settings
    const dataDir = yield* DataDir
    if (settings.masterKey === undefined && settings.databaseUrl !== undefined) {
      return yield* new InvalidSettings({ faults: ["MASTER_KEY: not set, expected 32 bytes in base64 because DATABASE_URL is set."] })
    }
    const current =
      settings.masterKey === undefined
        ? Buffer.from(Redacted.value(dataDir.secret("master-key", generateKey)), "base64")
        : Redacted.value(settings.masterKey)
    return sealing(current, settings.masterKeyPrevious === undefined ? undefined : Redacted.value(settings.masterKeyPrevious))
  })
)
