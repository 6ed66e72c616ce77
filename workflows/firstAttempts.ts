/**
 * First attempts of up to 50 deliveries in one workflow, for times when many wait: each of its own would cost many times
 * as much. A delivery whose first attempt succeeds is done; every other one goes on as the workflow whose id is the
 * delivery's, as if its first attempt had been made there. Attempts that take long leave the group. A worker that dies is
 * followed by another one, which finds in the rows what was done. Architecture, What must hold 1.
 */
import { proxyLocalActivities, setCurrentDetails } from "@temporalio/workflow"
import { announce } from "./announce.ts"
import type { Activities, FirstAttemptsInput, FirstAttemptsOutcome } from "./contract.ts"

const { firstAttempts: attempt } = proxyLocalActivities<Activities>({
  // It ends by itself within seconds, but holds on to its outcomes for as long as Postgres is away.
  startToCloseTimeout: "20 minutes",
  localRetryThreshold: "10 seconds",
  retry: { initialInterval: "500 milliseconds", backoffCoefficient: 2, maximumInterval: "15 seconds" }
})

export async function firstAttempts(input: FirstAttemptsInput): Promise<FirstAttemptsOutcome["deliveries"]> {
  setCurrentDetails(`first attempts of ${input.deliveries.map(({ deliveryId }) => deliveryId).join(", ")}`)
  const { deliveries, notices } = await attempt(input)
  setCurrentDetails(
    Object.entries(deliveries)
      .map(([deliveryId, result]) => `${deliveryId}: ${result}`)
      .join("\n")
  )
  await announce(notices)
  return deliveries
}
