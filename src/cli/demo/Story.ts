/**
 * The demo's script: it feeds transactions as a custody platform would, one endpoint fails and is retried, one goes down and
 * is held until it is back, missed events are recovered, a secret is rotated. Every request to the receiver is shown with
 * the attempt that the service recorded.
 */
import { Duration, Effect, Option, Ref, Schedule } from "effect"
import type { Client } from "./Client.ts"
import { head, row } from "./deliveryLine.ts"
import { type DemoData, DemoFailed } from "./demoData.ts"
import { missedEvents } from "./MissedEvents.ts"
import { newTransaction } from "./newTransaction.ts"
import { outage } from "./Outage.ts"
import { BACK_OFFICE, GATEWAY_HEADER, LEDGER, type Receiver } from "./Receiver.ts"
import type { Screen } from "./Screen.ts"

/** The demo's webhooks: their ids and the first one's secret. */
export interface Webhooks {
  readonly ledger: { readonly id: string; readonly secret: string }
  readonly backOffice: { readonly id: string; readonly secret: string }
}

const DESCRIPTION = "Demo: "

/** Creates the demo's two webhooks; deletes those of an earlier run, whose history stays. */
export const createWebhooks = (client: Client, receiver: Receiver, { entityIds }: DemoData) =>
  Effect.gen(function* () {
    const earlier = (yield* client.webhooks).filter(({ description }) => description.startsWith(DESCRIPTION))
    yield* Effect.forEach(earlier, ({ id }) => client.deleteWebhook(id))
    const key = crypto.randomUUID()
    receiver.demand(BACK_OFFICE, key)
    const create = (
      description: string,
      path: string,
      eventKinds: ReadonlyArray<string>,
      headers: ReadonlyArray<{ readonly name: string; readonly value: string }> = []
    ) =>
      Effect.tap(
        client.createWebhook({
          url: receiver.url(path),
          description: `${DESCRIPTION}${description}`,
          entityIds,
          eventKinds,
          headers,
          notificationEmail: "ops@example.com"
        }),
        ({ secret }) => receiver.trust(path, [secret])
      )
    const webhooks: Webhooks = {
      ledger: yield* create("ledger import", LEDGER, [
        "transaction.pending",
        "transaction.confirmed",
        "transaction.failed",
        "transaction.reorged",
        "vault.updated",
        "webhook.secret_rotated"
      ]),
      backOffice: yield* create(
        "back office behind a gateway, fails at the first attempt",
        BACK_OFFICE,
        ["deposit_address.created", "balance.updated"],
        [{ name: GATEWAY_HEADER, value: key }]
      )
    }
    return webhooks
  })

/** What the script's parts use. */
interface Scene {
  readonly client: Client
  readonly data: DemoData
  readonly receiver: Receiver
  readonly screen: Screen
  readonly webhooks: Webhooks
}

/** The next events on the custody platform, one at a time, without an end. */
const platform = ({ client, data }: Scene) => {
  let [transactions, others, repeated] = [0, 0, 0]
  const repeat: Effect.Effect<void, DemoFailed> = Effect.suspend(() => {
    const past = data.transfers[repeated++ % data.transfers.length]
    if (past === undefined) return Effect.void
    return Effect.flatMap(client.nativeBalance(past.vaultId, past.network), (held) => {
      const lines = newTransaction(past, held)
      return lines === undefined ? repeat : Effect.asVoid(client.happened(...lines))
    })
  })
  const rename = Effect.suspend(() => {
    const { label, ...vault } = data.renamed
    const renamed = (text: string) => client.happened(JSON.stringify({ ...vault, label: text }))
    return Effect.flatMap(renamed(`${label} II`), (news) => (news ? Effect.void : Effect.asVoid(renamed(label))))
  })
  /** Feeds the next new record of the data; if all are known already, does something else. */
  const next = (take: () => string | undefined, otherwise: Effect.Effect<void, DemoFailed>): Effect.Effect<void, DemoFailed> =>
    Effect.suspend(() => {
      const line = take()
      return line === undefined ? otherwise : Effect.flatMap(client.happened(line), (news) => (news ? Effect.void : next(take, otherwise)))
    })
  return {
    transaction: next(() => data.transactions[transactions++], repeat),
    other: next(() => data.others[others++], rename)
  }
}

/** Shows requests as they arrive, forever. */
const show = ({ client, data, receiver, screen }: Scene, onShown: (latencyMs: number, ok: boolean) => Effect.Effect<void>) =>
  receiver.showEach((received) =>
    Effect.gen(function* () {
      // The attempt is recorded when its response has arrived, a moment after the receiver sent it. That of a ping is not.
      const delivery = yield* client.deliveriesOf(received.eventId).pipe(
        Effect.map((found) => found.find(({ id }) => id === received.deliveryId)),
        Effect.filterOrFail((found) => found?.attempts[received.attempt - 1] !== undefined),
        Effect.retry(Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(200))),
        Effect.when(() => !received.ping),
        Effect.map(Option.flatMap(Option.fromNullable)),
        Effect.orElseSucceed(Option.none)
      )
      const recorded = Option.getOrUndefined(delivery)
      screen.line(row(screen, data, received, recorded))
      yield* onShown(recorded?.attempts[received.attempt - 1]?.latencyMs ?? 0, received.status === 200)
    })
  )

