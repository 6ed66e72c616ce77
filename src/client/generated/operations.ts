// Made from the contract by `bun run golden`; not to be edited.

import type { OnceOptions, Pages, RequestOptions } from "../call.ts"
import type { Route } from "../route.ts"
import type {
  Asset,
  Balance,
  BalanceRecord,
  BalanceSum,
  DepositAddress,
  Direction,
  Entity,
  ExportAmounts,
  ExportFormat,
  Network,
  PortfolioBalance,
  Statement,
  StatementSummary,
  Transaction,
  TransactionDetail,
  TransactionStatus,
  Vault,
  VaultTransaction
} from "./custody.ts"
import type {
  AuditAction,
  AuditEntry,
  CreateRecovery,
  CreateWebhook,
  Credential,
  Delivery,
  DeliveryStatus,
  EventCheckpoint,
  EventDeliveries,
  EventFeedPage,
  EventKind,
  FeedStart,
  PingResult,
  PingWebhook,
  PreviewWebhook,
  Recovery,
  RotatedSecret,
  RotateSecret,
  SigningKeySet,
  UpdateWebhook,
  Webhook,
  WebhookEvent,
  WebhookEventDetail,
  WebhookPreview,
  WebhookSourceAddresses,
  WebhookStatus,
  WebhookWithHealth,
  WebhookWithSecret
} from "./webhooks.ts"

/** Filters of {@link Operations.listVaults}. */
export interface ListVaultsQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listBalances}. */
export interface ListBalancesQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Only this network */
  readonly network?: string | undefined
  /** Balances at this time, which must not be in the future; default: present balances */
  readonly at?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listBalanceHistory}. */
export interface ListBalanceHistoryQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** The asset; an EVM contract in either letter case */
  readonly asset: string
  /** Only records at or after this */
  readonly occurredAfter?: string | undefined
  /** Only records at or before this */
  readonly occurredBefore?: string | undefined
  /** Only records before this; not together with `occurredBefore` */
  readonly occurredUntil?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listTransactions}. */
export interface ListTransactionsQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
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
  /** Only with a timestamp before this; not together with `occurredBefore` */
  readonly occurredUntil?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.exportTransactions}. */
export interface ExportTransactionsQuery {
  /** `csv` (RFC 4180), or `ndjson`: one Transaction per line */
  readonly format: ExportFormat
  /** Amounts in CSV: after an apostrophe, so that spreadsheets keep every digit, or `plain`, for programs. Amounts in NDJSON are plain. */
  readonly amounts?: ExportAmounts | undefined
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
  /** Only with a timestamp before this; not together with `occurredBefore` */
  readonly occurredUntil?: string | undefined
}

/** Filters of {@link Operations.listAddresses}. */
export interface ListAddressesQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Only this network */
  readonly network?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listAllTransactions}. */
export interface ListAllTransactionsQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Only this vault; may be given several times */
  readonly vaultId?: ReadonlyArray<string> | undefined
  /** Only vaults of this entity; may be given several times */
  readonly entityId?: ReadonlyArray<string> | undefined
  /** Only from or to this address; an EVM address in either letter case */
  readonly address?: string | undefined
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
  /** Only with a timestamp before this; not together with `occurredBefore` */
  readonly occurredUntil?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.exportAllTransactions}. */
export interface ExportAllTransactionsQuery {
  /** `csv` (RFC 4180), or `ndjson`: one Transaction per line */
  readonly format: ExportFormat
  /** Amounts in CSV: after an apostrophe, so that spreadsheets keep every digit, or `plain`, for programs. Amounts in NDJSON are plain. */
  readonly amounts?: ExportAmounts | undefined
  /** Only this vault; may be given several times */
  readonly vaultId?: ReadonlyArray<string> | undefined
  /** Only vaults of this entity; may be given several times */
  readonly entityId?: ReadonlyArray<string> | undefined
  /** Only from or to this address; an EVM address in either letter case */
  readonly address?: string | undefined
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
  /** Only with a timestamp before this; not together with `occurredBefore` */
  readonly occurredUntil?: string | undefined
}

