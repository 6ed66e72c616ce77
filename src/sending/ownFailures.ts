/** Attempts that fail because this process reaches no network. They do not count, and are made again when it does. C-5. */
import { Effect } from "effect"
import { ownOutage } from "../limits/OwnOutage.ts"
import type { Answer } from "./Answer.ts"

/** When a delivery asks again while this process reaches no network, in ms, and how long the first failures wait for others. */
export const outageMs = () => Math.round(5_000 + Math.random() * 10_000)
const JUDGED_AFTER = "1500 millis"

/** Whether an attempt may be made now. */
export const mayTry = (): boolean => ownOutage.admits()

/**
 * Whether it is this process that reaches no network: then the attempt does not count. The first failures of that kind wait
 * a moment for those of other webhooks.
 */
export const isOurs = (webhookId: string, { local }: Answer): Effect.Effect<boolean> => {
  if (ownOutage.note(webhookId, local === true) || local !== true) return Effect.succeed(local === true)
  return Effect.map(Effect.sleep(JUDGED_AFTER), () => ownOutage.lasts)
}
