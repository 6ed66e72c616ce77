/** Entries of the audit log, as in API responses. Decision D-50. */
import { Schema } from "effect"
import { actions, actorTypes } from "../audit/AuditTrail.ts"
import { Timestamp } from "../values/Timestamp.ts"

const described = (description: string) => Schema.String.annotations({ description })
const orNull = (description: string) => Schema.NullOr(Schema.String).annotations({ description })

/** One entry: who did what, when and from where. */
export const AuditEntry = Schema.Struct({
  id: Schema.String.annotations({ description: "Opaque, prefixed aud_", examples: ["aud_01jz0000000000000000000000"] }),
  at: Timestamp.annotations({ description: "When it was done" }),
  actor: Schema.Struct({
    type: Schema.Literal(...actorTypes).annotations({
      description: "key: an API key; session: somebody in the portal; operator: a command of the service; service: the service itself"
    }),
    id: orNull("The API key or the portal session; null where there is none"),
    userId: orNull("The user behind it; null where there is none")
  }).annotations({ identifier: "AuditActor" }),
  action: Schema.String.annotations({ description: `What was done: ${actions.join(", ")}. More may come.`, examples: ["webhook.updated"] }),
  target: Schema.Struct({
    type: described("webhook, recovery, delivery, api_key, account or organization"),
    id: described("Id of what it was done to; of an account its user's")
  }).annotations({ identifier: "AuditTarget" }),
  clientAddress: orNull("Address of the caller; null where there was no request"),
  requestId: orNull("The request's id, as in X-Request-Id"),
  changes: Schema.Record({ key: Schema.String, value: Schema.Struct({ old: Schema.Unknown, new: Schema.Unknown }) }).annotations({
    description: "Fields with their old and new values. Secrets are never among them, and of a URL only its origin is"
  })
}).annotations({ identifier: "AuditEntry", title: "Audit entry" })
export type AuditEntry = typeof AuditEntry.Type