/** Filters of {@link Operations.listAllBalances}. */
export interface ListAllBalancesQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Only vaults of this entity; may be given several times */
  readonly entityId?: ReadonlyArray<string> | undefined
  /** Only this asset; an EVM contract in either letter case */
  readonly asset?: string | undefined
  /** Only this network */
  readonly network?: string | undefined
  /** Balances at this time, which must not be in the future; default: present balances */
  readonly at?: string | undefined
  /** `asset`: one line per asset with the exact sum of its balances */
  readonly sumBy?: BalanceSum | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listStatements}. */
export interface ListStatementsQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** First day, as YYYY-MM-DD */
  readonly from?: string | undefined
  /** Last day, as YYYY-MM-DD */
  readonly to?: string | undefined
  /** CSV and summaries leave out lines without movement */
  readonly movedOnly?: boolean | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.getStatement}. */
export interface GetStatementQuery {
  /** An earlier revision; default: the newest */
  readonly revision?: number | undefined
}

/** Filters of {@link Operations.getStatementSummary}. */
export interface GetStatementSummaryQuery {
  /** First day, as YYYY-MM-DD */
  readonly from: string
  /** Last day, as YYYY-MM-DD */
  readonly to: string
  /** CSV and summaries leave out lines without movement */
  readonly movedOnly?: boolean | undefined
}

/** Filters of {@link Operations.listAssets}. */
export interface ListAssetsQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
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
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listEntities}. */
export interface ListEntitiesQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listWebhooks}. */
export interface ListWebhooksQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
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
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Only this kind */
  readonly kind?: EventKind | undefined
  /** Only vault-scoped events that touch this vault */
  readonly vaultId?: string | undefined
  /** Only events of this entity */
  readonly entityId?: string | undefined
  /** Only at or after this */
  readonly occurredAfter?: string | undefined
  /** Only at or before this */
  readonly occurredBefore?: string | undefined
  /** Only before this; not together with `occurredBefore` */
  readonly occurredUntil?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.readEventFeed}. */
export interface ReadEventFeedQuery {
  /** A `resumeCursor`: only events recorded after it; default: the whole log */
  readonly after?: string | undefined
  /** `now`: only events recorded from now on; not together with `after` */
  readonly from?: FeedStart | undefined
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Only events of this kind; may be given several times */
  readonly kind?: ReadonlyArray<EventKind> | undefined
  /** Only vault-scoped events of this vault; may be given several times */
  readonly vaultId?: ReadonlyArray<string> | undefined
  /** Only events of this entity; may be given several times */
  readonly entityId?: ReadonlyArray<string> | undefined
  /** Seconds to wait for an event before the response is sent; default 0 */
  readonly wait?: number | undefined
}

/** Filters of {@link Operations.listWebhookDeliveries}. */
export interface ListWebhookDeliveriesQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Only these statuses; may be given several times */
  readonly status?: ReadonlyArray<DeliveryStatus> | undefined
  /** Only deliveries of events of this kind */
  readonly kind?: EventKind | undefined
  /** Only the delivery with this number */
  readonly sequence?: number | undefined
  /** Only deliveries of this event */
  readonly eventId?: string | undefined
  /** Only created at or after this */
  readonly createdAfter?: string | undefined
  /** Only created at or before this */
  readonly createdBefore?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.listRecoveries}. */
export interface ListRecoveriesQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.getCredential}. */
export interface GetCredentialQuery {
  /** Vault to check: whether the key can see it, and if not, why */
  readonly vaultId?: string | undefined
}

/** Filters of {@link Operations.listEventCheckpoints}. */
export interface ListEventCheckpointsQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** The entity */
  readonly entityId: string
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Filters of {@link Operations.getLatestEventCheckpoint}. */
export interface GetLatestEventCheckpointQuery {
  /** The entity */
  readonly entityId: string
}

