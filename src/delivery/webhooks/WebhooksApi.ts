/** The contract of the webhook paths. Spec: Webhook operations. Decisions D-5, D-13, D-19, D-25, D-29. */

import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import {
  InsufficientScope,
  OwnerRequired,
  WebhookReadable,
  WebhooksManageable,
  WebhooksReadable
} from "../../access/visibility/scopeMiddleware.ts"
import { InvalidBody, optionalInDocument, PayloadTooLarge, UnsupportedMediaType } from "../../http/Body.ts"
import { IdempotencyHeaders, IdempotencyInProgress, IdempotencyKeyReused } from "../../http/Idempotency.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { noQuery, pathId, query } from "../../http/Parameters.ts"
import { InvalidList, InvalidRequest, problems } from "../../http/Problem.ts"
import { GivenId } from "../../values/givenId.ts"
import {
  CreateWebhook,
  PreviewWebhook,
  RotatedSecret,
  RotateSecret,
  UpdateWebhook,
  Webhook,
  WebhookPreview,
  WebhookSourceAddresses,
  WebhookStatus,
  WebhookWithHealth,
  WebhookWithSecret
} from "./Webhook.ts"

const WebhookLimitReached = problems("WebhookLimitReached", "webhook_limit_reached")
const RotationLimitReached = problems("RotationLimitReached", "rotation_limit_reached")
const UrlNotDeliverable = problems("UrlNotDeliverable", "url_not_deliverable")

/** The path parameter of one webhook. */
export const webhookPath = Schema.Struct({ webhookId: pathId("webhook") })

export class WebhooksApi extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.post("createWebhook", "/webhooks")
      .setUrlParams(noQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(CreateWebhook)
      .addSuccess(WebhookWithSecret, { status: 201 })
      .addError(InvalidBody)
      .addError(PayloadTooLarge)
      .addError(UnsupportedMediaType)
      .addError(WebhookLimitReached)
      .addError(IdempotencyInProgress)
      .addError(UrlNotDeliverable)
      .addError(IdempotencyKeyReused)
      .middleware(WebhooksManageable)
      .annotate(OpenApi.Summary, "Create a webhook")
      .annotate(
        OpenApi.Description,
        "Returns the signing secret once. Accepts `Idempotency-Key`. An entity can be covered by at most 20 active or paused webhooks, and by 100 with the disabled ones."
      )
  )
  .add(
    HttpApiEndpoint.post("previewWebhook", "/webhooks/preview")
      .setUrlParams(noQuery)
      .setPayload(PreviewWebhook)
      .addSuccess(WebhookPreview)
      .addError(InvalidBody)
      .addError(PayloadTooLarge)
      .addError(UnsupportedMediaType)
      .middleware(WebhooksReadable)
      .annotate(OpenApi.Summary, "Preview a webhook")
      .annotate(
        OpenApi.Description,
        "Shows what a webhook with these entities, kinds and vaults would have received in the last 31 days. Changes nothing. Requires the same access as creating the webhook."
      )
  )
  .add(
    HttpApiEndpoint.get("listWebhooks", "/webhooks")
      .setUrlParams(
        query({
          ...PageParams,
          entityId: Schema.optional(GivenId.annotations({ description: "Only webhooks that cover this entity" })),
          status: Schema.optional(WebhookStatus.annotations({ description: "Only this status" }))
        })
      )
      .addSuccess(Page(Webhook, "WebhookPage"))
      .addError(InvalidList)
      .middleware(WebhooksReadable)
      .annotate(OpenApi.Summary, "List webhooks")
      .annotate(OpenApi.Description, "Webhooks across the accessible entities, newest first.")
  )
  .add(
    HttpApiEndpoint.get("getWebhook", "/webhooks/:webhookId")
      .setPath(webhookPath)
      .setUrlParams(noQuery)
      .addSuccess(WebhookWithHealth)
      .addError(InvalidRequest)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "Get a webhook")
      .annotate(OpenApi.Description, "One webhook with its health counters.")
  )
  .add(
    HttpApiEndpoint.patch("updateWebhook", "/webhooks/:webhookId")
      .setPath(webhookPath)
      .setUrlParams(noQuery)
      .setPayload(UpdateWebhook)
      .addSuccess(Webhook)
      .addError(InvalidBody)
      .addError(PayloadTooLarge)
      .addError(UnsupportedMediaType)
      .addError(InsufficientScope)
      .addError(OwnerRequired)
      .addError(WebhookLimitReached)
      .addError(UrlNotDeliverable)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "Update a webhook")
      .annotate(
        OpenApi.Description,
        "A merge patch (RFC 7396) of the URL, event kinds, vault filter, status or description; other fields are rejected. Changing the URL, kinds or filter, enabling and resuming require the Developer role on every vault that the webhook then covers. Disabling cancels waiting deliveries; enabling resets the failure streak. Pausing holds deliveries; they are sent oldest first when the webhook is ACTIVE again."
      )
  )
  .add(
    HttpApiEndpoint.del("deleteWebhook", "/webhooks/:webhookId")
      .setPath(webhookPath)
      .setUrlParams(noQuery)
      .addSuccess(HttpApiSchema.NoContent)
      .addError(InvalidBody)
      .addError(PayloadTooLarge)
      .addError(UnsupportedMediaType)
      .addError(InsufficientScope)
      .addError(OwnerRequired)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "Delete a webhook")
      .annotate(OpenApi.Description, "Its deliveries stay readable through their events; waiting deliveries are canceled.")
  )
  .add(
    HttpApiEndpoint.post("rotateSecret", "/webhooks/:webhookId/rotate-secret")
      .setPath(webhookPath)
      .setUrlParams(noQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(RotateSecret)
      .addSuccess(RotatedSecret)
      .addError(InvalidBody)
      .addError(PayloadTooLarge)
      .addError(UnsupportedMediaType)
      .addError(InsufficientScope)
      .addError(OwnerRequired)
      .addError(RotationLimitReached)
      .addError(IdempotencyInProgress)
      .addError(IdempotencyKeyReused)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "Rotate the signing secret")
      .annotate(
        OpenApi.Description,
        'Returns the new secret once. The previous secret stays valid for 24 hours; at most three secrets are active. With `"expirePrevious": "now"`, all earlier secrets expire at once, for example after a leak: the next attempt is signed with the new secret only. Accepts `Idempotency-Key`.'
      )
      .annotate(OpenApi.Transform, optionalInDocument)
  )
  .add(
    HttpApiEndpoint.get("getWebhookSourceAddresses", "/webhook-source-addresses")
      .setUrlParams(noQuery)
      .addSuccess(WebhookSourceAddresses)
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "Get the addresses that deliveries come from")
      .annotate(OpenApi.Description, "The address ranges that a firewall in front of an endpoint must admit. Requires no API key.")
  )
  .annotate(OpenApi.Title, "Webhooks")
  .annotate(OpenApi.Description, "Reads require the scope `webhook:read`. Mutations require `webhook:manage` and an owner-level key.") {}
