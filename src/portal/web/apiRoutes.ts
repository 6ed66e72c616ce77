// Made from the contract by `bun run golden`; not to be edited.

import type {
  Asset,
  AuditEntry,
  Balance,
  BalanceRecord,
  CreateRecovery,
  CreateWebhook,
  Credential,
  Delivery,
  DepositAddress,
  Entity,
  EventCheckpoint,
  EventDeliveries,
  EventFeedPage,
  Network,
  Page,
  PingResult,
  PingWebhook,
  PortfolioBalance,
  PreviewWebhook,
  Recovery,
  RotatedSecret,
  RotateSecret,
  SigningKeySet,
  Statement,
  StatementSummary,
  Transaction,
  TransactionDetail,
  UpdateWebhook,
  Vault,
  VaultTransaction,
  Webhook,
  WebhookEvent,
  WebhookEventDetail,
  WebhookPreview,
  WebhookSourceAddresses,
  WebhookWithHealth,
  WebhookWithSecret
} from "../../client/index.ts"

/** The API's routes under `/portal/api`: the body that each takes and what it answers. */
export interface ApiRoutes {
  "GET /v1/vaults": { answer: Page<Vault> }
  "GET /v1/vaults/{vaultId}": { answer: Vault }
  "GET /v1/vaults/{vaultId}/balances": { answer: Page<Balance> }
  "GET /v1/vaults/{vaultId}/balance-history": { answer: Page<BalanceRecord> }
  "GET /v1/vaults/{vaultId}/transactions": { answer: Page<Transaction> }
  "GET /v1/vaults/{vaultId}/transactions/{transactionId}": { answer: TransactionDetail }
  "GET /v1/vaults/{vaultId}/addresses": { answer: Page<DepositAddress> }
  "GET /v1/transactions": { answer: Page<VaultTransaction> }
  "GET /v1/balances": { answer: Page<PortfolioBalance> }
  "GET /v1/vaults/{vaultId}/statements": { answer: Page<Statement> }
  "GET /v1/vaults/{vaultId}/statements/{date}": { answer: Statement }
  "GET /v1/vaults/{vaultId}/statement-summary": { answer: StatementSummary }
  "GET /v1/assets": { answer: Page<Asset> }
  "GET /v1/networks": { answer: Page<Network> }
  "GET /v1/entities": { answer: Page<Entity> }
  "POST /v1/webhooks": { body: CreateWebhook; answer: WebhookWithSecret }
  "GET /v1/webhooks": { answer: Page<Webhook> }
  "POST /v1/webhooks/preview": { body: PreviewWebhook; answer: WebhookPreview }
  "GET /v1/webhooks/{webhookId}": { answer: WebhookWithHealth }
  "PATCH /v1/webhooks/{webhookId}": { body: UpdateWebhook; answer: Webhook }
  "DELETE /v1/webhooks/{webhookId}": { answer: undefined }
  "POST /v1/webhooks/{webhookId}/rotate-secret": { body: RotateSecret | undefined; answer: RotatedSecret }
  "GET /v1/webhook-source-addresses": { answer: WebhookSourceAddresses }
  "GET /v1/webhook-events": { answer: Page<WebhookEvent> }
  "GET /v1/webhook-events/{eventId}": { answer: WebhookEventDetail }
  "GET /v1/event-feed": { answer: EventFeedPage }
  "GET /v1/webhooks/{webhookId}/deliveries": { answer: Page<Delivery> }
  "GET /v1/webhook-events/{eventId}/deliveries": { answer: EventDeliveries }
  "POST /v1/webhook-deliveries/{deliveryId}/redeliver": { answer: Delivery }
  "POST /v1/webhooks/{webhookId}/ping": { body: PingWebhook | undefined; answer: PingResult }
  "POST /v1/webhooks/{webhookId}/recoveries": { body: CreateRecovery; answer: Recovery }
  "GET /v1/webhooks/{webhookId}/recoveries": { answer: Page<Recovery> }
  "GET /v1/webhook-recoveries/{recoveryId}": { answer: Recovery }
  "POST /v1/webhook-recoveries/{recoveryId}/pause": { answer: Recovery }
  "POST /v1/webhook-recoveries/{recoveryId}/resume": { answer: Recovery }
  "POST /v1/webhook-recoveries/{recoveryId}/cancel": { answer: Recovery }
  "GET /v1/credential": { answer: Credential }
  "GET /v1/jwks.json": { answer: SigningKeySet }
  "GET /v1/event-checkpoints": { answer: Page<EventCheckpoint> }
  "GET /v1/event-checkpoints/latest": { answer: EventCheckpoint }
  "GET /v1/audit-log": { answer: Page<AuditEntry> }
}
