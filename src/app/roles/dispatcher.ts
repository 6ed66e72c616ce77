/** The dispatcher: from a committed event to a running workflow. */
import { Effect, Layer } from "effect"
import { WorkflowStarter } from "../../delivery/deliveries/WorkflowStarter.ts"
import { CommandRelay } from "../../delivery/dispatch/CommandRelay.ts"
import { Dispatcher } from "../../delivery/dispatch/Dispatcher.ts"
import { OutboxRepo } from "../../delivery/dispatch/OutboxRepo.ts"
import { Sweep } from "../../delivery/dispatch/Sweep.ts"

/** The dispatcher with its parts. */
export const layer = Dispatcher.layer.pipe(
  Layer.provide([OutboxRepo.layer, CommandRelay.layer, Sweep.layer]),
  Layer.provide(WorkflowStarter.layer)
)

/** Dispatches until interrupted. */
export const run = Effect.flatMap(Dispatcher, ({ run }) => run)