/** Waits until every event since `start` was dispatched and every delivery of this run is DELIVERED. */
const settled = ({ client, webhooks }: Scene, start: string) =>
  Effect.gen(function* () {
    const events = yield* client.eventsSince(start)
    const deliveries = (yield* Effect.forEach([webhooks.ledger, webhooks.backOffice], ({ id }) => client.deliveriesTo(id))).flat()
    const open = deliveries.filter(({ status }) => status !== "DELIVERED").length
    if (open > 0 || events.some(({ dispatchedAt }) => dispatchedAt === null))
      return yield* new DemoFailed({ message: `${open} still open` })
    return { deliveries: deliveries.length, attempts: deliveries.reduce((sum, { attempts }) => sum + attempts.length, 0) }
  }).pipe(
    Effect.retry(Schedule.spaced("200 millis").pipe(Schedule.upTo(Duration.seconds(90)))),
    Effect.mapError(({ message }) => new DemoFailed({ message: `Not every delivery was DELIVERED within 90 s: ${message}.` }))
  )

/** Runs the script. With `once`: ends when every delivery was delivered. Otherwise: continues forever. */
export const play = (scene: Scene, once: boolean, footer: (status: string) => ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { client, data, receiver, screen, webhooks } = scene
    const { style } = screen
    const start = new Date(Date.now() - 1_000).toISOString()
    const { other, transaction } = platform(scene)
    const latencies = yield* Ref.make<ReadonlyArray<number>>([])
    const failed = yield* Ref.make(0)

    const status = Effect.gen(function* () {
      const sorted = [...(yield* Ref.get(latencies))].sort((a, b) => a - b)
      const median = sorted[Math.floor(sorted.length / 2)]
      if (!once)
        screen.footer(
          footer(`${sorted.length} delivered, ${yield* Ref.get(failed)} retried${median === undefined ? "" : `, median ${median} ms`}`)
        )
    })
    const onShown = (latencyMs: number, ok: boolean) =>
      Effect.zipRight(
        ok ? Ref.update(latencies, (all) => [...all, latencyMs].slice(-10_000)) : Ref.update(failed, (count) => count + 1),
        status
      )
    yield* Effect.forkScoped(show(scene, onShown))
    yield* status

    const pause = (time: Duration.DurationInput) => Effect.sleep(time)
    const say = (title: string, text: string) => Effect.sync(() => screen.line(`\n ${style.bold(title)}  ${style.dim(text)}`))

    yield* say("Deliveries", "each row is a signed HTTPS request that the receiver accepted")
    screen.line(head(screen))
    for (let count = 0; count < 6; count++) yield* Effect.zipRight(transaction, pause("400 millis"))

    yield* say("Retry", "this endpoint answers 503 to the first attempt of each delivery")
    yield* Effect.zipRight(other, pause("800 millis"))
    for (let count = 0; count < 2; count++) yield* Effect.zipRight(transaction, pause("900 millis"))
    yield* pause("1 second")

    yield* say("Outage", "the endpoint answers 503; after ten failures its deliveries are held")
    yield* outage({ client, receiver, screen, webhookId: webhooks.ledger.id, event: transaction })

    yield* say("Recovery", "the webhook is disabled, and a recovery sends the three events missed")
    yield* missedEvents({ client, receiver, screen, webhookId: webhooks.ledger.id, event: transaction }, start)

    yield* say("Rotation", "a new signing secret; the previous one stays valid for 24 hours")
    // The event of the rotation may arrive before its response.
    const secrets = Promise.withResolvers<ReadonlyArray<string>>()
    receiver.trust(LEDGER, secrets.promise)
    const { secret } = yield* client.rotateSecret(webhooks.ledger.id)
    secrets.resolve([secret, webhooks.ledger.secret])
    yield* pause("500 millis")
    for (let count = 0; count < 3; count++) yield* Effect.zipRight(transaction, pause("500 millis"))

    const { attempts, deliveries } = yield* settled(scene, start)
    yield* say("Proof", "every event of the feed, against the hashes that the service signed")
    const events = yield* Effect.forEach(data.entityIds, client.verified)
    const all = events.reduce((sum, count) => sum + count, 0)
    screen.line(` ${style.good("✓")} complete: ${all.toLocaleString("en")} events of ${events.length} entities, none missing or changed`)
    if (once) {
      yield* receiver.allShown
      screen.line(`\n ${style.good("✓")} ${deliveries} deliveries, all DELIVERED, in ${attempts} attempts.`)
      return
    }
    yield* say("Live", "a new transaction every few seconds")
    const patiently = <A>(effect: Effect.Effect<A, DemoFailed>) =>
      Effect.catchAll(effect, ({ message }) => Effect.sync(() => screen.line(` ${style.bad("✗")} ${message}`)))
    return yield* Effect.forever(
      Effect.gen(function* () {
        for (let count = 0; count < 4; count++) yield* Effect.zipRight(patiently(transaction), pause("4 seconds"))
        yield* Effect.zipRight(patiently(other), pause("4 seconds"))
      })
    )
  })
