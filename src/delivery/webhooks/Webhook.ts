/** The webhook record in API requests and responses. Spec: Webhook. Decision D-19. */

import { Schema } from "effect"
import { Event } from "../../events/log/Event.ts"
import { KindName, StoredKind } from "../../events/log/Kind.ts"
import { listOf } from "../../http/Body.ts"
import { isStorable } from "../../values/givenId.ts"
import { Timestamp } from "../../values/Timestamp.ts"
import { NewHeaders, PatchedHeaders, ShownHeaders } from "../gateway/headers.ts"
import { NewOAuth, PatchedOAuth, ShownOAuth } from "../gateway/oauth.ts"

const described = (description: string, example: string) => Schema.String.annotations({ description, examples: [example] })
const message = (text: string) => ({ message: () => text })
const nullable = <A, I>(schema: Schema.Schema<A, I>, description: string) => Schema.NullOr(schema).annotations({ description })

/** `ACTIVE` receives events, `PAUSED` receives them when it is resumed, `DISABLED` does not. */
export const WebhookStatus = Schema.Literal("ACTIVE", "PAUSED", "DISABLED").annotations({
  identifier: "WebhookStatus",
  title: "WebhookStatus",
  description:
    "ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED: no deliveries are created"
})
/** Why a webhook is disabled. */
export const DisabledReason = Schema.Literal("MANUAL", "FAILING", "GONE").annotations({
  identifier: "DisabledReason",
  title: "DisabledReason",
  description: "MANUAL: by an update; FAILING: no 2xx response for too long; GONE: the endpoint returned 410 twice"
})

const vaultId = described("Vault id", "vault_dkjh7m6gvxzc2wjrphqz46b3br")

const fields = {
  id: described("Opaque, prefixed whs_", "whs_01jz0000000000000000000000"),
  url: described("Where events are sent", "https://hooks.example.com/custody"),
  description: described("Free text for people", "Ledger import"),
  status: WebhookStatus,
  disabledReason: nullable(DisabledReason, "Why it is disabled; null if it is not disabled"),
  disabledAt: nullable(Timestamp, "When it was disabled"),
  entityIds: Schema.Array(described("Entity id", "entity_k3vwj9pbkx2z8z81zfse2sm8ra")).annotations({
    description: "Operating units whose events it receives"
  }),
  eventKinds: Schema.Array(StoredKind).annotations({ description: "Kinds of event that it receives" }),
  vaultIds: nullable(
    Schema.Array(vaultId),
    "Vaults whose events it receives; null for all vaults of its entities. Events without a vault pass every filter."
  ),
  notificationEmail: described("Where operational notices go", "ops@example.com"),
  headers: ShownHeaders,
  oauth: nullable(ShownOAuth, "OAuth client credentials that get the access token of every request; null without any"),
  previousSecretExpiresAt: nullable(Timestamp, "When the previous secret expires; null if only one secret is active"),
  createdAt: Timestamp,
  updatedAt: Timestamp
}

/** A webhook in lists and responses to updates. */
export const Webhook = Schema.Struct(fields).annotations({ identifier: "Webhook", title: "Webhook" })
export type Webhook = typeof Webhook.Type

