/** Attempts that fail because this process cannot reach any network. They do not count, and are repeated when it can. C-5. */
import { Effect } from "effect"
import { networkOutage } from "../processes/NetworkOutage.ts"
import type { Answer } from "./request/Answer.ts"

/**
 * How soon a delivery checks again while this process cannot reach any network, in ms, and how long the first failures
 * wait for others.
 */
export const outageMs = () => Math.round(5_000 + Math.random() * 10_000)
const JUDGED_AFTER = "1500 millis"

/** Whether an attempt may be made now. */
export const mayAttempt = (): boolean => networkOutage.admits()

/**
 * Whether this process cannot reach any network: then the attempt does not count. The first failures of that kind wait a
 * moment for those of other webhooks.
 */
export const isLocalOutage = (webhookId: string, { local }: Answer): Effect.Effect<boolean> => {
  if (networkOutage.note(webhookId, local === true) || local !== true) return Effect.succeed(local === true)
  return Effect.map(Effect.sleep(JUDGED_AFTER), () => networkOutage.isActive)
}
