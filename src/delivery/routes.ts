/** The API's routes of webhooks, deliveries and recoveries, with what they need. Spec: Webhook operations. */
import { Layer } from "effect"
import { AccessChecks } from "../access/credentials/AccessChecks.ts"
import { EventsRepo } from "../events/log/EventsRepo.ts"
import { DeliveriesRepo } from "./deliveries/DeliveriesRepo.ts"
import * as deliveries from "./deliveries/handlers.ts"
import { Pings } from "./deliveries/Pings.ts"
import { WorkflowStarter } from "./deliveries/WorkflowStarter.ts"
import * as recoveries from "./recoveries/handlers.ts"
import { Recoveries } from "./recoveries/Recoveries.ts"
import { RecoveriesRepo } from "./recoveries/RecoveriesRepo.ts"
import * as webhooks from "./webhooks/handlers.ts"
import { WebhookPreview } from "./webhooks/WebhookPreview.ts"
import { Webhooks } from "./webhooks/Webhooks.ts"
import { WebhooksRepo } from "./webhooks/WebhooksRepo.ts"

export const layer = Layer.mergeAll(webhooks.layer, deliveries.layer, recoveries.layer).pipe(
  Layer.provide([Webhooks.layer, WebhookPreview.layer, Layer.provideMerge(Recoveries.layer, RecoveriesRepo.layer)]),
  Layer.provide([
    WebhooksRepo.layer,
    DeliveriesRepo.layer,
    EventsRepo.layer,
    AccessChecks.layer,
    Layer.provide(Pings.layer, WorkflowStarter.layer)
  ])
)
