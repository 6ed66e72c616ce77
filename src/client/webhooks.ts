// Made from the contract by `bun run golden`; not to be edited.

import type { ReceivedEvent } from "./receivedEvent.ts"

export interface CreateWebhook {
  /** https, a public host name, port 443 or 8443 */
  readonly url: string
  /** Operating units whose events it receives */
  readonly entityIds: ReadonlyArray<string>
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Where operational notices go */
  readonly notificationEmail: string
  /** Vaults whose events it receives; null for all vaults of its entities, also those that are created later. You need the Developer role on each vault that it covers now */
  readonly vaultIds?: ReadonlyArray<string> | null | undefined
  /** For people */
  readonly description?: string | undefined
  /** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for 31 days at the most; DISABLED: no deliveries are made */
  readonly status?: WebhookStatus | undefined
}

/** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for 31 days at the most; DISABLED: no deliveries are made */
export type WebhookStatus = "ACTIVE" | "PAUSED" | "DISABLED"

/** MANUAL: by an update; FAILING: no 2xx response for too long; GONE: the endpoint returned 410 twice */
export type DisabledReason = "MANUAL" | "FAILING" | "GONE"

/** Event kind. Values may be added. */
export type EventKind =
  | "transaction.pending"
  | "transaction.confirmed"
  | "transaction.failed"
  | "transaction.replaced"
  | "transaction.dropped"
  | "transaction.reorged"
  | "deposit_address.created"
  | "balance.updated"
  | "vault.created"
  | "vault.updated"
  | "webhook.disabled"
  | "webhook.secret_rotated"

export interface PreviewWebhook {
  /** Operating units whose events it would receive */
  readonly entityIds: ReadonlyArray<string>
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Vaults whose events it receives; null for all vaults of its entities, also those that are created later. You need the Developer role on each vault that it covers now */
  readonly vaultIds?: ReadonlyArray<string> | null | undefined
}

export interface WebhookPreview {
  /** Events of the last 31 days that it would have received, counted up to `countedUpTo` */
  readonly count: number
  /** Where counting stops */
  readonly countedUpTo: number
  /** The events that were counted, by kind; each kind that was asked for is there */
  readonly byKind: Readonly<Record<string, number>>
  /** The newest of them, at most 5 */
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
  readonly occurredAt: string
  /** When deliveries were created; null while dispatch is pending */
  readonly dispatchedAt: string | null
  readonly createdAt: string
}

