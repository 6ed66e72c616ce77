/** The handlers of the webhook routes. Spec: Webhook operations. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Schema } from "effect"
import { callerOf, Principal, type PrincipalState, requireSecondFactor } from "../../access/credentials/Principal.ts"
import { reads, turns } from "../../access/visibility/Admission.ts"
import { requireManage } from "../../access/visibility/scopeMiddleware.ts"
import { withBody } from "../../access/visibility/withBody.ts"
import { Api } from "../../app/Api.ts"
import * as Body from "../../http/Body.ts"
import { handler } from "../../http/handler.ts"
import * as Idempotency from "../../http/Idempotency.ts"
import { answerJson, jsonText, Pages } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { CreateWebhook, PreviewWebhook, RotateSecret, UpdateWebhook } from "./Webhook.ts"
import { WebhookPreview } from "./WebhookPreview.ts"
import { Webhooks } from "./Webhooks.ts"
import { requireManageable, WebhooksRepo, webhookJson } from "./WebhooksRepo.ts"

const isWebhook = Schema.is(Schema.Struct({ id: Schema.String }))
const decodeCreation = Body.decode(CreateWebhook),
  decodePreview = Body.decode(PreviewWebhook),
  decodePatch = Body.decode(UpdateWebhook)

export const layer = HttpApiBuilder.group(
  Api,
  "webhooks",
  Effect.fnUntraced(function* (handlers) {
    const read = yield* reads
    const inTurn = yield* turns
    const bodied = yield* withBody
    const pages = yield* Pages
    const repo = yield* WebhooksRepo
    const webhooks = yield* Webhooks
    const preview = yield* WebhookPreview
    const sql = yield* SqlClient.SqlClient
    const master = yield* MasterKey
    const { webhookSourceAddresses } = yield* Settings

    const mutation = { uninterruptible: true }

    const manageable = (webhookId: string) => (principal: PrincipalState) => inTurn(requireManageable(repo, principal, webhookId))

    return handlers
      .handleRaw(
        "createWebhook",
        handler("createWebhook", () =>
          Effect.gen(function* () {
            const { body: text, principal } = yield* bodied(requireManage, Body.read())
            // The secret is not returned again for a webhook that is deleted, or that the caller no longer sees.
            const isShown = (made: unknown) =>
              Effect.map(isWebhook(made) ? repo.find(principal, made.id) : Effect.succeedNone, Option.isSome)
            return yield* inTurn(
              Effect.flatMap(decodeCreation(text), (body) => {
                const created = Effect.map(webhooks.create(principal, body), (webhook) => ({ status: 201, body: webhook }))
                // The URL could send data to a third party.
                const confirmed = requireSecondFactor(webhooks.check(principal, body))
                return Effect.zipRight(confirmed, Idempotency.once(sql, callerOf(principal), body, created, isShown))
              })
            )
          }).pipe(Effect.provideService(MasterKey, master), dieOnSql)
        ),
        mutation
      )
      .handleRaw(
        "previewWebhook",
        handler("previewWebhook", () =>
          Effect.gen(function* () {
            const { body: text, principal } = yield* bodied(() => Effect.void, Body.read())
            return jsonText(yield* inTurn(Effect.flatMap(decodePreview(text), (body) => preview.of(principal, body))))
          }).pipe(dieOnSql)
        )
      )
      .handleRaw(
        "listWebhooks",
        read("listWebhooks", ({ urlParams: { cursor, limit, ...filters } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.map(
              pages.cut({
                of: { list: "webhooks", filters },
                limit,
                cursor,
                keyLength: 2,
                fetch: (after, take) => repo.list(principal, filters, after, take),
                keyOf: (row) => [row.createdAt, row.id]
              }),
              (found) => answerJson(found, webhookJson)
            )
          )
        )
      )
      .handle(
        "getWebhook",
        read("getWebhook", ({ path: { webhookId } }) =>
          Effect.flatMap(Principal, (principal) =>
            Effect.flatMap(repo.findWithHealth(principal, webhookId), Option.match({ onNone: () => notFound(), onSome: Effect.succeed }))
          )
        )
      )
      .handleRaw(
        "updateWebhook",
        handler("updateWebhook", ({ path: { webhookId } }) =>
          Effect.gen(function* () {
            const patch = Body.read(["application/json", "application/merge-patch+json"])
            const { body: text, found, principal } = yield* bodied(manageable(webhookId), patch)
            const updated = inTurn(
              Effect.flatMap(decodePatch(text), (patch) => {
                // A new URL could send data to a third party.
                const moves = patch.url !== undefined && patch.url !== found.url
                const confirmed = moves ? requireSecondFactor(webhooks.checkUpdate(principal, webhookId, patch)) : Effect.void
                return Effect.zipRight(confirmed, webhooks.update(principal, webhookId, patch, moves))
              })
            )
            return HttpServerResponse.unsafeJson(yield* updated)
          }).pipe(dieOnSql)
        ),
        mutation
      )
      .handle(
        "deleteWebhook",
        handler("deleteWebhook", ({ path: { webhookId } }) =>
          Effect.gen(function* () {
            const { principal } = yield* bodied(manageable(webhookId), Body.none)
            yield* inTurn(webhooks.delete(principal, webhookId))
          }).pipe(dieOnSql)
        ),
        mutation
      )
      .handleRaw(
        "rotateSecret",
        handler("rotateSecret", ({ path: { webhookId } }) =>
          Effect.gen(function* () {
            const { body: asked, principal } = yield* bodied(manageable(webhookId), Body.optional(RotateSecret))
            // Before the response to an earlier request with the same Idempotency-Key is returned.
            yield* inTurn(requireSecondFactor())
            const rotated = Effect.map(webhooks.rotateSecret(principal, webhookId, asked), (body) => ({ status: 200, body }))
            const sent = asked.expirePrevious === undefined ? Idempotency.NO_BODY : asked
            return yield* inTurn(Idempotency.once(sql, callerOf(principal), sent, rotated))
          }).pipe(Effect.provideService(MasterKey, master), dieOnSql)
        ),
        mutation
      )
      .handle(
        "getWebhookSourceAddresses",
        handler("getWebhookSourceAddresses", () => Effect.succeed({ addresses: webhookSourceAddresses.map(({ text }) => text) }))
      )
  })
)
