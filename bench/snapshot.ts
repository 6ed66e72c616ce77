/**
 * `bun run bench snapshot`: the cost of readiness checks and of a dispatcher's frequent looks while a backup holds a snapshot,
 * after 100,000 completed events and deliveries. Their dead index entries stay for as long as the snapshot is held. Floor:
 * the same service before.
 */
import * as Id from "../src/values/Id.ts"
import { cpuOfService } from "./support/cpu.ts"
import { now, percentile, service } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { database, end, environment } from "./support/servers.ts"

const DONE = options.quick ? 10_000 : 100_000
/** A look starts from the beginning once a minute, so each phase has one. */
const SECONDS = options.quick ? 10 : 65,
  PACE_MS = 250

try {
  const ours = await service(environment(), "api,dispatcher", "https://hooks.example.com/")
  const [client, backup] = [await database(), await database()]
  const cpu = cpuOfService(ours.process.pid ?? 0)

  /** Requests readiness four times a second. */
  const phase = async (name: string) => {
    const times: Array<number> = []
    const before = cpu()
    for (const until = now() + SECONDS * 1_000; now() < until; ) {
      const begun = now()
      await (await fetch(`http://127.0.0.1:${ours.platformPort}/health/ready`)).text()
      times.push(now() - begun)
      await Bun.sleep(Math.max(0, PACE_MS - (now() - begun)))
    }
    const after = cpu()
    return {
      phase: name,
      p50Ms: percentile(times, 0.5),
      p99Ms: percentile(times, 0.99),
      mostMs: percentile(times, 1),
      postgresCpuMsPerSecond: Math.round(((after.postgres - before.postgres) / SECONDS) * 10) / 10
    }
  }

  const results = [await phase("before")]
  await backup.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
  await backup.query("SELECT count(*) FROM events")
  const { rows } = await client.query<{ id: string }>("SELECT id FROM webhooks")
  // These rows are never visible to another transaction, and still leave dead index entries.
  await client.query("BEGIN")
  await client.query(
    `INSERT INTO event_outbox (organization_id, position, event_id, entity_id, vault_id, kind)
     SELECT 'org_bench', n, 'evt_' || n, 'entity_bench', 'vault_bench', 'transaction.confirmed' FROM generate_series(1, ${DONE}) n`
  )
  await client.query("DELETE FROM event_outbox")
  await client.query(
    `INSERT INTO deliveries (id, event_id, webhook_id, organization_id, sequence, kind, status, next_attempt_at)
     SELECT left($2, 18) || lpad(n::text, 12, '0'), 'evt_' || n, $1, 'org_bench', n, 'transaction.confirmed', 'PENDING', now() - interval '1 hour'
     FROM generate_series(1, ${DONE}) n`,
    [rows[0]?.id, Id.make("del")]
  )
  await client.query("UPDATE deliveries SET status = 'DELIVERED', delivered_at = now(), next_attempt_at = NULL")
  await client.query("COMMIT")
  results.push(await phase("while the snapshot is held"))
  await backup.query("COMMIT")
  await Promise.all([client.end(), backup.end()])
  console.log(JSON.stringify({ bench: "snapshot", done: DONE, secondsEach: SECONDS, results }, null, 2))
  console.table(results)
} finally {
  await end()
}
