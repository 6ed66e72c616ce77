// Made from the contract by `bun run golden`; not to be edited.

import type { ReceivedEvent } from "../receivedEvent.ts"
import type { Entity } from "./custody.ts"

export interface CreateWebhook {
  /** https, a public host name, port 443 or 8443 */
  readonly url: string
  /** Operating units whose events it receives, from `GET /v1/entities`; may be left out by a key that reaches exactly one */
  readonly entityIds?: ReadonlyArray<string> | undefined
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Where operational notices go */
  readonly notificationEmail: string
  /** Vaults whose events it receives; null for all vaults of its entities, including those created later. Requires the Developer role on each vault that it covers now */
  readonly vaultIds?: ReadonlyArray<string> | null | undefined
  /** Free text for people */
  readonly description?: string | undefined
  /** Headers that every request carries, for a gateway in front of the endpoint; 4096 characters in all */
  readonly headers?: ReadonlyArray<WebhookHeader> | undefined
  /** OAuth client credentials that get the access token of every request */
  readonly oauth?: WebhookOAuth | undefined
  /** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED: no deliveries are created */
  readonly status?: WebhookStatus | undefined
}

/** Event kind. Values may be added. */
export type EventKind =
  | "transaction.pending"
  | "transaction.confirmed"
  | "transaction.failed"
  | "transaction.replaced"
  | "transaction.dropped"
  | "transaction.reorged"
  | "transaction.updated"
  | "deposit_address.created"
  | "balance.updated"
  | "vault.created"
  | "vault.updated"
  | "statement.sealed"
  | "statement.revised"
  | "webhook.disabled"
  | "webhook.secret_rotated"
  | "api_key.expiring"

export interface WebhookHeader {
  /** Name; upper and lower case are the same */
  readonly name: string
  /** Value; it is never returned */
  readonly value: string
}

/** OAuth client credentials that get the access token of every request */
export interface WebhookOAuth {
  /** The token endpoint; the rules of `url` hold */
  readonly tokenUrl: string
  /** The service's client id at the token server */
  readonly clientId: string
  /** The client's secret; it is never returned */
  readonly clientSecret: string
  /** Requested scope, if any */
  readonly scope?: string | undefined
  /** Requested audience, if any: a parameter that some token servers require */
  readonly audience?: string | undefined
  /** How the client authenticates: basic, by the Authorization header; post, by parameters in the body */
  readonly clientAuthentication?: ClientAuthentication | undefined
}

/** How the client authenticates: basic, by the Authorization header; post, by parameters in the body */
export type ClientAuthentication = "basic" | "post"

/** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED: no deliveries are created */
export type WebhookStatus = "ACTIVE" | "PAUSED" | "DISABLED"

/** The response of a webhook's creation: the webhook with its signing secret, which is returned only here */
export interface WebhookWithSecret {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Where events are sent */
  readonly url: string
  /** Free text for people */
  readonly description: string
  /** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED: no deliveries are created */
  readonly status: WebhookStatus
  /** Why it is disabled; null if it is not disabled */
  readonly disabledReason: DisabledReason | null
  /** When it was disabled */
  readonly disabledAt: string | null
  /** Operating units whose events it receives */
  readonly entityIds: ReadonlyArray<string>
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Vaults whose events it receives; null for all vaults of its entities. Events without a vault pass every filter. */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Where operational notices go */
  readonly notificationEmail: string
  /** Headers that every request carries, without their values */
  readonly headers: ReadonlyArray<ShownWebhookHeader>
  /** OAuth client credentials that get the access token of every request; null without any */
  readonly oauth: ShownWebhookOAuth | null
  /** When the previous secret expires; null if only one secret is active */
  readonly previousSecretExpiresAt: string | null
  readonly createdAt: string
  readonly updatedAt: string
  /** Signing secret; returned only once */
  readonly secret: string
}

export interface ShownWebhookHeader {
  /** Name; upper and lower case are the same */
  readonly name: string
  /** Always null: values are not returned */
  readonly value: string | null
}

/** OAuth client credentials, without their secret */
export interface ShownWebhookOAuth {
  /** The token endpoint */
  readonly tokenUrl: string
  /** The service's client id at the token server */
  readonly clientId: string
  /** Always null: the secret is not returned */
  readonly clientSecret: string | null
  /** Requested scope; null for none */
  readonly scope: string | null
  /** Requested audience; null for none */
  readonly audience: string | null
  /** How the client authenticates: basic, by the Authorization header; post, by parameters in the body */
  readonly clientAuthentication: ClientAuthentication
}

