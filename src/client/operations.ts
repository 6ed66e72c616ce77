// Made from the contract by `bun run golden`; not to be edited.

import type { Asset, Balance, DepositAddress, Direction, Network, Transaction, TransactionStatus, Vault } from "./custody.ts"
import type { OnceOptions, Pages, RequestOptions } from "./request.ts"
import type {
  CreatedWebhook,
  CreateWebhook,
  Delivery,
  DeliveryStatus,
  EventDeliveries,
  EventKind,
  PingResult,
  RotatedSecret,
  UpdateWebhook,
  Webhook,
  WebhookEvent,
  WebhookEventDetail,
  WebhookStatus,
  WebhookWithHealth
} from "./webhooks.ts"

/** Filters of {@link Operations.listVaults}. */
export interface ListVaultsQuery {
  /** Rows of the page, 100 when absent */
  readonly limit?: number | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listBalances}. */
export interface ListBalancesQuery {
  /** Rows of the page, 100 when absent */
  readonly limit?: number | undefined
  /** Only this network */
  readonly network?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listTransactions}. */
export interface ListTransactionsQuery {
  /** Rows of the page, 100 when absent */
  readonly limit?: number | undefined
  /** Only this status */
  readonly status?: TransactionStatus | undefined
  /** Only this direction */
  readonly direction?: Direction | undefined
  /** Only this asset; an EVM contract in either letter case */
  readonly asset?: string | undefined
  /** Only this network */
  readonly network?: string | undefined
  /** Only this transaction hash */
  readonly hash?: string | undefined
  /** Only with a timestamp at or after this */
  readonly occurredAfter?: string | undefined
  /** Only with a timestamp at or before this */
  readonly occurredBefore?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listAddresses}. */
export interface ListAddressesQuery {
  /** Rows of the page, 100 when absent */
  readonly limit?: number | undefined
  /** Only this network */
  readonly network?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listAssets}. */
export interface ListAssetsQuery {
  /** Rows of the page, 100 when absent */
  readonly limit?: number | undefined
  /** Only on this network */
  readonly network?: string | undefined
  /** Only with exactly this symbol */
  readonly symbol?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listNetworks}. */
export interface ListNetworksQuery {
  /** Rows of the page, 100 when absent */
  readonly limit?: number | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listWebhooks}. */
export interface ListWebhooksQuery {
  /** Rows of the page, 100 when absent */
  readonly limit?: number | undefined
  /** Only webhooks that cover this entity */
  readonly entityId?: string | undefined
  /** Only this status */
  readonly status?: WebhookStatus | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listEvents}. */
export interface ListEventsQuery {
  /** Rows of the page, 100 when absent */
  readonly limit?: number | undefined
  /** Only this kind */
  readonly kind?: EventKind | undefined
  /** Only vault-scoped events that touch this vault */
  readonly vaultId?: string | undefined
  /** Only at or after this */
  readonly occurredAfter?: string | undefined
  /** Only at or before this */
  readonly occurredBefore?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listWebhookDeliveries}. */
