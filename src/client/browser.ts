/** The part of the client that also runs in browsers: everything that does not need `node:crypto`. */

export type { OnceOptions, Pages, RequestOptions } from "./call.ts"
export { applyEvent, type Copier, catchUp, copyVault, type VaultCopy } from "./copy.ts"
export { type CustodyClient, createClient } from "./createClient.ts"
export { CustodyError, isCustodyError, isErrorOf, NoAnswerError, type Problem } from "./errors.ts"
export { type FollowedEvent, type FollowOptions, followEvents } from "./follow.ts"
export type * from "./generated/custody.ts"
export type * from "./generated/events.ts"
export type * from "./generated/operations.ts"
export type * from "./generated/webhooks.ts"
export type { ReceivedEvent } from "./receivedEvent.ts"
export type { ClientOptions } from "./request.ts"
export type { Route } from "./route.ts"
export {
  type ChainVerification,
  type StatementsReader,
  type StatementVerification,
  statementHash,
  verifyStatement,
  verifyStatementChain,
  verifyStatements
} from "./statements.ts"
