// Made from the contract by `bun run golden`; not to be edited.

import type { Route } from "../server/PortalApi.ts"

/** The portal's own routes under `/portal/api`: the body that each takes and what it answers. */
export interface PortalRoutes {
  "GET /session": Route<"getSession">
  "POST /sign-in": Route<"signIn">
  "POST /sign-in/passkey/options": Route<"passkeyOptions">
  "POST /sign-in/passkey": Route<"signInWithPasskey">
  "POST /sign-in/provider": Route<"signInAtProvider">
  "GET /auth/callback/oidc": Route<"providerCallback">
  "POST /sign-in/second-factor": Route<"giveSecondFactor">
  "POST /invitation": Route<"getInvitation">
  "POST /invitation/accept": Route<"acceptInvitation">
  "POST /password-reset/request": Route<"requestPasswordReset">
  "POST /password-reset": Route<"getPasswordReset">
  "POST /password-reset/confirm": Route<"resetPassword">
  "POST /enrolment": Route<"beginEnrolment">
  "POST /enrolment/confirm": Route<"confirmEnrolment">
  "POST /sign-out": Route<"signOut">
  "GET /keys": Route<"listKeys">
  "GET /keys-of-others": Route<"listOthersKeys">
  "GET /keys/:id": Route<"getKey">
  "POST /keys": Route<"createKey">
  "PATCH /keys/:id": Route<"updateKey">
  "GET /keys/:id/credential": Route<"getKeyCredential">
  "POST /keys/:id/revoke": Route<"revokeKey">
  "GET /members": Route<"listMembers">
  "POST /members/:id/invite": Route<"inviteMember">
  "POST /members/:id/end-sessions": Route<"endMemberSessions">
  "GET /sessions": Route<"listSessions">
  "DELETE /sessions/:id": Route<"endSession">
  "POST /sessions/end-others": Route<"endOtherSessions">
  "POST /sessions/end-all": Route<"endAllSessions">
  "POST /password": Route<"changePassword">
  "GET /backup-codes": Route<"countBackupCodes">
  "POST /backup-codes": Route<"renewBackupCodes">
  "GET /passkeys": Route<"listPasskeys">
  "POST /passkeys/options": Route<"newPasskeyOptions">
  "POST /passkeys": Route<"addPasskey">
  "DELETE /passkeys/:id": Route<"removePasskey">
  "POST /confirmation/passkey": Route<"confirmationOptions">
  "GET /context": Route<"getContext">
  "GET /event-counts": Route<"getEventCounts">
  "GET /webhook-health": Route<"getWebhookHealth">
  "GET /webhook-traffic": Route<"getWebhookTraffic">
  "GET /event-kinds/:kind": Route<"getEventKind">
  "GET /event-data": Route<"getEventData">
  "GET /audit-names": Route<"getAuditNames">
  "GET /asset-names": Route<"getAssetNames">
  "GET /vaults/:id/statement-days": Route<"getStatementDays">
  "GET /search": Route<"search">
  "GET /webhooks/:id/missed": Route<"countMissed">
  "GET /events/:id/payload": Route<"getPayload">
  "POST /webhooks/:id/retry-waiting": Route<"retryWaiting">
  "POST /webhooks/:id/cancel-waiting": Route<"cancelWaiting">
  "POST /deliveries/:id/retry-now": Route<"retryNow">
  "POST /deliveries/:id/cancel": Route<"cancelDelivery">
  "POST /deliveries/:id/request-preview": Route<"previewRequest">
}