/** Filters of {@link Operations.listAuditLog}. */
export interface ListAuditLogQuery {
  /** Page size; 100 by default. A page may be shorter: it has at most about 1 MiB, and only a null `nextCursor` means the end */
  readonly limit?: number | undefined
  /** Only by this API key, session or user */
  readonly actor?: string | undefined
  /** Only this action */
  readonly action?: AuditAction | undefined
  /** Only what was done to this webhook, recovery, delivery, API key, user or organization; with a user's id, also to the account */
  readonly target?: string | undefined
  /** Only at or after this */
  readonly occurredAfter?: string | undefined
  /** Only at or before this */
  readonly occurredBefore?: string | undefined
  /** Where to begin: `nextCursor` of a page with the same filters */
  readonly cursor?: string | undefined
}

/** Every operation of the API. */
export interface Operations {
  /** List vaults. Vaults that the API key can access, newest first. `GET /v1/vaults` */
  listVaults(query?: ListVaultsQuery, options?: RequestOptions): Pages<Vault>
  /** Get a vault. One vault. `GET /v1/vaults/{vaultId}` */
  getVault(vaultId: string, options?: RequestOptions): Promise<Vault>
  /** List balances. Settled balances across the networks the vault operates on, by network, the native asset first, then by symbol. With `at`, balances from the last records at or before that time; assets without one are absent. `GET /v1/vaults/{vaultId}/balances` */
  listBalances(vaultId: string, query?: ListBalancesQuery, options?: RequestOptions): Pages<Balance>
  /** List the history of a balance. Every record of one asset's balance, newest first. Of several records with the same time, the first in the list was recorded last and counts. `GET /v1/vaults/{vaultId}/balance-history` */
  listBalanceHistory(vaultId: string, query: ListBalanceHistoryQuery, options?: RequestOptions): Pages<BalanceRecord>
  /** List transactions. Transfers into and out of the vault, most recent first. Filters are combined with AND. `GET /v1/vaults/{vaultId}/transactions` */
  listTransactions(vaultId: string, query?: ListTransactionsQuery, options?: RequestOptions): Pages<Transaction>
  /** Get a transaction. One transaction of the vault, and every state that it has had. `GET /v1/vaults/{vaultId}/transactions/{transactionId}` */
  getTransaction(vaultId: string, transactionId: string, options?: RequestOptions): Promise<TransactionDetail>
  /** Export transactions. All matching transactions, most recent first, as a stream of one consistent snapshot. In CSV, an apostrophe precedes cells that a spreadsheet would read as a formula, and amounts unless `amounts=plain`. The file is named after the vault and the period. A key can have two exports at a time, an organization three. An export that takes longer than half an hour is cut off. If the connection breaks before the end of the file, the file is incomplete. `GET /v1/vaults/{vaultId}/transactions/export` */
  exportTransactions(vaultId: string, query: ExportTransactionsQuery, options?: RequestOptions): Promise<ReadableStream<Uint8Array>>
  /** List deposit addresses. Deposit addresses of the vault, newest first. `GET /v1/vaults/{vaultId}/addresses` */
  listAddresses(vaultId: string, query?: ListAddressesQuery, options?: RequestOptions): Pages<DepositAddress>
  /** List transactions of all vaults. Transactions of all vaults that the API key can see, most recent first, each with its `vaultId`. Filters are combined with AND; a vault or entity that the key cannot see matches nothing. A page looks at no more than 20,000 transactions, so it may be short or empty although `nextCursor` is not null. `GET /v1/transactions` */
  listAllTransactions(query?: ListAllTransactionsQuery, options?: RequestOptions): Pages<VaultTransaction>
  /** Export transactions of all vaults. All transactions that the list returns with these filters, as one file, with the limits of the export of one vault. `GET /v1/transactions/export` */
  exportAllTransactions(query: ExportAllTransactionsQuery, options?: RequestOptions): Promise<ReadableStream<Uint8Array>>
  /** List balances of all vaults. Balances of all vaults that the API key can see, by network, the native asset first, then by symbol and vault, each with its `vaultId`. With `at`, balances from the last records at or before that time. With `sumBy=asset`, one line per asset: the sum over these vaults, with `vaultCount` instead of `vaultId`. A page looks at a bounded number of balances, so it may be short or empty although `nextCursor` is not null. `GET /v1/balances` */
  listAllBalances(query?: ListAllBalancesQuery, options?: RequestOptions): Pages<PortfolioBalance>
  /** List statements. The newest revision of each sealed day, newest day first. With `Accept: text/csv`, all lines of a period of at most 366 days, oldest day first: a file with the limits of an export, for which `from` and `to` are required. `GET /v1/vaults/{vaultId}/statements` */
  listStatements(vaultId: string, query?: ListStatementsQuery, options?: RequestOptions): Pages<Statement>
  /** Get a statement. The statement of a sealed UTC day: balances at its bounds, movements in between, the previous statement's hash and a signature. With `Accept: text/csv`, its lines as CSV. `GET /v1/vaults/{vaultId}/statements/{date}` */
  getStatement(vaultId: string, date: string, query?: GetStatementQuery, options?: RequestOptions): Promise<Statement>
  /** Sum up statements. One line per asset over a period: the first day's opening, the sums of all days, and the last day's closing, with the hashes of the first and the last day's statements. A period that begins before the vault's first statement begins with it. A day that is not sealed yet is 409 `not_sealed`; so is a period that ends before the first statement, with `firstDate`, its day. With `Accept: text/csv`, the lines as CSV. `GET /v1/vaults/{vaultId}/statement-summary` */
  getStatementSummary(vaultId: string, query: GetStatementSummaryQuery, options?: RequestOptions): Promise<StatementSummary>
  /** List assets. Supported assets on the networks available to the organization, and assets that a visible vault holds or moved, by id. `GET /v1/assets` */
  listAssets(query?: ListAssetsQuery, options?: RequestOptions): Pages<Asset>
  /** List networks. Networks available to the organization, by name. `GET /v1/networks` */
  listNetworks(query?: ListNetworksQuery, options?: RequestOptions): Pages<Network>
  /** List entities. Entities that the API key reaches, by id: all of the organization for an owner, otherwise those of the vaults on which the user has the Developer role. A key with a vault allowlist reaches the entities of its visible vaults. `GET /v1/entities` */
  listEntities(query?: ListEntitiesQuery, options?: RequestOptions): Pages<Entity>
  /** Create a webhook. Returns the signing secret once. Accepts `Idempotency-Key`. An entity can be covered by at most 20 active or paused webhooks, and by 100 with the disabled ones. `POST /v1/webhooks` */
  createWebhook(body: CreateWebhook, options?: OnceOptions): Promise<WebhookWithSecret>
  /** List webhooks. Webhooks across the accessible entities, newest first. `GET /v1/webhooks` */
  listWebhooks(query?: ListWebhooksQuery, options?: RequestOptions): Pages<Webhook>
  /** Preview a webhook. Shows what a webhook with these entities, kinds and vaults would have received in the last 31 days. Changes nothing. Requires the same access as creating the webhook. `POST /v1/webhooks/preview` */
  previewWebhook(body: PreviewWebhook, options?: RequestOptions): Promise<WebhookPreview>
  /** Get a webhook. One webhook with its health counters. `GET /v1/webhooks/{webhookId}` */
  getWebhook(webhookId: string, options?: RequestOptions): Promise<WebhookWithHealth>
  /** Update a webhook. A merge patch (RFC 7396) of the URL, event kinds, vault filter, status or description; other fields are rejected. Changing the URL, kinds or filter, enabling and resuming require the Developer role on every vault that the webhook then covers. Disabling cancels waiting deliveries; enabling resets the failure streak. Pausing holds deliveries; they are sent oldest first when the webhook is ACTIVE again. `PATCH /v1/webhooks/{webhookId}` */
  updateWebhook(webhookId: string, body: UpdateWebhook, options?: RequestOptions): Promise<Webhook>
  /** Delete a webhook. Its deliveries stay readable through their events; waiting deliveries are canceled. `DELETE /v1/webhooks/{webhookId}` */
  deleteWebhook(webhookId: string, options?: RequestOptions): Promise<void>
  /** Rotate the signing secret. Returns the new secret once. The previous secret stays valid for 24 hours; at most three secrets are active. With `"expirePrevious": "now"`, all earlier secrets expire at once, for example after a leak: the next attempt is signed with the new secret only. Accepts `Idempotency-Key`. `POST /v1/webhooks/{webhookId}/rotate-secret` */
  rotateSecret(webhookId: string, body?: RotateSecret, options?: OnceOptions): Promise<RotatedSecret>
  /** Get the addresses that deliveries come from. The address ranges that a firewall in front of an endpoint must admit. Requires no API key. `GET /v1/webhook-source-addresses` */
  getWebhookSourceAddresses(options?: RequestOptions): Promise<WebhookSourceAddresses>
  /** List webhook events. The event log of the last 31 days, most recent first, whether or not a webhook matched. `GET /v1/webhook-events` */
  listEvents(query?: ListEventsQuery, options?: RequestOptions): Pages<WebhookEvent>
  /** Get a webhook event. One event, with the number of webhooks that matched and its deliveries by status. `GET /v1/webhook-events/{eventId}` */
  getEvent(eventId: string, options?: RequestOptions): Promise<WebhookEventDetail>
  /** Read the event feed. The event log in the order of recording. Every event that this key can see and that is recorded after a cursor was issued appears exactly once after it, and nothing is ever recorded before it. A page skips what the key cannot see at that moment. A key can have 20 requests that wait for events. `GET /v1/event-feed` */
  readEventFeed(query?: ReadEventFeedQuery, options?: RequestOptions): Promise<EventFeedPage>
  /** List a webhook's deliveries. Delivery history with every attempt, newest first. `GET /v1/webhooks/{webhookId}/deliveries` */
  listWebhookDeliveries(webhookId: string, query?: ListWebhookDeliveriesQuery, options?: RequestOptions): Pages<Delivery>
  /** List an event's deliveries. All deliveries, without pagination. An empty list for a dispatched event means that no webhook matched it (compare `matchedCount`). `GET /v1/webhook-events/{eventId}/deliveries` */
  listEventDeliveries(eventId: string, options?: RequestOptions): Promise<EventDeliveries>
  /** Redeliver. Creates a new delivery of the same event, to the webhook's current URL and signed with its current secrets. An event with 200 deliveries is not redelivered. Accepts `Idempotency-Key`. `POST /v1/webhook-deliveries/{deliveryId}/redeliver` */
  redeliver(deliveryId: string, options?: OnceOptions): Promise<Delivery>
  /** Ping a webhook. Sends a signed test POST and returns the result; 200 even if the endpoint failed. With `eventKind`, it is a complete sample event of that kind, marked by the header `X-Service-Test` and by `data.test`: its ids name nothing, and amounts are 0. At most 6 per minute, and 20 of an organization in progress at a time; beyond that 429. `POST /v1/webhooks/{webhookId}/ping` */
  pingWebhook(webhookId: string, body?: PingWebhook, options?: RequestOptions): Promise<PingResult>
  /** Recover missed events. Sends every event recorded between `since` and `until` that was never DELIVERED to the webhook, by the webhook's current settings, except events with 200 deliveries, 20 of them to the webhook. New events are sent first. Requires the Developer role on every vault that the webhook covers. A webhook can have one unfinished recovery. Accepts `Idempotency-Key`. `POST /v1/webhooks/{webhookId}/recoveries` */
  createRecovery(webhookId: string, body: CreateRecovery, options?: OnceOptions): Promise<Recovery>
  /** List a webhook's recoveries. Recoveries of the webhook, newest first. Ended recoveries are kept for 31 days. `GET /v1/webhooks/{webhookId}/recoveries` */
  listRecoveries(webhookId: string, query?: ListRecoveriesQuery, options?: RequestOptions): Pages<Recovery>
  /** Get a recovery. One recovery with its progress. `GET /v1/webhook-recoveries/{recoveryId}` */
  getRecovery(recoveryId: string, options?: RequestOptions): Promise<Recovery>
  /** Pause a recovery. Until it is resumed, no further deliveries are created, and those that wait are not sent, whatever is asked of them. `POST /v1/webhook-recoveries/{recoveryId}/pause` */
  pauseRecovery(recoveryId: string, options?: RequestOptions): Promise<Recovery>
  /** Resume a recovery. Continues where it was paused. Requires the Developer role on every vault that the webhook covers. `POST /v1/webhook-recoveries/{recoveryId}/resume` */
  resumeRecovery(recoveryId: string, options?: RequestOptions): Promise<Recovery>
  /** Cancel a recovery. Ends the recovery and cancels its waiting deliveries. `POST /v1/webhook-recoveries/{recoveryId}/cancel` */
  cancelRecovery(recoveryId: string, options?: RequestOptions): Promise<Recovery>
  /** Get the credential. The API key of the request, its user, what they can see, and why a vault is not visible. Works with any valid key, without a scope. `GET /v1/credential` */
  getCredential(query?: GetCredentialQuery, options?: RequestOptions): Promise<Credential>
  /** Get the public signing keys. The JSON Web Key Set that verifies signatures of this service, current key first; replaced keys remain. Requires no API key. `GET /v1/jwks.json` */
  getSigningKeys(options?: RequestOptions): Promise<SigningKeySet>
  /** List an entity's checkpoints. One checkpoint per midnight (UTC), newest first, kept permanently. Requires a key without a vault allowlist whose user can see every vault that the entity has or lately had. `GET /v1/event-checkpoints` */
  listEventCheckpoints(query: ListEventCheckpointsQuery, options?: RequestOptions): Pages<EventCheckpoint>
  /** Get an entity's current checkpoint. The state of the chain now. `GET /v1/event-checkpoints/latest` */
  getLatestEventCheckpoint(query: GetLatestEventCheckpointQuery, options?: RequestOptions): Promise<EventCheckpoint>
  /** List the audit log. Who did what to webhooks, deliveries, API keys and portal accounts of the organization in the last 400 days, most recent first. Requires an owner-level key without a vault allowlist. `GET /v1/audit-log` */
  listAuditLog(query?: ListAuditLogQuery, options?: RequestOptions): Pages<AuditEntry>
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
  readonly listBalanceHistory: CommonErrorCode | "invalid_cursor" | "not_found"
  readonly listTransactions: CommonErrorCode | "invalid_cursor" | "not_found"
  readonly getTransaction: CommonErrorCode | "not_found"
  readonly exportTransactions: CommonErrorCode | "not_found" | "too_many_rows" | "too_many_exports"
  readonly listAddresses: CommonErrorCode | "invalid_cursor" | "not_found"
  readonly listAllTransactions: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
  readonly exportAllTransactions: CommonErrorCode | "insufficient_scope" | "too_many_rows" | "too_many_exports"
  readonly listAllBalances: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
  readonly listStatements: CommonErrorCode | "invalid_cursor" | "not_found" | "too_many_exports"
  readonly getStatement: CommonErrorCode | "not_found"
  readonly getStatementSummary: CommonErrorCode | "not_found" | "not_sealed"
  readonly listAssets: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
  readonly listNetworks: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
  readonly listEntities: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
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
  readonly previewWebhook:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "payload_too_large"
    | "unsupported_media_type"
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
  readonly deleteWebhook:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "payload_too_large"
    | "unsupported_media_type"
  readonly rotateSecret:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "rotation_limit_reached"
    | "idempotency_in_progress"
    | "payload_too_large"
    | "unsupported_media_type"
    | "idempotency_key_reused"
  readonly getWebhookSourceAddresses: CommonErrorCode
  readonly listEvents: CommonErrorCode | "invalid_cursor" | "insufficient_scope"
  readonly getEvent: CommonErrorCode | "not_found"
  readonly readEventFeed: CommonErrorCode | "invalid_cursor" | "insufficient_scope" | "cursor_expired" | "cursor_gone" | "too_many_streams"
  readonly listWebhookDeliveries: CommonErrorCode | "invalid_cursor" | "not_found"
  readonly listEventDeliveries: CommonErrorCode | "not_found"
  readonly redeliver:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "webhook_disabled"
    | "redelivery_limit_reached"
    | "idempotency_in_progress"
    | "payload_too_large"
    | "unsupported_media_type"
    | "idempotency_key_reused"
  readonly pingWebhook:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "payload_too_large"
    | "unsupported_media_type"
  readonly createRecovery:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "recovery_running"
    | "webhook_disabled"
    | "idempotency_in_progress"
    | "payload_too_large"
    | "unsupported_media_type"
    | "idempotency_key_reused"
  readonly listRecoveries: CommonErrorCode | "invalid_cursor" | "not_found"
  readonly getRecovery: CommonErrorCode | "not_found"
  readonly pauseRecovery:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "recovery_ended"
    | "payload_too_large"
    | "unsupported_media_type"
  readonly resumeRecovery:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "recovery_ended"
    | "payload_too_large"
    | "unsupported_media_type"
  readonly cancelRecovery:
    | CommonErrorCode
    | "malformed_json"
    | "invalid_body"
    | "insufficient_scope"
    | "owner_required"
    | "not_found"
    | "recovery_ended"
    | "payload_too_large"
    | "unsupported_media_type"
  readonly getCredential: CommonErrorCode | "not_found"
  readonly getSigningKeys: CommonErrorCode
  readonly listEventCheckpoints: CommonErrorCode | "invalid_cursor" | "insufficient_scope" | "not_found"
  readonly getLatestEventCheckpoint: CommonErrorCode | "insufficient_scope" | "not_found"
  readonly listAuditLog: CommonErrorCode | "invalid_cursor" | "insufficient_scope" | "owner_required"
}

