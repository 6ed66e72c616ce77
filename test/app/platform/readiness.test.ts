/** What readiness reports about waiting work, at a cost that does not grow with completed work. */
import { beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import pg from "pg"
import { type DeliveryRow, delivery, event, insertDeliveries, insertEvents } from "../../events/log/eventRows.ts"
import { useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { smallest } from "../../support/records.ts"
import { create } from "../../support/webhookFixtures.ts"

const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "custody-explain-")), "plans")
const app = useApp(["api"], { EXPLAIN_TO: file, WEBHOOK_PROXY_URL: "http://127.0.0.1:9" })
/** Completed events and deliveries. */
const MANY = 20_000
let webhookId = ""

beforeAll(async () => {
  await app.feed(smallest(), { "x-record-events": "none" })
  webhookId = (await create(app, (await app.key("user_a")).secret)).id
})

const ready = async () => (await fetch(`${app.main?.platformUrl}/health/ready`)).json() as Promise<{ readonly [name: string]: number }>

/** The memory pages that a check touches, by the plans of its statements. */
const buffersOf = async (look: () => Promise<unknown>) => {
  const linesNow = () =>
    fs
      .readFileSync(file, "utf8")
      .split("\n")
      // What follows the last line break is still being written.
      .slice(0, -1)
      .map((line): { asked: number; answered: number; buffers: number; text: string } => JSON.parse(line))
  const before = fs.existsSync(file) ? linesNow().length : 0
  await look()
  for (;;) {
    const lines = linesNow()
    const last = lines.at(-1)
    if (lines.length > before && last?.asked === last?.answered) return lines.slice(before).reduce((sum, { buffers }) => sum + buffers, 0)
    await Bun.sleep(5)
  }
}

describe("readiness", () => {
  test("names only the dependencies that the process itself uses", async () => {
    const dependencies = async (url: string | undefined) =>
      ((await (await fetch(`${url}/health/ready`)).json()) as { readonly dependencies: object }).dependencies
    /** Whose names are these, once none of them is busy. */
    const named = (url: string | undefined) =>
      until("readiness", async () => {
        const found = Object.entries(await dependencies(url))
        return found.every(([, state]) => state === "ok") && found.map(([name]) => name).sort()
      })
    expect(await named(app.main?.platformUrl)).toEqual(["postgres", "temporal"])
    const worker = await app.start(["worker"])
    expect(await named(worker.platformUrl)).toEqual(["network", "postgres", "proxy", "temporal"])
    await worker.end()
  })

  test("reports the age of the oldest unsent notice, as does a metric", async () => {
    expect((await ready())["oldestUnsentNoticeSeconds"]).toBe(0)
    await app.sql(
      `INSERT INTO notices (id, webhook_id, organization_id, cause, recipient, subject, body, created_at)
       VALUES ('notice_old', $1, 'org_a', 'old', 'a@example.com', 's', 'b', now() - interval '10 days'),
         ('notice_given_up', $1, 'org_a', 'older', 'a@example.com', 's', 'b', now() - interval '32 days')`,
      [webhookId]
    )
    expect(Math.round(((await ready())["oldestUnsentNoticeSeconds"] ?? 0) / 86_400)).toBe(10)
    const metrics = await (await fetch(`${app.main?.platformUrl}/metrics`)).text()
    expect(Number(/^custody_oldest_unsent_notice_seconds (.*)$/m.exec(metrics)?.[1])).toBeGreaterThan(86_400)
    await app.sql("UPDATE notices SET sent_at = now(), channel = 'log'")
    expect((await ready())["oldestUnsentNoticeSeconds"]).toBe(0)
  })

  test("costs the same after thousands of completed deliveries while a backup holds a snapshot", async () => {
    const backup = new pg.Client({ connectionString: app.databaseUrl })
    await backup.connect()
    try {
      await buffersOf(ready)
      const before = await buffersOf(ready)
      await backup.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
      await backup.query("SELECT count(*) FROM events")
      await app.sql(
        `INSERT INTO event_outbox (organization_id, position, event_id, entity_id, vault_id, kind)
         SELECT 'org_a', n, 'evt_' || n, 'entity_a', 'vault_a', 'vault.updated' FROM generate_series(1, ${MANY}) n`
      )
      const sent = event()
      await insertEvents(app, [sent])
      const rows: ReadonlyArray<DeliveryRow> = Array.from({ length: 5_000 }, () =>
        delivery({ eventId: sent.id, webhookId, status: "PENDING" })
      )
      await insertDeliveries(app, rows)
      await app.sql("UPDATE deliveries SET next_attempt_at = now() - random() * interval '2 seconds'")
      const waiting = await ready()
      expect(waiting["oldestUndispatchedSeconds"]).toBeGreaterThan(0)
      expect(waiting["oldestOverdueSeconds"]).toBeGreaterThan(0.5)
      await app.sql("DELETE FROM event_outbox")
      await app.sql("UPDATE deliveries SET status = 'DELIVERED', delivered_at = now(), next_attempt_at = NULL")
      // The first check still reads the removed rows; deliveries that were due in the last seconds are read for as long.
      expect(await buffersOf(ready)).toBeGreaterThan(before + 100)
      await until("a look that passes nothing", async () => (await buffersOf(ready)) < before + 20)
      expect(await ready()).toMatchObject({ oldestUndispatchedSeconds: 0, oldestOverdueSeconds: 0 })
      // So is the drain of a queue that nobody runs.
      await app.sql("INSERT INTO webhook_queues (webhook_id, live, due) VALUES ($1, true, now() - interval '90 seconds')", [webhookId])
      expect(Math.floor(((await ready())["oldestOverdueSeconds"] ?? 0) / 10)).toBe(9)
      await app.sql("DELETE FROM webhook_queues")
      // Later ones are seen.
      await app.sql(
        "INSERT INTO event_outbox (organization_id, position, event_id, entity_id, kind) VALUES ('org_a', 999999, 'evt_new', 'entity_a', 'vault.updated')"
      )
      await until("the age of the new event", async () => ((await ready())["oldestUndispatchedSeconds"] ?? 0) > 0)
    } finally {
      await backup.query("ROLLBACK")
      await backup.end()
    }
  })
})
