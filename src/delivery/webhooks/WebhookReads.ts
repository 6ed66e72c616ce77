/**
 * One webhook with its health as a response. The framework's route and the fast path share this implementation. Spec: Webhook
 * operations.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Option } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { notFound } from "../../http/Problem.ts"
import { WebhooksRepo } from "./WebhooksRepo.ts"

export class WebhookReads extends Effect.Service<WebhookReads>()("custody/WebhookReads", {
  effect: Effect.map(WebhooksRepo, (webhooks) => ({
    /** The webhook and its health; 404 if the caller cannot see it. */
    get: (principal: PrincipalState, webhookId: string) =>
      Effect.flatMap(
        webhooks.findWithHealth(principal, webhookId),
        Option.match({ onNone: () => Effect.fail(notFound()), onSome: (found) => Effect.succeed(HttpServerResponse.unsafeJson(found)) })
      )
  }))
}) {
  static readonly layer = this.Default
}
