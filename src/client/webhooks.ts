// Made from the contract by `bun run golden`; not to be edited.

export interface CreateWebhook {
  /** https, a public host name, port 443 or 8443 */
  readonly url: string
  /** Operating units whose events it receives */
  readonly entityIds: ReadonlyArray<string>
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Where operational notices go */
  readonly notificationEmail: string
  /** Vaults whose events it receives; null: all of its entities */
  readonly vaultIds?: ReadonlyArray<string> | null | undefined
  /** For people */
  readonly description?: string | undefined
  readonly status?: WebhookStatus | undefined
}

export type WebhookStatus = "ACTIVE" | "DISABLED"

/** MANUAL: by an update; FAILING: no 2xx for too long; GONE: the endpoint answered 410 twice */
export type DisabledReason = "MANUAL" | "FAILING" | "GONE"

/** Event kind. More may come. */
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

export interface Webhook {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Where events are sent */
  readonly url: string
  /** For people */
  readonly description: string
  readonly status: WebhookStatus
  /** Why it is disabled; null while it is active */
  readonly disabledReason: DisabledReason | null
  /** Since when it is disabled */
  readonly disabledAt: string | null
  /** Operating units whose events it receives */
  readonly entityIds: ReadonlyArray<string>
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Vaults whose events it receives; null: all of its entities. Events without a vault pass any filter. */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Where operational notices go */
  readonly notificationEmail: string
  /** Until when a rotated secret still signs along; null when only one is live */
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
  readonly status: WebhookStatus
  /** Why it is disabled; null while it is active */
  readonly disabledReason: DisabledReason | null
  /** Since when it is disabled */
  readonly disabledAt: string | null
  /** Operating units whose events it receives */
  readonly entityIds: ReadonlyArray<string>
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Vaults whose events it receives; null: all of its entities. Events without a vault pass any filter. */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Where operational notices go */
  readonly notificationEmail: string
  /** Until when a rotated secret still signs along; null when only one is live */
  readonly previousSecretExpiresAt: string | null
  readonly createdAt: string
  readonly updatedAt: string
  readonly health: WebhookHealth
}

export interface WebhookHealth {
  /** HEALTHY: no attempt failed since the last 2xx or since it was enabled; DEGRADED: attempts fail; FAILING: at least 10 in a row, for an hour or more */
  readonly state: "HEALTHY" | "DEGRADED" | "FAILING"
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
  /** Deliveries that wait for an attempt, counted up to 100000 */
  readonly pendingDeliveries: number
  /** Deliveries delivered in the last 24 hours */
  readonly delivered24h: number
  /** Deliveries that used up their schedule in the last 24 hours */
  readonly failed24h: number
}

export interface UpdateWebhook {
  /** https, a public host name, port 443 or 8443 */
  readonly url?: string | undefined
  /** Kinds of event that it receives */
  readonly eventKinds?: ReadonlyArray<EventKind> | undefined
  /** Vaults whose events it receives; null: all of its entities */
  readonly vaultIds?: ReadonlyArray<string> | null | undefined
  readonly status?: WebhookStatus | undefined
  readonly description?: string | null | undefined
}

export interface RotatedSecret {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Signing secret, shown this once */
  readonly secret: string
  readonly previousSecretExpiresAt: string
}

export interface WebhookEvent {
  /** Opaque, prefixed evt_ */
  readonly id: string
  /** Operating unit that it belongs to */
  readonly entityId: string
  /** Vaults involved; null when it is not scoped to a vault */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Event kind */
  readonly kind: string
  /** Version of the kind's schema */
  readonly schemaVersion: number
  /** The exact envelope that matching webhooks receive */
  readonly payload: Readonly<Record<string, unknown>>
  readonly occurredAt: string
  /** When deliveries were fanned out; null while that is pending */
  readonly dispatchedAt: string | null
  readonly createdAt: string
}

