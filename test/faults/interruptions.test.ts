/**
 * Senders that die repeatedly use up nothing of a delivery's schedule, and a delivery that kills its senders is tried
 * alone. Decision D-21; reliability F3.
 */
import { expect, test } from "bun:test"
import { type Answer, useApp } from "../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { long, report } from "./Rig.ts"

const receiver = useReceiver()
const app = useApp([], () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,6s" }))
const ROLES = ["api", "worker", "dispatcher"]

const results = (delivery: Answer["json"]): ReadonlyArray<string> => delivery.attempts.map(({ result }: { result: string }) => result)

/** Starts the program so that it is killed after its next request. */
const startToBeKilled = async () => {
  app.main = await app.start(ROLES, { FAIL_AT: "sent:1" })
  return app.main
}
const dead = ({ child }: { readonly child: { readonly signalCode: string | null } }) =>
  until("the end of the process", () => child.signalCode === "SIGKILL")

test("interrupted attempts use up nothing, and after two the next waits as after failure", async () => {
  receiver.on("/kills", () => new Response("", { status: 500 }))
  let process = await startToBeKilled()
  const key = await feedOrganization(app, 2)
  const webhook = await webhookOf(app, key, 0, receiver.url("/kills"))
  await feedTransactions(app, [0])
  const kills = long ? 6 : 2
  for (let count = 1; count <= kills; count++) {
    await dead(process)
    if (count < kills) process = await startToBeKilled()
  }
  app.main = await app.start(ROLES)
  const failed = await deliveryWhen(app, key, webhook.id, ({ status }) => status === "FAILED", 90)
  // A request written just as the process died may have been lost with it.
  expect(results(failed)).toEqual([...Array.from({ length: kills }, () => "interrupted"), "5xx", "5xx"])
  expect(failed.failureReason).toBe("EXHAUSTED")
  const times = failed.attempts.map(({ at }: { at: string }) => Date.parse(at))
  // The third and each one after it wait 6 s ±20 %.
  for (let number = 2; number <= kills; number++) expect(times[number] - times[number - 1]).toBeGreaterThan(4_700)
  report("interrupted again and again", { kills, attempts: results(failed) })
})
