/**
 * The demo's keys, one per access rule. Keys of an earlier run are reused if the database still has them; changes to them
 * are reverted.
 */
import { Effect, Redacted, Schema } from "effect"
import { ApiKeys, type Choice } from "../../access/keys/ApiKeys.ts"
import type { DemoData } from "./demoData.ts"

const names = ["owner", "reader", "restricted", "webhookOnly", "expired", "ipLocked"] as const
type Name = (typeof names)[number]

/** Secrets of the keys by their names. */
export const Keys = Schema.Struct({
  owner: Schema.String,
  reader: Schema.String,
  restricted: Schema.String,
  webhookOnly: Schema.String,
  expired: Schema.String,
  ipLocked: Schema.String
})
export type Keys = typeof Keys.Type

const everything = ["vault:read", "webhook:read", "webhook:manage"]
const open: Choice = { scopes: everything, vaultIds: null, ipAllowlist: [], expiresAt: null, label: "" }

/** The user and the properties of each key. */
const wanted = ({ developerId, developerVaultId, ownerId }: DemoData): { readonly [N in Name]: readonly [string, Choice] } => ({
  owner: [ownerId, open],
  reader: [ownerId, { ...open, scopes: ["vault:read"] }],
  restricted: [developerId, { ...open, vaultIds: [developerVaultId] }],
  webhookOnly: [ownerId, { ...open, scopes: ["webhook:read"] }],
  expired: [ownerId, { ...open, expiresAt: "2025-01-01T00:00:00.000Z" }],
  ipLocked: [ownerId, { ...open, ipAllowlist: ["203.0.113.0/24"] }]
})

/** The keys; missing ones are created. */
export const ensure = (data: DemoData, earlier: Partial<Keys>) =>
  Effect.gen(function* () {
    const keys = yield* ApiKeys
    const all = wanted(data)
    const secretOf = (name: Name) =>
      Effect.gen(function* () {
        const [userId, choice] = all[name]
        const labelled = { ...choice, label: `demo: ${name}` }
        const secret = earlier[name]
        const known = secret === undefined ? undefined : yield* keys.bySecret(Redacted.make(secret))
        if (secret !== undefined && known?.userId === userId && known.revokedAt === null) {
          yield* keys.update(known.id, labelled, { mayWiden: true })
          return secret
        }
        return Redacted.value((yield* keys.create(userId, labelled)).secret)
      })
    return yield* Effect.all(
      {
        owner: secretOf("owner"),
        reader: secretOf("reader"),
        restricted: secretOf("restricted"),
        webhookOnly: secretOf("webhookOnly"),
        expired: secretOf("expired"),
        ipLocked: secretOf("ipLocked")
      },
      { concurrency: 1 }
    )
  })
