/**
 * The list of a webhook's deliveries as a response. The framework's route and the fast path share this implementation.
 * Spec: Webhook operations.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Option } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { answer, Pages } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import { WebhooksRepo } from "../webhooks/WebhooksRepo.ts"
import type { DeliveriesQuery } from "./DeliveriesApi.ts"
import { DeliveriesRepo } from "./DeliveriesRepo.ts"

export class DeliveryReads extends Effect.Service<DeliveryReads>()("custody/DeliveryReads", {
  effect: Effect.gen(function* () {
    const pages = yield* Pages
    const webhooks = yield* WebhooksRepo
    const deliveries = yield* DeliveriesRepo

    return {
      /** A page of the webhook's deliveries whose events the caller can see; 404 if the caller cannot see the webhook. */
      list: Effect.fnUntraced(function* (
        principal: PrincipalState,
        webhookId: string,
        { cursor, limit, ...filters }: typeof DeliveriesQuery.Type
      ) {
        const page = yield* pages.cut({
          of: { list: "deliveries", path: [webhookId], filters },
          limit,
          cursor,
          keyLength: 2,
          fetch: (after, take) => deliveries.ofWebhook(principal, webhookId, filters, after, take),
          keyOf: (row) => [row.createdAt, row.id]
        })
        // A webhook that the caller cannot see has no deliveries.
        if (page.rows.length === 0 && Option.isNone(yield* webhooks.find(principal, webhookId))) return yield* notFound()
        return HttpServerResponse.unsafeJson(answer(page, (row) => row))
      })
    }
  })
}) {
  static readonly layer = this.Default
}