export interface Webhook {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Where events are sent */
  readonly url: string
  /** For people */
  readonly description: string
  /** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for 31 days at the most; DISABLED: no deliveries are made */
  readonly status: WebhookStatus
  /** Why it is disabled; null while it is active */
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
  /** When the previous secret expires; null if only one secret is active */
  readonly previousSecretExpiresAt: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

export interface WebhookWithHealth {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Where events are sent */
  readonly url: string
  /** For people */
  readonly description: string
  /** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for 31 days at the most; DISABLED: no deliveries are made */
  readonly status: WebhookStatus
  /** Why it is disabled; null while it is active */
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
  /** Deliveries that wait, held ones included, counted up to 100000 */
  readonly pendingDeliveries: number
  /** Deliveries that are HELD, counted up to 100000 */
  readonly heldDeliveries: number
  /** When the endpoint is probed next; null while it is not HOLDING, or paused */
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
  /** Vaults whose events it receives; null for all vaults of its entities, also those that are created later. You need the Developer role on each vault that it covers now */
  readonly vaultIds?: ReadonlyArray<string> | null | undefined
  /** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for 31 days at the most; DISABLED: no deliveries are made */
  readonly status?: WebhookStatus | undefined
  readonly description?: string | null | undefined
}

export interface RotatedSecret {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Signing secret; returned only once */
  readonly secret: string
  readonly previousSecretExpiresAt: string
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
  readonly payload: Readonly<Record<string, unknown>>
  readonly occurredAt: string
  /** When deliveries were created; null while dispatch is pending */
  readonly dispatchedAt: string | null
  readonly createdAt: string
  /** Number of active webhooks that matched at dispatch; 0 before dispatch */
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

export interface EventFeedPage {
  readonly data: ReadonlyArray<WebhookEvent>
  readonly pagination: FeedPagination
  /** Position after the last event examined: pass it as `after` */
  readonly resumeCursor: string
}

export interface FeedPagination {
  /** Rows asked for */
  readonly limit: number
  /** Equal to `resumeCursor` if there are more events, otherwise null */
  readonly nextCursor: string | null
}

/** PENDING: no attempt yet; RETRYING: an attempt failed and another is scheduled; HELD: it waits because its webhook is paused or its endpoint is down; DELIVERED: the endpoint returned 2xx; FAILED: the retry schedule is exhausted; CANCELED: canceled while waiting */
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
  /** PENDING: no attempt yet; RETRYING: an attempt failed and another is scheduled; HELD: it waits because its webhook is paused or its endpoint is down; DELIVERED: the endpoint returned 2xx; FAILED: the retry schedule is exhausted; CANCELED: canceled while waiting */
  readonly status: DeliveryStatus
  /** Attempts so far, oldest first */
  readonly attempts: ReadonlyArray<Attempt>
  /** When the next attempt is due; null when there is none */
  readonly nextAttemptAt: string | null
  /** Why it ended without a 2xx response; null otherwise. EXPIRED: it was held for 31 days */
  readonly failureReason: "EXHAUSTED" | "WEBHOOK_DISABLED" | "WEBHOOK_DELETED" | "MANUAL" | "EXPIRED" | null
  /** The delivery that this one redelivers; null otherwise */
  readonly replayedFromDeliveryId: string | null
  /** The recovery that created it; null otherwise */
  readonly recoveryId: string | null
  readonly deliveredAt: string | null
  readonly createdAt: string
}

export interface Attempt {
  readonly at: string
  /** 2xx is a success; every other result is retried. interrupted: the worker was killed before it recorded the outcome. proxy_error: the service's egress proxy failed. Values may be added. */
  readonly result: AttemptResult
  /** HTTP status of the response; 0 without a response */
  readonly httpStatus: number
  /** Milliseconds until the response headers arrived or the attempt failed */
  readonly latencyMs: number
  /** Beginning of the response body, at most 1024 bytes */
  readonly bodySnippet: string | null
}

/** 2xx is a success; every other result is retried. interrupted: the worker was killed before it recorded the outcome. proxy_error: the service's egress proxy failed. Values may be added. */
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

export interface EventDeliveries {
  readonly data: ReadonlyArray<Delivery>
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
  /** Milliseconds until the response headers arrived */
  readonly latencyMs: number
  /** Beginning of the response body */
  readonly bodySnippet: string | null
}

export interface CreateRecovery {
  /** Events recorded from then on; at most 31 days before `until` */
  readonly since: string
  /** Events recorded up to then; now by default */
  readonly until?: string | undefined
  /** Kinds that the webhook receives; all by default */
  readonly eventKinds?: ReadonlyArray<EventKind> | undefined
  /** Vaults that the webhook covers; all by default */
  readonly vaultIds?: ReadonlyArray<string> | undefined
  readonly include?: ReadonlyArray<RecoveryInclusion> | undefined
  readonly ratePerSecond?: number | undefined
}

/** FAILED, CANCELED: the last delivery of the event ended so; MISSED: there was none */
export type RecoveryInclusion = "FAILED" | "CANCELED" | "MISSED"

/** RUNNING; PAUSED: no more deliveries are created; COMPLETED: all that it created have ended; CANCELED */
export type RecoveryStatus = "RUNNING" | "PAUSED" | "COMPLETED" | "CANCELED"

/** As far as the key sees the events. Where it does not see all that the webhook covers, scanned is the same as created. */
export interface RecoveryProgress {
  /** Events that the webhook would receive and that were looked at so far */
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

export interface Recovery {
  /** Opaque, prefixed rec_ */
  readonly id: string
  readonly webhookId: string
  /** RUNNING; PAUSED: no more deliveries are created; COMPLETED: all that it created have ended; CANCELED */
  readonly status: RecoveryStatus
  readonly since: string
  readonly until: string
  /** Only these kinds; null for all that the webhook receives */
  readonly eventKinds: ReadonlyArray<string> | null
  /** Only these vaults; null for all that the webhook covers */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Which events are sent again */
  readonly include: ReadonlyArray<RecoveryInclusion>
  /** Most deliveries created a second; null: as fast as the endpoint takes them */
  readonly ratePerSecond: number | null
  /** As far as the key sees the events. Where it does not see all that the webhook covers, scanned is the same as created. */
  readonly progress: RecoveryProgress
  readonly createdAt: string
  readonly updatedAt: string
  /** When it was COMPLETED or CANCELED; null before */
  readonly completedAt: string | null
}

export interface Credential {
  readonly key: {
    /** Id of the key */
    readonly id: string
    /** For people */
    readonly label: string
    /** Scopes of the key */
    readonly scopes: ReadonlyArray<string>
    /** Vault allowlist; null allows all that the user's roles reach */
    readonly vaultIds: ReadonlyArray<string> | null
    /** Address ranges that it is allowed from; empty: any */
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
    /** Those of them within the key's vault allowlist */
    readonly allowlist: number
    /** Those that reads return; 0 without `vault:read` */
    readonly visible: number
  }
  /** The vault in `vaultId`; absent without one */
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
  /** Events of the entity so far */
  readonly count: number
  /** Hex of hn = SHA-256(hn-1 ‖ SHA-256(payload bytes)) over its events in the order of recording; h0 is 32 zero bytes */
  readonly hash: string
  readonly at: string
  /** The feed's cursor at that time; null when it is no longer in the log */
  readonly resumeCursor: string | null
  /** Compact JWS (EdDSA) over { iss, entityId, count, hash, at }; keys: /v1/jwks.json */
  readonly jws: string
}

export interface AuditActor {
  /** key: an API key; session: somebody in the portal; operator: a command of the service; service: the service itself */
  readonly type: "key" | "session" | "operator" | "service"
  /** The API key or the portal session; null where there is none */
  readonly id: string | null
  /** The user behind it; null where there is none */
  readonly userId: string | null
}

export interface AuditTarget {
  /** webhook, recovery, delivery, api_key, account or organization */
  readonly type: string
  /** Id of what it was done to; of an account its user's */
  readonly id: string
}

/** A webhook as its creation answers it: with its signing secret, this once */
export interface CreatedWebhook {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Where events are sent */
  readonly url: string
  /** For people */
  readonly description: string
  /** ACTIVE: events are sent; PAUSED: deliveries are HELD until it is ACTIVE again, for 31 days at the most; DISABLED: no deliveries are made */
  readonly status: WebhookStatus
  /** Why it is disabled; null while it is active */
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
  /** When the previous secret expires; null if only one secret is active */
  readonly previousSecretExpiresAt: string | null
  readonly createdAt: string
  readonly updatedAt: string
  /** Signing secret; returned only once */
  readonly secret: string
}