export interface ListWebhookDeliveriesQuery {
  /** Rows of the page, 100 when absent */
  readonly limit?: number | undefined
  /** Only these statuses; may be given several times */
  readonly status?: ReadonlyArray<DeliveryStatus> | undefined
  /** Only of events of this kind */
  readonly kind?: EventKind | undefined
  /** Only of this event */
  readonly eventId?: string | undefined
  /** Only created at or after this */
  readonly createdAfter?: string | undefined
  /** Only created at or before this */
  readonly createdBefore?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Every operation of the API. */
export interface Operations {
  /** List vaults. The vaults that the key can access, newest first. `GET /v1/vaults` */
  listVaults(query?: ListVaultsQuery, options?: RequestOptions): Pages<Vault>
  /** Get a vault. One vault. `GET /v1/vaults/{vaultId}` */
  getVault(vaultId: string, options?: RequestOptions): Promise<Vault>
  /** List balances. Settled balances across the networks the vault operates on, by network, the native asset first, then by symbol. `GET /v1/vaults/{vaultId}/balances` */
  listBalances(vaultId: string, query?: ListBalancesQuery, options?: RequestOptions): Pages<Balance>
  /** List transactions. Transfers into and out of the vault, most recent first. Filters combine with AND. `GET /v1/vaults/{vaultId}/transactions` */
  listTransactions(vaultId: string, query?: ListTransactionsQuery, options?: RequestOptions): Pages<Transaction>
  /** List deposit addresses. Addresses that the vault receives at, newest first. `GET /v1/vaults/{vaultId}/addresses` */
  listAddresses(vaultId: string, query?: ListAddressesQuery, options?: RequestOptions): Pages<DepositAddress>
  /** List assets. Supported assets on the networks available to the organization, by id. `GET /v1/assets` */
  listAssets(query?: ListAssetsQuery, options?: RequestOptions): Pages<Asset>
  /** List networks. Networks available to the organization, by name. `GET /v1/networks` */
  listNetworks(query?: ListNetworksQuery, options?: RequestOptions): Pages<Network>
  /** Create a webhook. Answers with the signing secret, this once. Takes `Idempotency-Key`. An entity is covered by at most 20 active webhooks. `POST /v1/webhooks` */
  createWebhook(body: CreateWebhook, options?: OnceOptions): Promise<CreatedWebhook>
  /** List webhooks. Webhooks across the accessible entities, newest first. `GET /v1/webhooks` */
  listWebhooks(query?: ListWebhooksQuery, options?: RequestOptions): Pages<Webhook>
  /** Get a webhook. One webhook with its health counters. `GET /v1/webhooks/{webhookId}` */
  getWebhook(webhookId: string, options?: RequestOptions): Promise<WebhookWithHealth>
  /** Update a webhook. A merge patch (RFC 7396) of the URL, event kinds, vault filter, status or description; other fields are refused. Disabling cancels what waits; enabling begins a new streak. `PATCH /v1/webhooks/{webhookId}` */
  updateWebhook(webhookId: string, body: UpdateWebhook, options?: RequestOptions): Promise<Webhook>
  /** Delete a webhook. Its deliveries stay readable through their events; what waits is canceled. `DELETE /v1/webhooks/{webhookId}` */
  deleteWebhook(webhookId: string, options?: RequestOptions): Promise<void>
  /** Rotate the signing secret. Answers with the new secret, this once. The one before signs along for 24 hours; at most three are live. Takes `Idempotency-Key`. `POST /v1/webhooks/{webhookId}/rotate-secret` */
  rotateSecret(webhookId: string, options?: OnceOptions): Promise<RotatedSecret>
  /** List webhook events. The event log of the last 31 days, most recent first, whether or not a webhook matched. `GET /v1/webhook-events` */
  listEvents(query?: ListEventsQuery, options?: RequestOptions): Pages<WebhookEvent>
  /** Get a webhook event. One event, with how many webhooks matched and what became of its deliveries. `GET /v1/webhook-events/{eventId}` */
  getEvent(eventId: string, options?: RequestOptions): Promise<WebhookEventDetail>
  /** List a webhook's deliveries. Delivery history with each attempt, newest first. `GET /v1/webhooks/{webhookId}/deliveries` */
  listWebhookDeliveries(webhookId: string, query?: ListWebhookDeliveriesQuery, options?: RequestOptions): Pages<Delivery>
  /** List an event's deliveries. In full, without pages. Empty for a dispatched event: no webhook matched it (compare `matchedCount`). `GET /v1/webhook-events/{eventId}/deliveries` */
  listEventDeliveries(eventId: string, options?: RequestOptions): Promise<EventDeliveries>
  /** Redeliver. A new delivery of the same event, with the webhook's URL and secrets of today. Takes `Idempotency-Key`. `POST /v1/webhook-deliveries/{deliveryId}/redeliver` */
  redeliver(deliveryId: string, options?: OnceOptions): Promise<Delivery>
  /** Ping a webhook. Sends a signed test POST now and answers with its live result, 200 also when the endpoint failed. At most 6 a minute. `POST /v1/webhooks/{webhookId}/ping` */
  pingWebhook(webhookId: string, options?: RequestOptions): Promise<PingResult>
}

/** Codes that every operation can fail with. */
export type CommonErrorCode =
  | "invalid_parameter"
  | "unknown_parameter"
  | "missing_credentials"
  | "invalid_api_key"
  | "expired_api_key"
  | "revoked_api_key"
  | "ip_not_allowed"
  | "not_acceptable"
  | "uri_too_long"
  | "rate_limited"
  | "too_many_failed_auth"
  | "internal_error"
  | "service_unavailable"

/** The codes that each operation can fail with. */
export interface OperationErrors {
  readonly listVaults: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
  readonly getVault: CommonErrorCode | "not_found"
  readonly listBalances: CommonErrorCode | "invalid_cursor" | "not_found"
  readonly listTransactions: CommonErrorCode | "invalid_cursor" | "not_found"
  readonly listAddresses: CommonErrorCode | "invalid_cursor" | "not_found"
  readonly listAssets: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
  readonly listNetworks: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
  readonly createWebhook:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "owner_required"
    | "webhook_limit_reached"
    | "idempotency_in_progress"
    | "payload_too_large"
    | "unsupported_media_type"
    | "url_not_deliverable"
    | "idempotency_key_reused"
  readonly listWebhooks: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
  readonly getWebhook: CommonErrorCode | "not_found"
  readonly updateWebhook:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "webhook_limit_reached"
    | "payload_too_large"
    | "unsupported_media_type"
    | "url_not_deliverable"
  readonly deleteWebhook: CommonErrorCode | "insufficient_scope" | "owner_required" | "not_found"
  readonly rotateSecret:
    | CommonErrorCode
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "rotation_limit_reached"
    | "idempotency_in_progress"
    | "idempotency_key_reused"
  readonly listEvents: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
  readonly getEvent: CommonErrorCode | "not_found"
  readonly listWebhookDeliveries: CommonErrorCode | "invalid_cursor" | "not_found"
  readonly listEventDeliveries: CommonErrorCode | "not_found"
  readonly redeliver:
    | CommonErrorCode
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "webhook_disabled"
    | "idempotency_in_progress"
    | "idempotency_key_reused"
  readonly pingWebhook: CommonErrorCode | "insufficient_scope" | "owner_required" | "not_found"
}

/** Every code that the API fails with. */
export type ErrorCode = OperationErrors[keyof OperationErrors]

/** How an operation goes over the wire. */
export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE"
  readonly path: string
  /** Whether it answers a page of a list, and takes a query. */
  readonly pages: boolean
  /** Whether an argument is its body. */
  readonly body: boolean
  /** Whether it takes an `Idempotency-Key`. */
  readonly once: boolean
}

