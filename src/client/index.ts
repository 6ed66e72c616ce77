/**
 * The client of the custody API for TypeScript and JavaScript: plain promises, no dependencies, no module
 * of a platform. {@link verifySignature} verifies deliveries and returns typed events; {@link verifyEvents} and
 * {@link verifyStatements} prove that nothing is missing.
 *
 * ```ts
 * const custody = createClient({ baseUrl: "https://custody.example.com", apiKey: "cds_…" })
 * for await (const transaction of custody.listTransactions(vaultId, { status: "confirmed" })) …
 * ```
 */
export type { OnceOptions, Pages, RequestOptions } from "./call.ts"
export { applyEvent, type Copier, catchUp, copyVault, type VaultCopy } from "./copy.ts"
export { type CustodyClient, createClient } from "./createClient.ts"
export { CustodyError, isCustodyError, isErrorOf, NoAnswerError, NotVerifiable, type Problem } from "./errors.ts"
export { type FollowedEvent, type FollowOptions, followEvents } from "./follow.ts"
export type * from "./generated/custody.ts"
export type * from "./generated/events.ts"
export type * from "./generated/operations.ts"
export type * from "./generated/webhooks.ts"
export type { ReceivedEvent } from "./receivedEvent.ts"
export type { ClientOptions } from "./request.ts"
export type { Route } from "./route.ts"
export { SignatureError, type SignatureOptions, verifySignature } from "./signature.ts"
export type { KeyOptions, PublishedKeys } from "./signedClaims.ts"
export {
  type ChainVerification,
  type StatementsOptions,
  type StatementsReader,
  type StatementVerification,
  statementHash,
  type VaultVerification,
  verifyStatement,
  verifyStatementChain,
  verifyStatements
} from "./statements.ts"
export {
  chainHash,
  emptyChain,
  type KeptCheckpoint,
  type SignedCheckpoint,
  type Verification,
  type Verifier,
  type VerifyEventsOptions,
  verifyCheckpoint,
  verifyEvents
} from "./verifyEvents.ts"