export interface Webhook {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Where events are sent */
  readonly url: string
  /** Free text for people */
  readonly description: string
  /** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED: no deliveries are created */
  readonly status: WebhookStatus
  /** Why it is disabled; null if it is not disabled */
  readonly disabledReason: DisabledReason | null
  /** When it was disabled */
  readonly disabledAt: string | null
  /** Operating units whose events it receives */
  readonly entityIds: ReadonlyArray<string>
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Vaults whose events it receives; null for all vaults of its entities. Events without a vault pass every filter. */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Where operational notices go */
  readonly notificationEmail: string
  /** Headers that every request carries, without their values */
  readonly headers: ReadonlyArray<ShownWebhookHeader>
  /** OAuth client credentials that get the access token of every request; null without any */
  readonly oauth: ShownWebhookOAuth | null
  /** When the previous secret expires; null if only one secret is active */
  readonly previousSecretExpiresAt: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

export interface PreviewWebhook {
  /** Operating units whose events it would receive, from `GET /v1/entities`; may be left out by a key that reaches exactly one */
  readonly entityIds?: ReadonlyArray<string> | undefined
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Vaults whose events it receives; null for all vaults of its entities, including those created later. Requires the Developer role on each vault that it covers now */
  readonly vaultIds?: ReadonlyArray<string> | null | undefined
}

export interface WebhookPreview {
  /** Events of the last 31 days that it would have received, counted up to `countedUpTo` */
  readonly count: number
  /** Maximum of `count` */
  readonly countedUpTo: number
  /** The counted events by kind, with an entry for every requested kind */
  readonly byKind: Readonly<Record<string, number>>
  /** The newest of these events, at most 5 */
  readonly newest: ReadonlyArray<WebhookEvent>
}

export interface WebhookEvent {
  /** Opaque, prefixed evt_ */
  readonly id: string
  /** Operating unit (entity) that it belongs to */
  readonly entityId: string
  /** Vaults involved; null if the event is not vault-scoped */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Event kind */
  readonly kind: string
  /** Version of the kind's schema */
  readonly schemaVersion: number
  /** The exact envelope that matching webhooks receive */
  readonly payload: ReceivedEvent
  /** When it occurred; the envelope's date */
  readonly occurredAt: string
  /** When deliveries were created; null while dispatch is pending */
  readonly dispatchedAt: string | null
  /** When it was recorded */
  readonly createdAt: string
}

export interface WebhookWithHealth {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Where events are sent */
  readonly url: string
  /** Free text for people */
  readonly description: string
  /** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED: no deliveries are created */
  readonly status: WebhookStatus
  /** Why it is disabled; null if it is not disabled */
  readonly disabledReason: DisabledReason | null
  /** When it was disabled */
  readonly disabledAt: string | null
  /** Operating units whose events it receives */
  readonly entityIds: ReadonlyArray<string>
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Vaults whose events it receives; null for all vaults of its entities. Events without a vault pass every filter. */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Where operational notices go */
  readonly notificationEmail: string
  /** Headers that every request carries, without their values */
  readonly headers: ReadonlyArray<ShownWebhookHeader>
  /** OAuth client credentials that get the access token of every request; null without any */
  readonly oauth: ShownWebhookOAuth | null
  /** When the previous secret expires; null if only one secret is active */
  readonly previousSecretExpiresAt: string | null
  readonly createdAt: string
  readonly updatedAt: string
  readonly health: WebhookHealth
}

export interface WebhookHealth {
  /** HEALTHY: no attempt failed since the last 2xx response or since it was enabled; DEGRADED: attempts fail; FAILING: at least 10 attempts failed in a row, for an hour or more; HOLDING: the endpoint is down, so deliveries wait as HELD and it is probed */
  readonly state: "HEALTHY" | "DEGRADED" | "FAILING" | "HOLDING"
  /** Failed attempts since the last 2xx */
  readonly consecutiveFailures: number
  /** When the first of them failed */
  readonly failingSince: string | null
  /** The last 2xx */
  readonly lastSuccessAt: string | null
  /** The last failed attempt */
  readonly lastFailureAt: string | null
  /** Result of the last attempt */
  readonly lastResult: string | null
  /** Waiting deliveries, including held ones, counted up to 100000 */
  readonly pendingDeliveries: number
  /** Deliveries that are HELD, counted up to 100000 */
  readonly heldDeliveries: number
  /** When the endpoint is probed next; null unless the state is HOLDING, and while the webhook is paused */
  readonly nextProbeAt: string | null
  /** Deliveries delivered in the last 24 hours */
  readonly delivered24h: number
  /** Deliveries that exhausted their retry schedule in the last 24 hours */
  readonly failed24h: number
}

export interface UpdateWebhook {
  /** https, a public host name, port 443 or 8443 */
  readonly url?: string | undefined
  /** Kinds of event that it receives */
  readonly eventKinds?: ReadonlyArray<EventKind> | undefined
  /** Vaults whose events it receives; null for all vaults of its entities, including those created later. Requires the Developer role on each vault that it covers now */
  readonly vaultIds?: ReadonlyArray<string> | null | undefined
  /** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for at most 31 days; DISABLED: no deliveries are created */
  readonly status?: WebhookStatus | undefined
  /** Free text for people */
  readonly description?: string | null | undefined
  /** All headers from now on. A value of null keeps the stored one, but not if the origin of `url` changes */
  readonly headers?: ReadonlyArray<PatchedWebhookHeader> | null | undefined
  readonly oauth?: PatchedWebhookOAuth | null | undefined
}

export interface PatchedWebhookHeader {
  /** Name; upper and lower case are the same */
  readonly name: string
  /** Value; null keeps the stored one */
  readonly value: string | null
}

/** Changes of the OAuth client credentials. The stored secret is not kept if the origin of `url` or `tokenUrl` changes */
export interface PatchedWebhookOAuth {
  /** The token endpoint; the rules of `url` hold */
  readonly tokenUrl?: string | undefined
  /** The service's client id at the token server */
  readonly clientId?: string | undefined
  /** The client's secret; null or none keeps the stored one */
  readonly clientSecret?: string | null | undefined
  /** Requested scope, if any */
  readonly scope?: string | null | undefined
  /** Requested audience, if any: a parameter that some token servers require */
  readonly audience?: string | null | undefined
  /** How the client authenticates: basic, by the Authorization header; post, by parameters in the body */
  readonly clientAuthentication?: ClientAuthentication | undefined
}

export interface RotateSecret {
  /** now: all earlier secrets expire at once; without it, the previous one stays valid for 24 hours */
  readonly expirePrevious?: SecretExpiry | undefined
}

/** now: all earlier secrets expire at once; without it, the previous one stays valid for 24 hours */
export type SecretExpiry = "now"

export interface RotatedSecret {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Signing secret; returned only once */
  readonly secret: string
  /** When the previous secret expires; until then requests are signed with both. Null if all earlier secrets have expired */
  readonly previousSecretExpiresAt: string | null
}

export interface WebhookSourceAddresses {
  /** Ranges from which deliveries and pings are sent; empty if the operator of the service names none */
  readonly addresses: ReadonlyArray<string>
}

export interface WebhookEventDetail {
  /** Opaque, prefixed evt_ */
  readonly id: string
  /** Operating unit (entity) that it belongs to */
  readonly entityId: string
  /** Vaults involved; null if the event is not vault-scoped */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Event kind */
  readonly kind: string
  /** Version of the kind's schema */
  readonly schemaVersion: number
  /** The exact envelope that matching webhooks receive */
  readonly payload: ReceivedEvent
  /** When it occurred; the envelope's date */
  readonly occurredAt: string
  /** When deliveries were created; null while dispatch is pending */
  readonly dispatchedAt: string | null
  /** When it was recorded */
  readonly createdAt: string
  /** Number of active and paused webhooks that matched at dispatch; 0 before dispatch */
  readonly matchedCount: number
  /** Number of its deliveries visible to this API key, by status, including redeliveries */
  readonly deliveryCounts: {
    readonly PENDING: number
    readonly RETRYING: number
    readonly HELD: number
    readonly DELIVERED: number
    readonly FAILED: number
    readonly CANCELED: number
  }
}

export type FeedStart = "now"

export interface EventFeedPage {
  readonly data: ReadonlyArray<WebhookEvent>
  readonly pagination: FeedPagination
  /** Position after the last event examined: pass it as `after` */
  readonly resumeCursor: string
}

export interface FeedPagination {
  /** Page size */
  readonly limit: number
  /** Equal to `resumeCursor` if there are more events, otherwise null */
  readonly nextCursor: string | null
}

/** PENDING: no attempt yet; RETRYING: an attempt failed and another is scheduled; HELD: it waits in the queue of its webhook, see heldBecause; DELIVERED: the endpoint returned 2xx; FAILED: the retry schedule is exhausted; CANCELED: canceled while waiting */
export type DeliveryStatus = "PENDING" | "RETRYING" | "HELD" | "DELIVERED" | "FAILED" | "CANCELED"

export interface Delivery {
  /** Opaque, prefixed del_ */
  readonly id: string
  readonly eventId: string
  readonly webhookId: string
  /** Number of the delivery within its webhook: 1, 2, 3 and so on without gaps, in the order of dispatch */
  readonly sequence: number
  /** Kind of the event */
  readonly kind: string
  /** PENDING: no attempt yet; RETRYING: an attempt failed and another is scheduled; HELD: it waits in the queue of its webhook, see heldBecause; DELIVERED: the endpoint returned 2xx; FAILED: the retry schedule is exhausted; CANCELED: canceled while waiting */
  readonly status: DeliveryStatus
  /** Attempts so far, oldest first */
  readonly attempts: ReadonlyArray<Attempt>
  /** When the next attempt is due; null if there is none */
  readonly nextAttemptAt: string | null
  /** Why a HELD delivery waits; null otherwise. PAUSED: its webhook or its recovery is paused; DOWN: its endpoint is down and is probed; TURN: it is sent in its turn */
  readonly heldBecause: "PAUSED" | "DOWN" | "TURN" | null
  /** Why it ended without a 2xx response; null otherwise. EXPIRED: it was held for 31 days, or its event left the log */
  readonly failureReason: "EXHAUSTED" | "WEBHOOK_DISABLED" | "WEBHOOK_DELETED" | "MANUAL" | "EXPIRED" | null
  /** The delivery that this one redelivers; null otherwise */
  readonly replayedFromDeliveryId: string | null
  /** The recovery that created it; null otherwise */
  readonly recoveryId: string | null
  /** When the endpoint returned 2xx; null before that */
  readonly deliveredAt: string | null
  readonly createdAt: string
}

export interface Attempt {
  /** When the attempt began */
  readonly at: string
  /** 2xx is a success; every other result is retried. interrupted: the worker was killed before it recorded the outcome. proxy_error: the service's egress proxy failed. auth_error: there is no access token, see `detail`. Values may be added. */
  readonly result: AttemptResult
  /** HTTP status of the response; 0 without a response */
  readonly httpStatus: number
  /** Milliseconds until the response headers arrived or the attempt failed */
  readonly latencyMs: number
  /** Beginning of the response body, at most 1024 bytes */
  readonly bodySnippet: string | null
  /** Why the response could not be read as HTTP, in the parser's words, what is wrong with the certificate, or why there is no access token; null for every other outcome */
  readonly detail: string | null
}

/** 2xx is a success; every other result is retried. interrupted: the worker was killed before it recorded the outcome. proxy_error: the service's egress proxy failed. auth_error: there is no access token, see `detail`. Values may be added. */
export type AttemptResult =
  | "2xx"
  | "3xx"
  | "4xx"
  | "5xx"
  | "timeout"
  | "dns_error"
  | "connection_refused"
  | "connection_reset"
  | "tls_error"
  | "blocked_address"
  | "network_error"
  | "interrupted"
  | "proxy_error"
  | "auth_error"

export interface EventDeliveries {
  readonly data: ReadonlyArray<Delivery>
}

export interface PingWebhook {
  /** Kind of the sample event to send; without it, the event is a `webhook.ping` */
  readonly eventKind?: EventKind | undefined
}

export interface PingResult {
  /** Opaque, prefixed whs_ */
  readonly webhookId: string
  /** Id of the test event; it is not in the log */
  readonly eventId: string
  readonly at: string
  /** Whether the endpoint returned 2xx in time */
  readonly success: boolean
  /** Result, as of an attempt */
  readonly result: string
  /** HTTP status of the response; 0 without a response */
  readonly httpStatus: number
  /** Milliseconds until the response headers arrived or the ping failed */
  readonly latencyMs: number
  /** Beginning of the response body */
  readonly bodySnippet: string | null
  /** As of an attempt: why there was no access token, for example */
  readonly detail: string | null
}

export interface CreateRecovery {
  /** Events recorded at or after this time, at most 31 days before `until` */
  readonly since: string
  /** Events recorded up to this time; default: now */
  readonly until?: string | undefined
  /** Kinds that the webhook receives; default: all */
  readonly eventKinds?: ReadonlyArray<EventKind> | undefined
  /** Vaults that the webhook covers; default: all */
  readonly vaultIds?: ReadonlyArray<string> | undefined
  /** Which events to send again; default: all three */
  readonly include?: ReadonlyArray<RecoveryInclusion> | undefined
  /** Maximum number of deliveries created per second; default: as fast as the endpoint accepts them */
  readonly ratePerSecond?: number | undefined
}

/** FAILED or CANCELED: the event's last delivery ended with that status; MISSED: the event had no delivery */
export type RecoveryInclusion = "FAILED" | "CANCELED" | "MISSED"

export interface Recovery {
  /** Opaque, prefixed rec_ */
  readonly id: string
  readonly webhookId: string
  /** RUNNING: deliveries are created or still waiting; PAUSED: no further deliveries are created; COMPLETED: all of its deliveries have ended; CANCELED: it was canceled */
  readonly status: RecoveryStatus
  /** Events recorded at or after this time */
  readonly since: string
  /** Events recorded up to this time */
  readonly until: string
  /** Only these kinds; null for all that the webhook receives */
  readonly eventKinds: ReadonlyArray<string> | null
  /** Only these vaults; null for all that the webhook covers */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Which events it sends again */
  readonly include: ReadonlyArray<RecoveryInclusion>
  /** Maximum number of deliveries created per second; null: as fast as the endpoint accepts them */
  readonly ratePerSecond: number | null
  /** Counts only events that the key can see. If the key cannot see everything that the webhook covers, scanned equals created. */
  readonly progress: RecoveryProgress
  readonly createdAt: string
  readonly updatedAt: string
  /** When it became COMPLETED or CANCELED; null before that */
  readonly completedAt: string | null
}

/** RUNNING: deliveries are created or still waiting; PAUSED: no further deliveries are created; COMPLETED: all of its deliveries have ended; CANCELED: it was canceled */
export type RecoveryStatus = "RUNNING" | "PAUSED" | "COMPLETED" | "CANCELED"

/** Counts only events that the key can see. If the key cannot see everything that the webhook covers, scanned equals created. */
export interface RecoveryProgress {
  /** Events examined so far that the webhook would receive */
  readonly scanned: number
  /** Deliveries that it created */
  readonly created: number
  /** Of those: DELIVERED */
  readonly delivered: number
  /** Of those: FAILED */
  readonly failed: number
  /** Of those: CANCELED */
  readonly canceled: number
  /** Of those: still waiting */
  readonly pending: number
}

export interface Credential {
  readonly key: {
    /** Id of the key */
    readonly id: string
    /** Free text for people */
    readonly label: string
    /** Scopes of the key */
    readonly scopes: ReadonlyArray<string>
    /** Vault allowlist; null allows every vault on which the user has the Developer role */
    readonly vaultIds: ReadonlyArray<string> | null
    /** Address ranges from which the key may be used; empty: any */
    readonly ipAllowlist: ReadonlyArray<string>
    readonly createdAt: string
    /** When it expires; null: never */
    readonly expiresAt: string | null
  }
  readonly user: {
    /** The user that the key is bound to */
    readonly id: string
    /** The user's role in the organization now */
    readonly organizationRole: "owner" | "member"
  }
  /** The organization */
  readonly organizationId: string
  /** Whether the key may manage webhooks, given `webhook:manage` */
  readonly ownerLevel: boolean
  /** The address that this request came from, as the service sees it */
  readonly clientAddress: string | null
  readonly vaults: {
    /** Vaults where the user has the Developer role */
    readonly role: number
    /** Those of them that the key's vault allowlist contains */
    readonly allowlist: number
    /** Those that reads return; 0 without `vault:read` */
    readonly visible: number
  }
  /** Entities that `GET /v1/entities` returns: the first 100 */
  readonly entities: ReadonlyArray<Entity>
  /** Entities that `GET /v1/entities` returns; 0 without `vault:read` and `webhook:read` */
  readonly entityCount: number
  /** The vault named by `vaultId`; absent without that parameter */
  readonly vault?:
    | {
        readonly visible: boolean
        /** unknown: there is no such vault, or the user has no Developer role on it; scope: the key lacks `vault:read`; allowlist: the key's vault allowlist does not include it; visible: reads return it */
        readonly because: "unknown" | "scope" | "allowlist" | "visible"
      }
    | undefined
}

export interface SigningKeySet {
  readonly keys: ReadonlyArray<SigningKey>
}

export interface SigningKey {
  readonly kty: "OKP"
  readonly crv: "Ed25519"
  readonly alg: "EdDSA"
  readonly use: "sig"
  /** Id of the key, as in the header of its signatures: its RFC 7638 thumbprint */
  readonly kid: string
  /** The public key, 32 bytes in base64url */
  readonly x: string
}

export interface EventCheckpoint {
  readonly entityId: string
  /** Number of events of the entity up to this checkpoint */
  readonly count: number
  /** State of the entity's hash chain at this checkpoint, in hex. The chain starts with 32 zero bytes. For each event, in the order of recording, its next state is the SHA-256 of the previous state followed by the SHA-256 of the event's payload, byte for byte as delivered. */
  readonly hash: string
  /** Time of the checkpoint */
  readonly at: string
  /** Cursor of the event feed at this checkpoint; null if it is older than the log */
  readonly resumeCursor: string | null
  /** Compact JWS (EdDSA) over { iss, entityId, count, hash, at }; keys: /v1/jwks.json */
  readonly jws: string
}

export type AuditAction =
  | "webhook.created"
  | "webhook.updated"
  | "webhook.deleted"
  | "webhook.secret_rotated"
  | "webhook.pinged"
  | "webhook.disabled"
  | "webhook.held"
  | "webhook.released"
  | "webhook.deliveries_retried"
  | "webhook.deliveries_canceled"
  | "recovery.created"
  | "recovery.paused"
  | "recovery.resumed"
  | "recovery.canceled"
  | "delivery.redelivered"
  | "delivery.retried"
  | "delivery.canceled"
  | "user.created"
  | "user.updated"
  | "api_key.created"
  | "api_key.updated"
  | "api_key.revoked"
  | "account.invited"
  | "account.invitation_accepted"
  | "account.signed_in"
  | "account.sign_in_failed"
  | "account.second_factor_added"
  | "account.second_factor_failed"
  | "account.backup_code_used"
  | "account.locked"
  | "account.password_changed"
  | "account.password_reset_requested"
  | "account.password_reset"
  | "account.backup_codes_renewed"
  | "account.passkey_added"
  | "account.passkey_removed"
  | "account.sessions_ended"
  | "master_key.reencrypted"
  | "organization.exported"
  | "organization.deleting"
  | "organization.deleted"

export interface AuditEntry {
  /** Opaque, prefixed aud_ */
  readonly id: string
  /** When the action took place */
  readonly at: string
  readonly actor: AuditActor
  /** What was done: webhook.created, webhook.updated, webhook.deleted, webhook.secret_rotated, webhook.pinged, webhook.disabled, webhook.held, webhook.released, webhook.deliveries_retried, webhook.deliveries_canceled, recovery.created, recovery.paused, recovery.resumed, recovery.canceled, delivery.redelivered, delivery.retried, delivery.canceled, user.created, user.updated, api_key.created, api_key.updated, api_key.revoked, account.invited, account.invitation_accepted, account.signed_in, account.sign_in_failed, account.second_factor_added, account.second_factor_failed, account.backup_code_used, account.locked, account.password_changed, account.password_reset_requested, account.password_reset, account.backup_codes_renewed, account.passkey_added, account.passkey_removed, account.sessions_ended, master_key.reencrypted, organization.exported, organization.deleting, organization.deleted. Values may be added. */
  readonly action: string
  readonly target: AuditTarget
  /** Address of the client; null without a request */
  readonly clientAddress: string | null
  /** The request's id, as in X-Request-Id */
  readonly requestId: string | null
  /** Changed fields with their old and new values. Secrets are never included, and a URL is reduced to its origin */
  readonly changes: Readonly<
    Record<
      string,
      {
        /** Value before; null where there was none */
        readonly old: unknown
        /** Value after */
        readonly new: unknown
      }
    >
  >
}

export interface AuditActor {
  /** key: an API key; session: a person in the portal; operator: a command of the service; platform: the custody platform by its records; service: the service itself */
  readonly type: "key" | "session" | "operator" | "platform" | "service"
  /** The API key or the portal session; null for operator, platform and service */
  readonly id: string | null
  /** The user of the API key or session; null without one */
  readonly userId: string | null
}

export interface AuditTarget {
  /** webhook, recovery, delivery, api_key, user, account or organization */
  readonly type: string
  /** Id of the target; for an account, the id of its user */
  readonly id: string
}

/** Why it is disabled; null if it is not disabled */
export type DisabledReason = "MANUAL" | "FAILING" | "GONE"
