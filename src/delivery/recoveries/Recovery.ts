/** Recoveries of missed events, as the API accepts and returns them. C-4. */
import { Schema } from "effect"
import { KindName } from "../../events/log/Kind.ts"
import { listOf } from "../../http/Body.ts"
import { Timestamp, TimestampField, timestamp } from "../../values/Timestamp.ts"

/** Longest period of the log that a recovery covers, in days. */
export const RECOVERY_DAYS = 31
/** Largest accepted `ratePerSecond`. */
const MAX_RATE = 1_000

/** Which events can be included: the last delivery failed or was canceled, or there was none. */
const inclusions = ["FAILED", "CANCELED", "MISSED"] as const
const Inclusion = Schema.Literal(...inclusions).annotations({
  identifier: "RecoveryInclusion",
  title: "RecoveryInclusion",
  description: "FAILED or CANCELED: the event's last delivery ended with that status; MISSED: the event had no delivery"
})

export const RecoveryStatus = Schema.Literal("RUNNING", "PAUSED", "COMPLETED", "CANCELED").annotations({
  identifier: "RecoveryStatus",
  description:
    "RUNNING: deliveries are created or still waiting; PAUSED: no further deliveries are created; COMPLETED: all of its deliveries have ended; CANCELED: it was canceled"
})

const vaultId = Schema.String.annotations({ description: "Vault id", examples: ["vault_dkjh7m6gvxzc2wjrphqz46b3br"] })
const nullable = <A, I>(schema: Schema.Schema<A, I>, description: string) => Schema.NullOr(schema).annotations({ description })
const count = (description: string) => Schema.Int.annotations({ description, jsonSchema: { type: "integer", minimum: 0, description } })

/** A recovery: sends again the events that were never DELIVERED to a webhook. */
export const Recovery = Schema.Struct({
  id: Schema.String.annotations({ description: "Opaque, prefixed rec_", examples: ["rec_01jz0000000000000000000000"] }),
  webhookId: Schema.String.annotations({ examples: ["whs_01jz0000000000000000000000"] }),
  status: RecoveryStatus,
  since: timestamp("Events recorded at or after this time"),
  until: timestamp("Events recorded up to this time"),
  eventKinds: nullable(Schema.Array(Schema.String), "Only these kinds; null for all that the webhook receives"),
  vaultIds: nullable(Schema.Array(vaultId), "Only these vaults; null for all that the webhook covers"),
  include: Schema.Array(Inclusion).annotations({ description: "Which events it sends again" }),
  ratePerSecond: nullable(Schema.Int, "Maximum number of deliveries created per second; null: as fast as the endpoint accepts them"),
  progress: Schema.Struct({
    scanned: count("Events examined so far that the webhook would receive"),
    created: count("Deliveries that it created"),
    delivered: count("Of those: DELIVERED"),
    failed: count("Of those: FAILED"),
    canceled: count("Of those: CANCELED"),
    pending: count("Of those: still waiting")
  }).annotations({
    identifier: "RecoveryProgress",
    description:
      "Counts only events that the key can see. If the key cannot see everything that the webhook covers, scanned equals created."
  }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  completedAt: nullable(Timestamp, "When it became COMPLETED or CANCELED; null before that")
}).annotations({ identifier: "Recovery", title: "Recovery" })
export type Recovery = typeof Recovery.Type

/** Body of a creation. It may only narrow what the webhook receives. */
export const CreateRecovery = Schema.Struct({
  since: TimestampField.annotations({ description: "Events recorded at or after this time, at most 31 days before `until`" }),
  until: Schema.optional(TimestampField.annotations({ description: "Events recorded up to this time; default: now" })),
  eventKinds: Schema.optional(listOf(KindName, 100, "kinds", "Kinds that the webhook receives; default: all")),
  vaultIds: Schema.optional(listOf(vaultId, 1_000, "vaults", "Vaults that the webhook covers; default: all")),
  include: Schema.optionalWith(
    listOf(Inclusion, inclusions.length, "of FAILED, CANCELED and MISSED", "Which events to send again; default: all three"),
    { default: () => inclusions }
  ),
  ratePerSecond: Schema.optional(
    Schema.Int.pipe(Schema.between(1, MAX_RATE)).annotations({
      message: () => `must be a whole number from 1 to ${MAX_RATE}`,
      jsonSchema: {
        type: "integer",
        minimum: 1,
        maximum: MAX_RATE,
        examples: [10],
        description: "Maximum number of deliveries created per second; default: as fast as the endpoint accepts them"
      }
    })
  )
}).annotations({ identifier: "CreateRecovery" })
export type CreateRecovery = typeof CreateRecovery.Type
