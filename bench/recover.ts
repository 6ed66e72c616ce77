/**
 * `bun run bench recover [--quick] [--large]`: new events at 10 a second, of a webhook and of another organization's, alone and
 * while the first webhook recovers 100,000 missed events; the recovery's own rate afterwards, and its CPU per delivery.
 * `--large` waits until all are delivered. Floor: the new events without the recovery.
 */
import { cpuOfService } from "./support/cpu.ts"
import { ask, delivering, dispatched, now, organizationWithKey, receiver, service, transactions, webhook } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { post, receiptsOf } from "./support/posting.ts"
import { end } from "./support/servers.ts"

const MISSED = options.quick ? 5_000 : 100_000
const PER_SECOND = 10,
  SECONDS = options.quick ? 20 : 30
/** How long the recovery is measured on its own, in seconds. */
const OWN = options.quick ? 120 : options.large ? 1_800 : 45
const GRACE = 60
/** Goal: p50 and p99 beside a recovery are at most this many times those without it. */
const GOAL = 2

try {
  const target = await receiver()
  const env = delivering(target)
  const ours = await service(env, "api,worker,dispatcher")
  for (let left = MISSED; left > 0; left -= 1_000)
    await ours.feed(transactions(Math.min(1_000, left), "vault_bench").map(({ line }) => line))
  await dispatched(ours)
  const mine = await webhook(ours.port, ours.key, "bench", target.url)
  await webhook(ours.port, await organizationWithKey(env, "other"), "other", target.url)

  const seen: Array<readonly [string, number]> = []
  const look = async () => {
    for (const one of await target.seen()) seen.push(one)
  }
  /** New events of both webhooks, from post to receipt. */
  const live = async () => {
    const posts = await Promise.all(
      ["vault_bench", "vault_other"].map((vaultId) =>
        post(ours.target, { vaultId, perSecond: PER_SECOND, count: PER_SECOND * SECONDS, connections: 32 })
      )
    )
    for (const until = now() + GRACE * 1_000; now() < until; await Bun.sleep(200)) {
      await look()
      if (receiptsOf(posts.flat(), seen, now()).missing === 0) break
    }
    const [own, others] = posts.map((some) => receiptsOf(some, seen, now()))
    return { own, others }
  }

  await post(ours.target, { vaultId: "vault_other", perSecond: PER_SECOND, count: 50, connections: 32 })
  const alone = await live()
  const cpu = cpuOfService(ours.process.pid ?? 0)
  const used = () => cpu().all
  const path = "/v1/webhook-recoveries"
  const created = await ask(ours.port, ours.key, "POST", `/v1/webhooks/${mine.id}/recoveries`, {
    since: new Date(Date.now() - 3_600_000).toISOString()
  })
  const startedAt = now()
  const progress = async (): Promise<{ readonly status: string; readonly progress: { readonly created: number } }> => {
    const answer = await fetch(`http://127.0.0.1:${ours.port}${path}/${created.id}`, { headers: { authorization: `Bearer ${ours.key}` } })
    // The contract's own shape.
    return (await answer.json()) as Awaited<ReturnType<typeof progress>>
  }
  const beside = await live()
  const during = await progress()
  let state = during
  const [ownAt, ownCpu] = [now(), used()]
  for (const until = now() + OWN * 1_000; now() < until && state.status === "RUNNING"; await Bun.sleep(500)) {
    await look()
    state = await progress()
  }
  const besideSeconds = (ownAt - startedAt) / 1_000
  const ownSeconds = (now() - ownAt) / 1_000
  const ownCreated = state.progress.created - during.progress.created
  const ratio = (a: number | undefined, b: number | undefined) => Math.round(((b ?? 0) / Math.max(1, a ?? 0)) * 100) / 100
  const results = {
    alone,
    beside,
    ratios: {
      ownP50: ratio(alone.own?.p50Ms, beside.own?.p50Ms),
      ownP99: ratio(alone.own?.p99Ms, beside.own?.p99Ms),
      othersP50: ratio(alone.others?.p50Ms, beside.others?.p50Ms),
      othersP99: ratio(alone.others?.p99Ms, beside.others?.p99Ms)
    },
    recovery: {
      missed: MISSED,
      status: state.status,
      progress: state.progress,
      createdBesideLive: during.progress.created,
      perSecondBesideLive: Math.round(during.progress.created / besideSeconds),
      perSecond: Math.round(ownCreated / ownSeconds),
      cpuMsPerDelivery: Math.round(((used() - ownCpu) / ownCreated) * 100) / 100
    }
  }
  console.log(JSON.stringify({ bench: "recover", goals: { ratio: GOAL }, results }, null, 2))
  console.table({ "own, alone": alone.own, "own, beside": beside.own, "others, alone": alone.others, "others, beside": beside.others })
} finally {
  await end()
}
