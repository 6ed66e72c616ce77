// Made from the contract by `bun run golden`; not to be edited.

import type {
  Asset,
  AuditActor,
  AuditTarget,
  Balance,
  BalanceRecord,
  CreatedWebhook,
  CreateRecovery,
  CreateWebhook,
  Credential,
  Delivery,
  DepositAddress,
  EventCheckpoint,
  EventDeliveries,
  EventFeedPage,
  Network,
  Page,
  PingResult,
  PreviewWebhook,
  Recovery,
  RotatedSecret,
  SigningKeySet,
  Statement,
  Transaction,
  UpdateWebhook,
  Vault,
  Webhook,
  WebhookEvent,
  WebhookEventDetail,
  WebhookPreview,
  WebhookWithHealth
} from "../../client/index.ts"

/** The API's routes under `/portal/api`: the body that each takes and what it answers. */
export interface ApiRoutes {
  "GET /v1/vaults": { answer: Page<Vault> }
  "GET /v1/vaults/{vaultId}": { answer: Vault }
  "GET /v1/vaults/{vaultId}/balances": { answer: Page<Balance> }
  "GET /v1/vaults/{vaultId}/balance-history": { answer: Page<BalanceRecord> }
  "GET /v1/vaults/{vaultId}/transactions": { answer: Page<Transaction> }
  "GET /v1/vaults/{vaultId}/addresses": { answer: Page<DepositAddress> }
  "GET /v1/vaults/{vaultId}/statements": { answer: Page<Statement> }
  "GET /v1/vaults/{vaultId}/statements/{date}": { answer: Statement }
  "GET /v1/assets": { answer: Page<Asset> }
  "GET /v1/networks": { answer: Page<Network> }
  "POST /v1/webhooks": { body: CreateWebhook; answer: CreatedWebhook }
  "GET /v1/webhooks": { answer: Page<Webhook> }
  "POST /v1/webhooks/preview": { body: PreviewWebhook; answer: WebhookPreview }
  "GET /v1/webhooks/{webhookId}": { answer: WebhookWithHealth }
  "PATCH /v1/webhooks/{webhookId}": { body: UpdateWebhook; answer: Webhook }
  "DELETE /v1/webhooks/{webhookId}": { answer: undefined }
  "POST /v1/webhooks/{webhookId}/rotate-secret": { answer: RotatedSecret }
  "GET /v1/webhook-events": { answer: Page<WebhookEvent> }
  "GET /v1/webhook-events/{eventId}": { answer: WebhookEventDetail }
  "GET /v1/event-feed": { answer: EventFeedPage }
  "GET /v1/webhooks/{webhookId}/deliveries": { answer: Page<Delivery> }
  "GET /v1/webhook-events/{eventId}/deliveries": { answer: EventDeliveries }
  "POST /v1/webhook-deliveries/{deliveryId}/redeliver": { answer: Delivery }
  "POST /v1/webhooks/{webhookId}/ping": { answer: PingResult }
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
  "GET /v1/audit-log": {
    answer: Page<{
      /** Opaque, prefixed aud_ */
      readonly id: string
      /** When the action took place */
      readonly at: string
      readonly actor: AuditActor
      /** What was done: webhook.created, webhook.updated, webhook.deleted, webhook.secret_rotated, webhook.pinged, webhook.disabled, webhook.held, webhook.released, webhook.deliveries_retried, webhook.deliveries_canceled, recovery.created, recovery.paused, recovery.resumed, recovery.canceled, delivery.redelivered, delivery.retried, delivery.canceled, api_key.created, api_key.updated, api_key.revoked, account.invited, account.invitation_accepted, account.signed_in, account.sign_in_failed, account.second_factor_added, account.second_factor_failed, account.locked, account.password_changed, account.backup_codes_renewed, account.passkey_added, account.passkey_removed, account.sessions_ended, master_key.reencrypted. Values may be added. */
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
            readonly old: string
            readonly new: string
          }
        >
      >
    }>
  }
}
