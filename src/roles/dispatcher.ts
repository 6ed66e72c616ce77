/** The dispatcher: from a committed event to a running workflow. */
import { Effect, Layer } from "effect"
import { WorkflowStarter } from "../deliveries/WorkflowStarter.ts"
import { Canceler } from "../dispatch/Canceler.ts"
import { Dispatcher } from "../dispatch/Dispatcher.ts"
import { HoldKeeper } from "../dispatch/HoldKeeper.ts"
import { OutboxRepo } from "../dispatch/OutboxRepo.ts"
import { RecoveryKeeper } from "../dispatch/RecoveryKeeper.ts"
import { SignalRelay } from "../dispatch/SignalRelay.ts"
import { Sweeper } from "../dispatch/Sweeper.ts"
import { Notices } from "../notifications/Notices.ts"

/** The dispatcher with its parts. */
export const layer = Dispatcher.layer.pipe(
  Layer.provide([OutboxRepo.layer, Sweeper.layer, SignalRelay.layer, Canceler.layer, HoldKeeper.layer, RecoveryKeeper.layer]),
  Layer.provide([WorkflowStarter.layer, Notices.layer])
)

/** Dispatches until interrupted. */
export const run = Effect.flatMap(Dispatcher, ({ run }) => run)
