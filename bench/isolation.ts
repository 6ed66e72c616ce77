/**
 * `bun run bench isolation`: a hundred endpoints at twenty events a second: how long healthy endpoints wait for their
 * events while one of the hundred hangs, compared with before it had events and after it was disabled. Reliability F26.
 */
import { ask, delivering, now, percentile, receiver, service, transactions } from "./support/deliveries.ts"
import { end } from "./support/servers.ts"

const ENDPOINTS = 100
/** Time between two events for the others, events for the hanging one for each of the others', and events of a phase. */
const PACE_MS = 50,
  HANGING_SHARE = 0.05,
  EVENTS = 1_200

try {
  const target = await receiver()
  const ours = await service(delivering(target), "api,worker,dispatcher")
  const numbers = Array.from({ length: ENDPOINTS }, (_, number) => number)
  await ours.feed(
    numbers.flatMap((number) =>
      [
        { type: "entity", id: `entity_${number}`, organizationId: "org_bench", name: "Bench" },
        {
          type: "vault",
          id: `vault_${number}`,
          entityId: `entity_${number}`,
          label: "Bench",
          networks: ["ethereum"],
          createdAt: "2020-01-01T00:00:00Z"
        }
      ].map((record) => JSON.stringify(record))
    )
  )
  const webhooks: Array<string> = []
  for (const number of numbers) {
    const { id } = await ask(ours.port, ours.key, "POST", "/v1/webhooks", {
      url: number === 0 ? target.url.replace("/hook", "/hang") : target.url,
      entityIds: [`entity_${number}`],
      eventKinds: ["transaction.confirmed"],
      notificationEmail: "bench@example.com"
    })
    webhooks.push(id)
  }

  /** Feeds events to the healthy endpoints in turn, and a share more to the hanging one. Returns their latencies. */
  const phase = async (hanging: boolean) => {
    const fed = new Map<string, number>()
    await target.seen()
    for (const [index, { hash, line }] of transactions(EVENTS).entries()) {
      const due = now() + PACE_MS
      const lines = [line.replace("vault_bench", `vault_${1 + (index % (ENDPOINTS - 1))}`)]
      if (hanging && Math.floor(index * HANGING_SHARE) > Math.floor((index - 1) * HANGING_SHARE))
        lines.push(...transactions(1).map((one) => one.line.replace("vault_bench", "vault_0")))
      fed.set(hash, (await ours.feed(lines)).begun)
      await Bun.sleep(Math.max(0, due - now()))
    }
    await target.reaches(EVENTS)
    return (await target.seen()).map(([hash, at]) => at - (fed.get(hash) ?? Number.NaN))
  }

  await phase(false)
  const before = await phase(false)
  const beside = await phase(true)
  await ask(ours.port, ours.key, "PATCH", `/v1/webhooks/${webhooks[0]}`, { status: "DISABLED" })
  await Bun.sleep(5_000)
  const after = await phase(false)

  const alone = [...before, ...after]
  const results = {
    aloneP50Ms: percentile(alone, 0.5),
    besideP50Ms: percentile(beside, 0.5),
    aloneP99Ms: percentile(alone, 0.99),
    besideP99Ms: percentile(beside, 0.99),
    ratioP99: Math.round((percentile(beside, 0.99) / percentile(alone, 0.99)) * 100) / 100
  }
  const phases = [before, beside, after].map((times) => ({ p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) }))
  console.log(JSON.stringify({ bench: "isolation", endpoints: ENDPOINTS, events: EVENTS, paceMs: PACE_MS, phases, results }, null, 2))
  console.table(results)
} finally {
  await end()
}
