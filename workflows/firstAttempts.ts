/**
 * First attempts of up to 50 deliveries in one workflow, for bursts: separate workflows would cost several times as much.
 * A delivery whose first attempt succeeds is done; any other continues in the workflow with the delivery's id, as if its
 * first attempt had been made there. Slow attempts leave the group. If a worker dies, another one runs the group and
 * finds completed attempts in the rows. Architecture, What must hold 1.
 */
import { proxyLocalActivities, setCurrentDetails } from "@temporalio/workflow"
import { announce } from "./announce.ts"
import type { Activities, FirstAttemptsInput, FirstAttemptsOutcome } from "./contract.ts"

const { firstAttempts: attempt } = proxyLocalActivities<Activities>({
  // It ends within seconds, but keeps its outcomes for as long as Postgres is unavailable.
  startToCloseTimeout: "20 minutes",
  localRetryThreshold: "10 seconds",
  retry: { initialInterval: "500 milliseconds", backoffCoefficient: 2, maximumInterval: "15 seconds" }
})

export async function firstAttempts(input: FirstAttemptsInput): Promise<FirstAttemptsOutcome["deliveries"]> {
  setCurrentDetails(`first attempts of ${input.deliveries.map(({ deliveryId }) => deliveryId).join(", ")}`)
  const { deliveries, notices, organizations } = await attempt(input)
  setCurrentDetails(
    Object.entries(deliveries)
      .map(([deliveryId, result]) => `${deliveryId}: ${result}`)
      .join("\n")
  )
  await announce(notices, (noticeId) => organizations?.[noticeId])
  return deliveries
}
