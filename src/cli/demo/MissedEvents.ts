/** The demo's recovery: events happen while a webhook is disabled, and a recovery sends them afterwards. C-4. */
import { Duration, Effect, Schedule } from "effect"
import type { Client } from "./Client.ts"
import { DemoFailed } from "./demoData.ts"
import type { Receiver } from "./Receiver.ts"
import type { Screen } from "./Screen.ts"

/** Events that the webhook misses. */
const MISSED = 3
/** How long the recovery may take. */
const PATIENCE = Duration.seconds(60)

/** What this part uses. */
interface Scene {
  readonly client: Client
  readonly receiver: Receiver
  readonly screen: Screen
  readonly webhookId: string
  /** The next event of the webhook. */
  readonly event: Effect.Effect<void, DemoFailed>
}

/** Disables the webhook during some events, enables it, and recovers what it missed since a time. */
export const missedEvents = ({ client, event, receiver, screen, webhookId }: Scene, since: string) =>
  Effect.gen(function* () {
    yield* client.setStatus(webhookId, "DISABLED")
    yield* Effect.repeatN(event, MISSED - 1)
    yield* client.setStatus(webhookId, "ACTIVE")
    const { id } = yield* client.recover(webhookId, since)
    const { progress } = yield* client.recovery(id).pipe(
      Effect.filterOrFail(({ status }) => status === "COMPLETED"),
      Effect.retry(Schedule.spaced("100 millis")),
      Effect.timeoutFail({ duration: PATIENCE, onTimeout: () => new DemoFailed({ message: `The recovery ${id} did not complete.` }) })
    )
    yield* receiver.allShown
    screen.line(` ${screen.style.good("✓")} recovered: ${progress.delivered} of ${progress.created} missed events delivered`)
  })
