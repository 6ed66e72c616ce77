/** The contract of recoveries. C-4. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { InsufficientScope, OwnerRequired, WebhookReadable } from "../../access/visibility/scopeMiddleware.ts"
import { InvalidBody, PayloadTooLarge, UnsupportedMediaType } from "../../http/Body.ts"
import { IdempotencyHeaders, IdempotencyInProgress, IdempotencyKeyReused } from "../../http/Idempotency.ts"
import { Page, PageParams } from "../../http/Page.ts"
import { noQuery, pathId, query } from "../../http/Parameters.ts"
import { InvalidList, InvalidRequest, problems } from "../../http/Problem.ts"
import { webhookPath } from "../webhooks/WebhooksApi.ts"
import { CreateRecovery, Recovery } from "./Recovery.ts"

const NotRecoverable = problems("NotRecoverable", "recovery_running", "webhook_disabled")
const RecoveryEnded = problems("RecoveryEnded", "recovery_ended")

const recoveryPath = Schema.Struct({ recoveryId: pathId("recovery") })

const command = <const Name extends string, const Verb extends string>(name: Name, verb: Verb, summary: string, description: string) =>
  HttpApiEndpoint.post(name, `/webhook-recoveries/:recoveryId/${verb}`)
    .setPath(recoveryPath)
    .setUrlParams(noQuery)
    .addSuccess(Recovery)
    .addError(InvalidBody)
    .addError(PayloadTooLarge)
    .addError(UnsupportedMediaType)
    .addError(InsufficientScope)
    .addError(OwnerRequired)
    .addError(RecoveryEnded)
    .middleware(WebhookReadable)
    .annotate(OpenApi.Summary, summary)
    .annotate(OpenApi.Description, description)

export class RecoveriesApi extends HttpApiGroup.make("recoveries")
  .add(
    HttpApiEndpoint.post("createRecovery", "/webhooks/:webhookId/recoveries")
      .setPath(webhookPath)
      .setUrlParams(noQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(CreateRecovery)
      .addSuccess(Recovery, { status: 202 })
      .addError(InvalidBody)
      .addError(PayloadTooLarge)
      .addError(UnsupportedMediaType)
      .addError(InsufficientScope)
      .addError(OwnerRequired)
      .addError(NotRecoverable)
      .addError(IdempotencyInProgress)
      .addError(IdempotencyKeyReused)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "Recover missed events")
      .annotate(
        OpenApi.Description,
        "Sends every event recorded between `since` and `until` that was never DELIVERED to the webhook, by the webhook's current settings, except events with 200 deliveries, 20 of them to the webhook. New events are sent first. Requires the Developer role on every vault that the webhook covers. A webhook can have one unfinished recovery. Accepts `Idempotency-Key`."
      )
  )
  .add(
    HttpApiEndpoint.get("listRecoveries", "/webhooks/:webhookId/recoveries")
      .setPath(webhookPath)
      .setUrlParams(query(PageParams))
      .addSuccess(Page(Recovery, "RecoveryPage"))
      .addError(InvalidList)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "List a webhook's recoveries")
      .annotate(OpenApi.Description, "Recoveries of the webhook, newest first. Ended recoveries are kept for 31 days.")
  )
  .add(
    HttpApiEndpoint.get("getRecovery", "/webhook-recoveries/:recoveryId")
      .setPath(recoveryPath)
      .setUrlParams(noQuery)
      .addSuccess(Recovery)
      .addError(InvalidRequest)
      .middleware(WebhookReadable)
      .annotate(OpenApi.Summary, "Get a recovery")
      .annotate(OpenApi.Description, "One recovery with its progress.")
  )
  .add(
    command(
      "pauseRecovery",
      "pause",
      "Pause a recovery",
      "Until it is resumed, no further deliveries are created, and those that wait are not sent, whatever is asked of them."
    )
  )
  .add(
    command(
      "resumeRecovery",
      "resume",
      "Resume a recovery",
      "Continues where it was paused. Requires the Developer role on every vault that the webhook covers."
    ).addError(InvalidBody)
  )
  .add(command("cancelRecovery", "cancel", "Cancel a recovery", "Ends the recovery and cancels its waiting deliveries."))
  .annotate(OpenApi.Title, "Recoveries")
  .annotate(
    OpenApi.Description,
    "Send the events that a webhook missed: events whose deliveries failed or were canceled, and events without a delivery because the webhook was disabled, did not exist yet, or did not subscribe to their kind."
  ) {}
