/**
 * The deletion of an organization that is killed and run again, and one beside a service under load: the others' deliveries go
 * on. Decision D-56.
 */
import { beforeAll, expect, test } from "bun:test"
import { spawn } from "node:child_process"
import { baseEnv, cli, PROGRAM, useApp } from "../support/app.ts"
import { receiverEnv, until, useReceiver } from "../support/receiver.ts"
import { contentOf, feedTransactions, idsOf, shared, tenant } from "../support/tenants.ts"
import { long, report } from "./Rig.ts"

const ALL = ["api", "worker", "dispatcher"]
const TOKENS = ["0x00000000000000000000000000000000000000aa", "0x00000000000000000000000000000000000000bb"] as const
const ROWS = long ? 100_000 : 6_000
const receiver = useReceiver()
const app = useApp(ALL, () => ({ ...receiverEnv(receiver), WEBHOOK_RETRY_SCHEDULE: "0s,1h" }))
let gone: Awaited<ReturnType<typeof tenant>>

beforeAll(async () => {
  await app.feed(shared(TOKENS))
  gone = await tenant(app, receiver, "gone", TOKENS[0])
  await tenant(app, receiver, "stays", TOKENS[1])
  // Many more of its deliveries and attempts, as a busy organization has them.
  await app.sql(
    `WITH d AS (SELECT * FROM deliveries WHERE webhook_id = $1 ORDER BY id LIMIT 1), many AS (
       INSERT INTO deliveries (id, event_id, webhook_id, kind, status, delivered_at, organization_id, sequence)
       SELECT left(d.id, 22) || lpad(n::text, 8, '0'), d.event_id, d.webhook_id, d.kind, 'DELIVERED', now(), d.organization_id, 1000000 + n
       FROM d, generate_series(1, $2::int) n RETURNING id)
     INSERT INTO delivery_attempts (delivery_id, number, at, result, organization_id, webhook_id, process_id) SELECT id, 1, now(), '2xx', 'org_gone', '', '' FROM many`,
    [gone.webhooks.fine, ROWS]
  )
})

/** Runs the command with a process that is killed at the n-th part; returns its exit code, null if it was killed. */
const removing = (failAt: string) =>
  new Promise<number | null>((resolve) => {
    const child = spawn(process.execPath, [PROGRAM, "organizations", "delete", "org_gone"], {
      env: { ...baseEnv(), ...app.env, FAIL_AT: failAt },
      stdio: ["pipe", "ignore", "inherit"]
    })
    child.stdin?.end("org_gone\n")
    child.once("exit", (code) => resolve(code))
  })
const left = async () =>
  Number((await app.sql("SELECT count(*)::int AS count FROM deliveries WHERE organization_id = 'org_gone'"))[0]?.["count"])

test("a killed deletion is finished by the next run, and delays no other organization", async () => {
  const ids = await idsOf(app, "gone")
  const quiet: Array<number> = [],
    busy: Array<number> = []
  let times = quiet,
    over = false
  const traffic = (async () => {
    while (!over) {
      const [count, startedAt] = [receiver.to("/stays/fine").length, performance.now()]
      await feedTransactions(app, "stays")
      await until("the other's request", () => receiver.to("/stays/fine").length > count)
      times.push(performance.now() - startedAt)
      await Bun.sleep(50)
    }
  })()
  await until("a pace", () => quiet.length >= 20)
  times = busy
  const counts = [await left()]
  for (const place of ["organization-part:3", "organization-part:6", "organization-part:30"]) {
    expect([place, await removing(place)]).toEqual([place, null])
    counts.push(await left())
    expect((await app.get("/v1/vaults", gone.key)).status).toBe(401)
  }
  // Each run got further than the last, and did not begin anew.
  expect(counts).toEqual([...new Set(counts)].sort((a, b) => b - a))
  expect((await app.sql("SELECT deleting_at IS NOT NULL AS deleting FROM organizations WHERE id = 'org_gone'"))[0]).toEqual({
    deleting: true
  })
  const startedAt = performance.now()
  const { code, stdout } = await cli(["organizations", "delete", "org_gone"], app.env, "org_gone\n")
  const seconds = (performance.now() - startedAt) / 1_000
  over = true
  await traffic
  expect(code).toBe(0)
  expect(JSON.parse(stdout).deleted.organizations).toBe(1)
  for (const [table, rows] of await contentOf(app))
    if (table !== "audit_log") expect([table, rows.filter((row) => ids.some((id) => row.includes(id)))]).toEqual([table, []])
  expect((await app.get("/v1/vaults", gone.key)).json.code).toBe("invalid_api_key")
  const median = (all: Array<number>) => Math.round(all.sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0)
  report("deletion of an organization", {
    rows: ROWS * 2,
    seconds: Math.round(seconds * 10) / 10,
    eventToRequestMs: { before: median(quiet), meanwhile: median(busy), slowest: Math.round(busy.at(-1) ?? 0) }
  })
  expect(busy.length).toBeGreaterThan(5)
  // Nothing of the other waits for a part; a busy machine takes its time.
  expect(median(busy)).toBeLessThan(median(quiet) * 5 + 500)
})
