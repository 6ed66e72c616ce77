/** Entries of the audit log, as in API responses. Decision D-50. */
import { Schema } from "effect"
import { timestamp } from "../../values/Timestamp.ts"
import { actions, actorTypes } from "./AuditTrail.ts"

const described = (description: string, example: string) => Schema.String.annotations({ description, examples: [example] })
const value = (description: string, example: unknown) => Schema.Unknown.annotations({ jsonSchema: { description, examples: [example] } })
const orNull = (description: string) => Schema.NullOr(Schema.String).annotations({ description })

/** One entry: who did what, when and from where. */
export const AuditEntry = Schema.Struct({
  id: Schema.String.annotations({ description: "Opaque, prefixed aud_", examples: ["aud_01jz0000000000000000000000"] }),
  at: timestamp("When the action took place"),
  actor: Schema.Struct({
    type: Schema.Literal(...actorTypes).annotations({
      description:
        "key: an API key; session: a person in the portal; operator: a command of the service; platform: the custody platform by its records; service: the service itself"
    }),
    id: orNull("The API key or the portal session; null for operator, platform and service"),
    userId: orNull("The user of the API key or session; null without one")
  }).annotations({ identifier: "AuditActor" }),
  action: Schema.String.annotations({
    description: `What was done: ${actions.join(", ")}. Values may be added.`,
    examples: ["webhook.updated"]
  }),
  target: Schema.Struct({
    type: described("webhook, recovery, delivery, api_key, user, account or organization", "webhook"),
    id: described("Id of the target; for an account, the id of its user", "whs_01jz0000000000000000000000")
  }).annotations({ identifier: "AuditTarget" }),
  clientAddress: orNull("Address of the client; null without a request"),
  requestId: orNull("The request's id, as in X-Request-Id"),
  changes: Schema.Record({
    key: Schema.String,
    value: Schema.Struct({ old: value("Value before; null where there was none", "ACTIVE"), new: value("Value after", "PAUSED") })
  }).annotations({
    description: "Changed fields with their old and new values. Secrets are never included, and a URL is reduced to its origin",
    examples: [{ status: { old: "ACTIVE", new: "PAUSED" } }]
  })
}).annotations({ identifier: "AuditEntry", title: "Audit entry" })
export type AuditEntry = typeof AuditEntry.Type