const secret = described("Signing secret; returned only once", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")

/** A webhook in the response to its creation: with its secret, only once. Spec: Delivery contract 5. */
export const WebhookWithSecret = Schema.Struct({ ...fields, secret }).annotations({
  title: "WebhookWithSecret",
  description: "The response of a webhook's creation: the webhook with its signing secret, which is returned only here"
})
export type WebhookWithSecret = typeof WebhookWithSecret.Type

const count = (description: string, example = 0) =>
  Schema.Int.annotations({ description, jsonSchema: { type: "integer", minimum: 0, description, examples: [example] } })

/** Health of a webhook. Decision D-19. */
export const Health = Schema.Struct({
  state: Schema.Literal("HEALTHY", "DEGRADED", "FAILING", "HOLDING").annotations({
    description:
      "HEALTHY: no attempt failed since the last 2xx response or since it was enabled; DEGRADED: attempts fail; FAILING: at least 10 attempts failed in a row, for an hour or more; HOLDING: the endpoint is down, so deliveries wait as HELD and it is probed"
  }),
  consecutiveFailures: count("Failed attempts since the last 2xx"),
  failingSince: nullable(Timestamp, "When the first of them failed"),
  lastSuccessAt: nullable(Timestamp, "The last 2xx"),
  lastFailureAt: nullable(Timestamp, "The last failed attempt"),
  lastResult: nullable(Schema.String, "Result of the last attempt"),
  pendingDeliveries: count("Waiting deliveries, including held ones, counted up to 100000"),
  heldDeliveries: count("Deliveries that are HELD, counted up to 100000"),
  nextProbeAt: nullable(Timestamp, "When the endpoint is probed next; null unless the state is HOLDING, and while the webhook is paused"),
  delivered24h: count("Deliveries delivered in the last 24 hours"),
  failed24h: count("Deliveries that exhausted their retry schedule in the last 24 hours")
}).annotations({ identifier: "WebhookHealth" })
export type Health = typeof Health.Type

/** One webhook, with its health counters. */
export const WebhookWithHealth = Schema.Struct({ ...fields, health: Health }).annotations({ identifier: "WebhookWithHealth" })

/** Body of a rotation, which may be left out. C-12. */
export const RotateSecret = Schema.Struct({
  expirePrevious: Schema.optional(
    Schema.Literal("now").annotations({
      identifier: "SecretExpiry",
      title: "SecretExpiry",
      ...message("must be now"),
      description: "now: all earlier secrets expire at once; without it, the previous one stays valid for 24 hours"
    })
  )
}).annotations({ identifier: "RotateSecret" })
export type RotateSecret = typeof RotateSecret.Type

/** Response to a rotation. Decision D-25. */
export const RotatedSecret = Schema.Struct({
  id: fields.id,
  secret,
  previousSecretExpiresAt: nullable(
    Timestamp,
    "When the previous secret expires; until then requests are signed with both. Null if all earlier secrets have expired"
  )
}).annotations({ identifier: "RotatedSecret" })

const anyKind = message(`must be one of ${KindName.literals.join(", ")}`)

/** Body of a ping, which may be left out. C-12. */
export const PingWebhook = Schema.Struct({
  eventKind: Schema.optional(
    KindName.annotations({
      ...anyKind,
      description: "Kind of the sample event to send; without it, the event is a `webhook.ping`"
    })
  )
}).annotations({ identifier: "PingWebhook" })

/** Result of a ping. Decision D-26. */
export const PingResult = Schema.Struct({
  webhookId: fields.id,
  eventId: described("Id of the test event; it is not in the log", "evt_01jz0000000000000000000000"),
  at: Timestamp,
  success: Schema.Boolean.annotations({ description: "Whether the endpoint returned 2xx in time" }),
  result: described("Result, as of an attempt", "2xx"),
  httpStatus: Schema.Int.annotations({ description: "HTTP status of the response; 0 without a response", examples: [200] }),
  latencyMs: Schema.Int.annotations({
    description: "Milliseconds until the response headers arrived or the ping failed",
    examples: [87]
  }),
  bodySnippet: nullable(Schema.String, "Beginning of the response body"),
  detail: nullable(Schema.String, "As of an attempt: why there was no access token, for example")
}).annotations({ identifier: "PingResult" })
export type PingResult = typeof PingResult.Type

/** Where deliveries come from. C-12. */
export const WebhookSourceAddresses = Schema.Struct({
  addresses: Schema.Array(described("CIDR of IPv4 or IPv6", "203.0.113.8/32")).annotations({
    description: "Ranges from which deliveries and pings are sent; empty if the operator of the service names none"
  })
}).annotations({ identifier: "WebhookSourceAddresses" })

const Url = Schema.String.annotations({
  ...message("must be a URL"),
  jsonSchema: {
    type: "string",
    format: "uri",
    pattern: "^[Hh][Tt][Tt][Pp][Ss]://",
    maxLength: 2_048,
    description: "https, a public host name, port 443 or 8443",
    examples: ["https://hooks.example.com/custody"]
  }
})
const Description = Schema.String.pipe(
  Schema.filter(
    // Characters as JSON Schema counts them: code points.
    (value) => ([...value].length <= 1_000 && value.isWellFormed() && isStorable(value)) || "must have at most 1000 characters",
    { jsonSchema: { maxLength: 1_000, pattern: "^[^\\u0000]*$", examples: ["Ledger import"] }, description: "Free text for people" }
  )
)
/** Longest lists of a body. */
const MAX_KINDS = 100,
  MAX_ENTITIES = 100,
  MAX_VAULTS = 1_000

const Kinds = listOf(KindName.annotations(anyKind), MAX_KINDS, "kinds", "Kinds of event that it receives")
const entities = (description: string) =>
  Schema.optional(
    listOf(
      fields.entityIds.value.annotations(message("must be the id of an entity from GET /v1/entities")),
      MAX_ENTITIES,
      "entities from GET /v1/entities",
      `${description}, from \`GET /v1/entities\`; may be left out by a key that reaches exactly one`
    )
  )
const vaults =
  "Vaults whose events it receives; null for all vaults of its entities, including those created later. Requires the Developer role on each vault that it covers now"
const Vaults = Schema.NullOr(listOf(vaultId, MAX_VAULTS, "vaults", vaults)).annotations({ description: vaults })
const email = /^[^\s@<>(),;:"\\[\]\p{Cc}\p{Cs}]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)+[\p{L}\p{N}-]{2,63}$/u
// One plain address; a mail header must not read it as two, or as a name.
const Email = Schema.String.pipe(
  Schema.filter((value) => (value.length <= 254 && email.test(value)) || "must be an e-mail address", {
    jsonSchema: { format: "email", maxLength: 254 },
    description: "Where operational notices go",
    examples: ["ops@example.com"]
  })
)

/** Body of a creation. Decision D-19. */
export const CreateWebhook = Schema.Struct({
  url: Url,
  entityIds: entities("Operating units whose events it receives"),
  eventKinds: Kinds,
  notificationEmail: Email,
  vaultIds: Schema.optionalWith(Vaults, { default: () => null }),
  description: Schema.optionalWith(Description, { default: () => "" }),
  headers: Schema.optionalWith(NewHeaders, { default: () => [] }),
  oauth: Schema.optional(NewOAuth),
  status: Schema.optionalWith(WebhookStatus, { default: () => "ACTIVE" as const })
}).annotations({ identifier: "CreateWebhook" })
export type CreateWebhook = typeof CreateWebhook.Type

/** Body of a preview: the fields that decide which events a webhook receives. C-7. */
export const PreviewWebhook = Schema.Struct({
  entityIds: entities("Operating units whose events it would receive"),
  eventKinds: Kinds,
  vaultIds: Schema.optionalWith(Vaults, { default: () => null })
}).annotations({ identifier: "PreviewWebhook" })
export type PreviewWebhook = typeof PreviewWebhook.Type

/** Most events that a preview counts. C-7. */
export const PREVIEW_LIMIT = 10_000

/** What a webhook would have received. C-7. */
export const WebhookPreview = Schema.Struct({
  count: count("Events of the last 31 days that it would have received, counted up to `countedUpTo`", 1),
  countedUpTo: Schema.Int.annotations({ description: "Maximum of `count`", examples: [PREVIEW_LIMIT] }),
  byKind: Schema.Record({ key: Schema.String, value: Schema.Int }).annotations({
    jsonSchema: {
      type: "object",
      additionalProperties: { type: "integer", minimum: 0 },
      description: "The counted events by kind, with an entry for every requested kind",
      examples: [{ "transaction.confirmed": 1 }]
    }
  }),
  newest: Schema.Array(Event).annotations({ description: "The newest of these events, at most 5" })
}).annotations({ identifier: "WebhookPreview" })

/**
 * Body of an update: RFC 7396 merge patch of what may change; null in `vaultIds` removes the filter, in `description`
 * `headers` and `oauth` it clears them.
 */
export const UpdateWebhook = Schema.Struct({
  url: Schema.optional(Url),
  eventKinds: Schema.optional(Kinds),
  vaultIds: Schema.optional(Vaults),
  status: Schema.optional(WebhookStatus),
  description: Schema.optional(Schema.NullOr(Description)),
  headers: Schema.optional(Schema.NullOr(PatchedHeaders)),
  oauth: Schema.optional(Schema.NullOr(PatchedOAuth))
}).annotations({ identifier: "UpdateWebhook" })
export type UpdateWebhook = typeof UpdateWebhook.Type
