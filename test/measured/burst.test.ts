/** A burst over many organizations. Architecture, What must hold 7. */
import { expect, test } from "bun:test"
import { report } from "../faults/Rig.ts"
import { useApp } from "../support/app.ts"
import { feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { entity, organization, transaction, user, vault } from "../support/records.ts"

/** So many that the ids of those that share a workflow, and of their webhooks, are longer than a search attribute may be. */
const MANY = 36,
  FEW = 2
const EVENTS = 20

const receiver = useReceiver()
const app = useApp(["api", "worker", "dispatcher"], () => receiverEnv(receiver))

/** An id as long as the service's own ones. */
const idOf = (prefix: string, number: number) => `${prefix}_${String(number).padStart(26, "0")}`
let hashes = 0

/** Organizations that have so many webhooks together, and a burst of events for all of them: the seconds until the last request. */
const burst = async (organizations: number, path: string) => {
  const numbers = Array.from({ length: organizations }, (_, number) => organizations * 1_000 + number)
  await app.feed(
    numbers.flatMap((number) => [
      organization(idOf("org", number), ["ethereum"]),
      entity(idOf("entity", number), idOf("org", number)),
      vault(idOf("vault", number), idOf("entity", number)),
      user(idOf("user", number), idOf("org", number), [idOf("vault", number)], { organizationRole: "owner" })
    ]),
    { "x-record-events": "none" }
  )
  for (const number of numbers) {
    const { secret } = await app.key(idOf("user", number))
    for (let count = 0; count < MANY / organizations; count++)
      await webhookOf(app, secret, 0, receiver.url(path), { entityIds: [idOf("entity", number)] })
  }
  const feed = (events: number) =>
    app.feed(Array.from({ length: events }, () => numbers.map((number) => transaction(idOf("vault", number), ++hashes))).flat())
  // The first attempts of a process and of a connection are slow.
  await feed(1)
  await until("the first requests", () => receiver.to(path).length === MANY)
  const startedAt = performance.now()
  await feed(EVENTS)
  await until("every request", () => receiver.to(path).length >= MANY * (EVENTS + 1), 120)
  return (performance.now() - startedAt) / 1_000
}

test("a burst over many organizations is delivered as fast as one over two", async () => {
  await feedOrganization(app, 1)
  const few = await burst(FEW, "/few")
  const logged = app.main?.output().length
  const many = await burst(MANY, "/many")
  report("a burst over many organizations", { deliveries: MANY * EVENTS, fewSeconds: few, manySeconds: many })
  const log = app.main?.output().slice(logged).split("\n") ?? []
  expect(
    log.filter((line) => /cannot be started|INVALID_ARGUMENT|exceeds size limit/.test(line)).map((line) => line.slice(0, 200))
  ).toEqual([])
  expect(many).toBeLessThan(3 * few + 2)
}, 300_000)
