/**
 * The demo's outage: an endpoint goes down, its webhook is put on hold after ten failures, and new events wait without a
 * request. When the endpoint is back, a probe succeeds and everything is sent, oldest first. C-5.
 */
import { Duration, Effect, Schedule } from "effect"
import type { Client } from "./Client.ts"
import type { DemoFailed } from "./demoData.ts"
import { LEDGER, type Receiver } from "./Receiver.ts"
import type { Screen } from "./Screen.ts"

/** Deliveries that fail, each twice until the endpoint counts as down, and events during the hold. */
const FAILING = 5,
  DURING = 3
/** How long to wait for the hold and for its end; with the demo's settings, both come within seconds. */
const PATIENCE = Duration.seconds(30)

interface Health {
  readonly state: string
  readonly heldDeliveries: number
}

/** What this part uses. */
interface Scene {
  readonly client: Client
  readonly receiver: Receiver
  readonly screen: Screen
  readonly webhookId: string
  /** The next event of the webhook. */
  readonly event: Effect.Effect<void, DemoFailed>
}

/** Takes the ledger's endpoint down and brings it back. */
export const outage = ({ client, event, receiver, screen, webhookId }: Scene) =>
  Effect.gen(function* () {
    const { style } = screen
    const when = (wanted: (health: Health) => boolean) =>
      client
        .health(webhookId)
        .pipe(Effect.filterOrFail(wanted), Effect.retry(Schedule.spaced("100 millis")), Effect.timeoutOption(PATIENCE))
    const events = (count: number) => Effect.repeatN(Effect.zipRight(event, Effect.sleep("150 millis")), count - 1)
    const say = (text: string) => Effect.sync(() => screen.line(` ${text}`))

    receiver.down(LEDGER, true)
    yield* events(FAILING)
    const held = yield* when(({ heldDeliveries, state }) => state === "HOLDING" && heldDeliveries >= FAILING)
    if (held._tag === "Some") {
      yield* say(`${style.bold("On hold")}  ${style.dim("no retries are used up; single probes check whether it is back")}`)
      yield* events(DURING)
      const now = yield* when(({ heldDeliveries }) => heldDeliveries >= FAILING + DURING)
      const count = now._tag === "Some" ? now.value.heldDeliveries : FAILING + DURING
      yield* say(`${style.bold("Held")}  ${style.dim(`${count} deliveries wait, ${DURING} of them without a single request`)}`)
    }
    receiver.down(LEDGER, false)
    yield* say(`${style.bold("Back")}  ${style.dim("the next probe gets a 200, and the rest follows, oldest first")}`)
    yield* when(({ heldDeliveries, state }) => state === "HEALTHY" && heldDeliveries === 0)
    yield* receiver.allShown
  })