export interface WebhookEventDetail {
  /** Opaque, prefixed evt_ */
  readonly id: string
  /** Operating unit that it belongs to */
  readonly entityId: string
  /** Vaults involved; null when it is not scoped to a vault */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Event kind */
  readonly kind: string
  /** Version of the kind's schema */
  readonly schemaVersion: number
  /** The exact envelope that matching webhooks receive */
  readonly payload: Readonly<Record<string, unknown>>
  readonly occurredAt: string
  /** When deliveries were fanned out; null while that is pending */
  readonly dispatchedAt: string | null
  readonly createdAt: string
  /** Active webhooks that matched at dispatch; 0 before */
  readonly matchedCount: number
  /** Its deliveries that this key sees, by status, redeliveries included */
  readonly deliveryCounts: {
    readonly PENDING: number
    readonly RETRYING: number
    readonly DELIVERED: number
    readonly FAILED: number
    readonly CANCELED: number
  }
}

/** PENDING: no attempt yet; RETRYING: attempts failed, more follow; DELIVERED: a 2xx; FAILED: the schedule is used up; CANCELED: ended while waiting */
export type DeliveryStatus = "PENDING" | "RETRYING" | "DELIVERED" | "FAILED" | "CANCELED"

export interface Delivery {
  /** Opaque, prefixed del_ */
  readonly id: string
  readonly eventId: string
  readonly webhookId: string
  /** Kind of the event */
  readonly kind: string
  /** PENDING: no attempt yet; RETRYING: attempts failed, more follow; DELIVERED: a 2xx; FAILED: the schedule is used up; CANCELED: ended while waiting */
  readonly status: DeliveryStatus
  /** Attempts so far, in order */
  readonly attempts: ReadonlyArray<Attempt>
  /** When the next attempt is due; null when there is none */
  readonly nextAttemptAt: string | null
  /** Why it ended without a 2xx; null otherwise */
  readonly failureReason: "EXHAUSTED" | "WEBHOOK_DISABLED" | "WEBHOOK_DELETED" | "MANUAL" | null
  /** The delivery that this one sends again, otherwise null */
  readonly replayedFromDeliveryId: string | null
  readonly deliveredAt: string | null
  readonly createdAt: string
}

export interface Attempt {
  readonly at: string
  /** 2xx is a success, all else is tried again. interrupted: its sender was killed before it could record the outcome. More may come. */
  readonly result: AttemptResult
  /** Status of the answer, 0 without one */
  readonly httpStatus: number
  /** Milliseconds until the answer's headers, or until it failed */
  readonly latencyMs: number
  /** Beginning of the answer's body, at most 1024 bytes */
  readonly bodySnippet: string | null
}

/** 2xx is a success, all else is tried again. interrupted: its sender was killed before it could record the outcome. More may come. */
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

export interface EventDeliveries {
  readonly data: ReadonlyArray<Delivery>
}

export interface PingResult {
  /** Opaque, prefixed whs_ */
  readonly webhookId: string
  /** Id of the test event; it is not in the log */
  readonly eventId: string
  readonly at: string
  /** Whether the endpoint answered 2xx in time */
  readonly success: boolean
  /** As an attempt's */
  readonly result: string
  /** Status of the answer, 0 without one */
  readonly httpStatus: number
  /** Milliseconds until the answer's headers */
  readonly latencyMs: number
  /** Beginning of the answer's body */
  readonly bodySnippet: string | null
}

/** A webhook as its creation answers it: with its signing secret, this once */
export interface CreatedWebhook {
  /** Opaque, prefixed whs_ */
  readonly id: string
  /** Where events are sent */
  readonly url: string
  /** For people */
  readonly description: string
  readonly status: WebhookStatus
  /** Why it is disabled; null while it is active */
  readonly disabledReason: DisabledReason | null
  /** Since when it is disabled */
  readonly disabledAt: string | null
  /** Operating units whose events it receives */
  readonly entityIds: ReadonlyArray<string>
  /** Kinds of event that it receives */
  readonly eventKinds: ReadonlyArray<EventKind>
  /** Vaults whose events it receives; null: all of its entities. Events without a vault pass any filter. */
  readonly vaultIds: ReadonlyArray<string> | null
  /** Where operational notices go */
  readonly notificationEmail: string
  /** Until when a rotated secret still signs along; null when only one is live */
  readonly previousSecretExpiresAt: string | null
  readonly createdAt: string
  readonly updatedAt: string
  /** Signing secret, shown this once */
  readonly secret: string
}