/** Every operation's route. */
export const routes: { readonly [Name in keyof Operations]: Route } = {
  listVaults: { method: "GET", path: "/v1/vaults", pages: true, body: false, once: false },
  getVault: { method: "GET", path: "/v1/vaults/{vaultId}", pages: false, body: false, once: false },
  listBalances: { method: "GET", path: "/v1/vaults/{vaultId}/balances", pages: true, body: false, once: false },
  listTransactions: { method: "GET", path: "/v1/vaults/{vaultId}/transactions", pages: true, body: false, once: false },
  listAddresses: { method: "GET", path: "/v1/vaults/{vaultId}/addresses", pages: true, body: false, once: false },
  listAssets: { method: "GET", path: "/v1/assets", pages: true, body: false, once: false },
  listNetworks: { method: "GET", path: "/v1/networks", pages: true, body: false, once: false },
  createWebhook: { method: "POST", path: "/v1/webhooks", pages: false, body: true, once: true },
  listWebhooks: { method: "GET", path: "/v1/webhooks", pages: true, body: false, once: false },
  getWebhook: { method: "GET", path: "/v1/webhooks/{webhookId}", pages: false, body: false, once: false },
  updateWebhook: { method: "PATCH", path: "/v1/webhooks/{webhookId}", pages: false, body: true, once: false },
  deleteWebhook: { method: "DELETE", path: "/v1/webhooks/{webhookId}", pages: false, body: false, once: false },
  rotateSecret: { method: "POST", path: "/v1/webhooks/{webhookId}/rotate-secret", pages: false, body: false, once: true },
  listEvents: { method: "GET", path: "/v1/webhook-events", pages: true, body: false, once: false },
  getEvent: { method: "GET", path: "/v1/webhook-events/{eventId}", pages: false, body: false, once: false },
  listWebhookDeliveries: { method: "GET", path: "/v1/webhooks/{webhookId}/deliveries", pages: true, body: false, once: false },
  listEventDeliveries: { method: "GET", path: "/v1/webhook-events/{eventId}/deliveries", pages: false, body: false, once: false },
  redeliver: { method: "POST", path: "/v1/webhook-deliveries/{deliveryId}/redeliver", pages: false, body: false, once: true },
  pingWebhook: { method: "POST", path: "/v1/webhooks/{webhookId}/ping", pages: false, body: false, once: false }
}
