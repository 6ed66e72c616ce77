/**
 * `bun run bench fairness [--quick] [--part backlog|webhooks|posts] [--without-fairness]`: the effect of one organization's
 * load on another. B's events come at one a second while a backlog of A's 20,000 events drains, with one dispatcher and with
 * two; A has a webhook that takes two seconds to answer beside a fast one; and B posts single records at
 * five a second while A loads batches of 1,000. `--without-fairness` runs it on a Temporal server that has no fairness keys.
 */
import { startPlainTemporal } from "../test/support/plainTemporal.ts"
import {
  ask,
  delivering,
  dispatched,
  now,
  organizationWithKey,
  percentile,
  receiver,
  service,
  settled,
  transactions,
  webhook
} from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { answersOf, type Posted, post, receiptsOf } from "./support/posting.ts"
import { announced, atEnd, database, end, start } from "./support/servers.ts"

const BACKLOG = options.quick ? 2_000 : 20_000,
  /** Time over which B's events are measured; A's backlog is refilled if it drains sooner. */
  SECONDS = options.quick ? 15 : 60,
  /** How long to wait for B's last events. */
  GRACE = options.quick ? 15 : 120
const BATCH = 1_000
/** A's events per second beside its slow webhook, which accepts at most 4 a second with 8 attempts in flight. */
const PACED = 10,
  PACED_SECONDS = options.quick ? 10 : 60
const LOAD = options.quick ? 5_000 : 50_000,
  LOAD_POSTS = 5,
  LOAD_SECONDS = options.quick ? 10 : 30
const CONNECTIONS = 64
/** Goals of the same events, in ms. */
const GOALS = { backlogP50Ms: 250, backlogP99Ms: 1_500, loadP99Ms: 500 }

try {
  const target = await receiver()
  const plain = options["without-fairness"] ? await startPlainTemporal() : undefined
  if (plain !== undefined) atEnd(plain.stop)
  const env = { ...delivering(target), ...(plain === undefined ? {} : { TEMPORAL_ADDRESS: plain.address }) }
  const ours = await service(env, "api,worker,dispatcher")
  const client = await database()
  client.on("error", () => {})
  const a = await webhook(ours.port, ours.key, "bench", target.url)
  const bKey = await organizationWithKey(env, "other")
  await webhook(ours.port, bKey, "other", target.url)

  const feed = async (count: number, vaultId: string) => {
    for (let left = count; left > 0; left -= BATCH) await ours.feed(transactions(Math.min(BATCH, left), vaultId).map(({ line }) => line))
  }
  const posting = (vaultId: string, perSecond: number, seconds: number) =>
    post(ours.target, { vaultId, perSecond, count: perSecond * seconds, connections: CONNECTIONS })

  const seen: Array<readonly [string, number]> = []
  const look = async () => {
    for (const one of await target.seen()) seen.push(one)
    return seen.length
  }
  /** Waits until all of these posts have arrived, or the time is over. Returns when it ended. */
  const arrival = async (posts: ReadonlyArray<Posted>, seconds: number) => {
    for (const until = now() + seconds * 1_000; now() < until; await Bun.sleep(200)) {
      await look()
      if (receiptsOf(posts, seen, now()).missing === 0) break
    }
    return now()
  }
  /** Repeats `again` until `other` is settled, and returns the result of `other`. */
  const beside = async <A>(other: Promise<A>, again: () => Promise<unknown>) => {
    let over = false
    const value = other.finally(() => {
      over = true
    })
    while (!over) await again()
    return value
  }

  /** B's events beside a backlog of A's. The rest of the backlog is canceled afterwards. */
  const backlog = async () => {
    await look()
    const before = seen.length
    let fed = BACKLOG
    await feed(BACKLOG, "vault_bench")
    const posts = await beside(posting("vault_other", 1, SECONDS), async () => {
      await Bun.sleep(200)
      if ((await look()) - before > fed * 0.9) {
        await feed(BACKLOG, "vault_bench")
        fed += BACKLOG
      }
    })
    const result = receiptsOf(posts, seen, await arrival(posts, GRACE))
    const drained = seen.length - before - result.deliveries
    await ask(ours.port, ours.key, "PATCH", `/v1/webhooks/${a.id}`, { status: "DISABLED" })
    // Events that are not dispatched yet match nothing from now on.
    await dispatched(ours)
    await settled(client)
    await ask(ours.port, ours.key, "PATCH", `/v1/webhooks/${a.id}`, { status: "ACTIVE" })
    const { deliveries, missing, p50Ms, p99Ms } = result
    return { fed, drained, deliveries, missing, p50Ms, p99Ms, refused: answersOf(posts).refused }
  }

  /** A's own fast endpoint, at a rate that the slow one cannot keep up with. */
  const paced = async () => {
    const posts = await posting("vault_bench", PACED, PACED_SECONDS)
    const { missing, p50Ms, p99Ms } = receiptsOf(posts, seen, await arrival(posts, GRACE))
    return { p50Ms, p99Ms, missing, refused: answersOf(posts).refused }
  }

  /** B's posts beside A's batches, which match no webhook. */
  const load = async () => {
    let fed = 0,
      refusedBatches = 0
    const batchMs: Array<number> = []
    const batch = async () => {
      const lines = transactions(BATCH, "vault_bench_quiet").map(({ line }) => line)
      try {
        const { answered, begun } = await ours.feed(lines)
        batchMs.push(answered - begun)
        fed += BATCH
      } catch {
        refusedBatches++
        await Bun.sleep(500)
      }
    }
    const posts = await beside(posting("vault_other_quiet", LOAD_POSTS, LOAD_SECONDS), batch)
    while (fed < LOAD && refusedBatches < 100) await batch()
    await dispatched(ours)
    return { ...answersOf(posts), fed, refusedBatches, batchP50Ms: percentile(batchMs, 0.5) }
  }

  const events: Record<string, object> = {},
    posts: Record<string, object> = {}
  const measures = (part: string) => options.part === undefined || options.part === part

  // Warm before it is measured.
  await posting("vault_other", 10, 5)
  if (measures("posts")) {
    posts["B alone"] = answersOf(await posting("vault_other_quiet", LOAD_POSTS, LOAD_SECONDS))
    posts["B beside A's load"] = await load()
  }
  if (measures("webhooks")) {
    events["A's fast webhook alone"] = await paced()
    const slow = await webhook(ours.port, ours.key, "bench", target.url.replace("/hook", "/slow"))
    events["A's fast webhook beside a slow one"] = await paced()
    await ask(ours.port, ours.key, "PATCH", `/v1/webhooks/${slow.id}`, { status: "DISABLED" })
  }
  if (measures("backlog")) {
    const alone = await posting("vault_other", 5, options.quick ? 5 : 20)
    const { missing, p50Ms, p99Ms } = receiptsOf(alone, seen, await arrival(alone, GRACE))
    events["B alone"] = { p50Ms, p99Ms, missing, refused: answersOf(alone).refused }
    events["B beside A's backlog, one dispatcher"] = await backlog()
    await start("src/main.ts", ["start", "--roles", "dispatcher"], env, announced)
    events["B beside A's backlog, two dispatchers"] = await backlog()
  }
  await client.end()

  console.log(JSON.stringify({ bench: "fairness", backlog: BACKLOG, seconds: SECONDS, goals: GOALS, results: { events, posts } }, null, 2))
  console.table(events)
  console.table(posts)
} finally {
  await end()
}