/** Every code that the API fails with. */
export type ErrorCode = OperationErrors[keyof OperationErrors]

/** Every operation's route. */
export const routes: { readonly [Name in keyof Operations]: Route } = {
  listVaults: { method: "GET", path: "/v1/vaults", pages: true, query: true, file: false, body: false, once: false },
  getVault: { method: "GET", path: "/v1/vaults/{vaultId}", pages: false, query: false, file: false, body: false, once: false },
  listBalances: { method: "GET", path: "/v1/vaults/{vaultId}/balances", pages: true, query: true, file: false, body: false, once: false },
  listBalanceHistory: {
    method: "GET",
    path: "/v1/vaults/{vaultId}/balance-history",
    pages: true,
    query: true,
    file: false,
    body: false,
    once: false
  },
  listTransactions: {
    method: "GET",
    path: "/v1/vaults/{vaultId}/transactions",
    pages: true,
    query: true,
    file: false,
    body: false,
    once: false
  },
  getTransaction: {
    method: "GET",
    path: "/v1/vaults/{vaultId}/transactions/{transactionId}",
    pages: false,
    query: false,
    file: false,
    body: false,
    once: false
  },
  exportTransactions: {
    method: "GET",
    path: "/v1/vaults/{vaultId}/transactions/export",
    pages: false,
    query: true,
    file: true,
    body: false,
    once: false
  },
  listAddresses: { method: "GET", path: "/v1/vaults/{vaultId}/addresses", pages: true, query: true, file: false, body: false, once: false },
  listAllTransactions: { method: "GET", path: "/v1/transactions", pages: true, query: true, file: false, body: false, once: false },
  exportAllTransactions: {
    method: "GET",
    path: "/v1/transactions/export",
    pages: false,
    query: true,
    file: true,
    body: false,
    once: false
  },
  listAllBalances: { method: "GET", path: "/v1/balances", pages: true, query: true, file: false, body: false, once: false },
  listStatements: {
    method: "GET",
    path: "/v1/vaults/{vaultId}/statements",
    pages: true,
    query: true,
    file: false,
    body: false,
    once: false
  },
  getStatement: {
    method: "GET",
    path: "/v1/vaults/{vaultId}/statements/{date}",
    pages: false,
    query: true,
    file: false,
    body: false,
    once: false
  },
  getStatementSummary: {
    method: "GET",
    path: "/v1/vaults/{vaultId}/statement-summary",
    pages: false,
    query: true,
    file: false,
    body: false,
    once: false
  },
  listAssets: { method: "GET", path: "/v1/assets", pages: true, query: true, file: false, body: false, once: false },
  listNetworks: { method: "GET", path: "/v1/networks", pages: true, query: true, file: false, body: false, once: false },
  listEntities: { method: "GET", path: "/v1/entities", pages: true, query: true, file: false, body: false, once: false },
  createWebhook: { method: "POST", path: "/v1/webhooks", pages: false, query: false, file: false, body: true, once: true },
  listWebhooks: { method: "GET", path: "/v1/webhooks", pages: true, query: true, file: false, body: false, once: false },
  previewWebhook: { method: "POST", path: "/v1/webhooks/preview", pages: false, query: false, file: false, body: true, once: false },
  getWebhook: { method: "GET", path: "/v1/webhooks/{webhookId}", pages: false, query: false, file: false, body: false, once: false },
  updateWebhook: { method: "PATCH", path: "/v1/webhooks/{webhookId}", pages: false, query: false, file: false, body: true, once: false },
  deleteWebhook: {
    method: "DELETE",
    path: "/v1/webhooks/{webhookId}",
    pages: false,
    query: false,
    file: false,
    empty: true,
    body: false,
    once: false
  },
  rotateSecret: {
    method: "POST",
    path: "/v1/webhooks/{webhookId}/rotate-secret",
    pages: false,
    query: false,
    file: false,
    body: true,
    once: true
  },
  getWebhookSourceAddresses: {
    method: "GET",
    path: "/v1/webhook-source-addresses",
    pages: false,
    query: false,
    file: false,
    body: false,
    once: false
  },
  listEvents: { method: "GET", path: "/v1/webhook-events", pages: true, query: true, file: false, body: false, once: false },
  getEvent: { method: "GET", path: "/v1/webhook-events/{eventId}", pages: false, query: false, file: false, body: false, once: false },
  readEventFeed: { method: "GET", path: "/v1/event-feed", pages: false, query: true, file: false, body: false, once: false },
  listWebhookDeliveries: {
    method: "GET",
    path: "/v1/webhooks/{webhookId}/deliveries",
    pages: true,
    query: true,
    file: false,
    body: false,
    once: false
  },
  listEventDeliveries: {
    method: "GET",
    path: "/v1/webhook-events/{eventId}/deliveries",
    pages: false,
    query: false,
    file: false,
    body: false,
    once: false
  },
  redeliver: {
    method: "POST",
    path: "/v1/webhook-deliveries/{deliveryId}/redeliver",
    pages: false,
    query: false,
    file: false,
    body: false,
    once: true
  },
  pingWebhook: { method: "POST", path: "/v1/webhooks/{webhookId}/ping", pages: false, query: false, file: false, body: true, once: false },
  createRecovery: {
    method: "POST",
    path: "/v1/webhooks/{webhookId}/recoveries",
    pages: false,
    query: false,
    file: false,
    body: true,
    once: true
  },
  listRecoveries: {
    method: "GET",
    path: "/v1/webhooks/{webhookId}/recoveries",
    pages: true,
    query: true,
    file: false,
    body: false,
    once: false
  },
  getRecovery: {
    method: "GET",
    path: "/v1/webhook-recoveries/{recoveryId}",
    pages: false,
    query: false,
    file: false,
    body: false,
    once: false
  },
  pauseRecovery: {
    method: "POST",
    path: "/v1/webhook-recoveries/{recoveryId}/pause",
    pages: false,
    query: false,
    file: false,
    body: false,
    once: false
  },
  resumeRecovery: {
    method: "POST",
    path: "/v1/webhook-recoveries/{recoveryId}/resume",
    pages: false,
    query: false,
    file: false,
    body: false,
    once: false
  },
  cancelRecovery: {
    method: "POST",
    path: "/v1/webhook-recoveries/{recoveryId}/cancel",
    pages: false,
    query: false,
    file: false,
    body: false,
    once: false
  },
  getCredential: { method: "GET", path: "/v1/credential", pages: false, query: true, file: false, body: false, once: false },
  getSigningKeys: { method: "GET", path: "/v1/jwks.json", pages: false, query: false, file: false, body: false, once: false },
  listEventCheckpoints: { method: "GET", path: "/v1/event-checkpoints", pages: true, query: true, file: false, body: false, once: false },
  getLatestEventCheckpoint: {
    method: "GET",
    path: "/v1/event-checkpoints/latest",
    pages: false,
    query: true,
    file: false,
    body: false,
    once: false
  },
  listAuditLog: { method: "GET", path: "/v1/audit-log", pages: true, query: true, file: false, body: false, once: false }
}
