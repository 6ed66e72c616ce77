/**
 * `bun run bench backlog`: a worker and a dispatcher drain 20,000 waiting deliveries beside the API, compared with the
 * steady rate of the same processes; and the effect on API clients.
 */
import { delivering, now, percentile, receiver, service, transactions } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { reader } from "./support/reader.ts"
import { announced, end, start } from "./support/servers.ts"

const BACKLOG = options.quick ? 2_000 : 20_000,
  STEADY = 1_000,
  ROUNDS = options.quick ? 1 : 3
try {
  const target = await receiver()
  const env = delivering(target)
  const api = await service(env, "api", target.url)
  const reading = () => reader(api.port, api.key, "/v1/vaults/vault_bench/transactions?limit=20")
  const feedAll = async (count: number) => {
    for (let left = count; left > 0; left -= 1_000) await api.feed(transactions(Math.min(1_000, left)).map(({ line }) => line))
    return now()
  }
  const rate = (seen: ReadonlyArray<readonly [string, number]>, from: number) =>
    Math.round(seen.length / ((Math.max(...seen.map(([, at]) => at)) - from) / 1_000))

  await feedAll(BACKLOG)
  const warm = reading()
  await Bun.sleep(5_000)
  await warm()

  await start("src/main.ts", ["start", "--roles", "worker,dispatcher"], env, announced)
  const begun = now()
  const during = reading()
  await target.reaches(BACKLOG, 900)
  const busy = await during()
  const drained = await target.seen()
  const backlogPerSecond = rate(drained, begun)

  // The steady rate and its effect on a client, under a load of the same kind that never piles up.
  const steady: Array<number> = []
  const beside = reading()
  for (let round = 0; round < ROUNDS; round++) {
    const from = await feedAll(STEADY)
    await target.reaches(STEADY)
    steady.push(rate(await target.seen(), from))
  }
  const steadyLatencies = await beside()
  await Bun.sleep(3_000)
  const alone = reading()
  await Bun.sleep(15_000)
  const idle = await alone()

  const results = {
    backlog: drained.length,
    backlogPerSecond,
    steadyPerSecond: Math.round(steady.reduce((a, b) => a + b, 0) / steady.length),
    ratio: Math.round((backlogPerSecond / (steady.reduce((a, b) => a + b, 0) / steady.length)) * 100) / 100,
    apiP99IdleMs: percentile(idle, 0.99),
    apiP99SteadyMs: percentile(steadyLatencies, 0.99),
    apiP99BacklogMs: percentile(busy, 0.99)
  }
  console.log(JSON.stringify({ bench: "backlog", steady, results }, null, 2))
  console.table(results)
} finally {
  await end()
}
