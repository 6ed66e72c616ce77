/**
 * The cost of a sweep in Temporal: the same with a hundred thousand waiting deliveries as with a few, while deliveries without
 * a workflow are still found. Postgres is real; Temporal is a counting stand-in. Architecture, What must hold 1.
 */
import { beforeAll, beforeEach, expect, test } from "bun:test"
import { Effect, Layer, Redacted } from "effect"
import * as Database from "../../src/database/Database.ts"
import { WorkflowStarter } from "../../src/deliveries/WorkflowStarter.ts"
import { Sweeper } from "../../src/dispatch/Sweeper.ts"
import { Notices } from "../../src/notifications/Notices.ts"
import { TemporalConnection } from "../../src/temporal/Connection.ts"
import * as Id from "../../src/values/Id.ts"
import { useApp } from "../support/app.ts"
import { feedOrganization, webhookOf } from "../support/deliveryFixtures.ts"

const WAITING = 25_000
/** Most list queries of a sweep: it checks a bounded number of deliveries, up to twice, 500 per query. */
const LISTS = 40

const app = useApp(["api"], { WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8", WEBHOOK_ALLOW_PORTS: "9" })

/** Running workflows, those that Temporal lists, and the queries made. */
const running = new Set<string>()
let listed: (id: string) => boolean = (id) => running.has(id)
const asked = { lists: 0, starts: 0, wakes: 0 }

beforeEach(() => Object.assign(asked, { lists: 0, starts: 0, wakes: 0 }))

let ids: ReadonlyArray<string> = []
beforeAll(async () => {
  const key = await feedOrganization(app, 1)
  const webhook = await webhookOf(app, key, 0, "https://localhost:9/")
  // A redelivery whose event has left the log is found, too.
  const rows = await app.sql(
    `INSERT INTO deliveries (id, event_id, webhook_id, kind, status, next_attempt_at, organization_id, sequence)
     SELECT left($1, 18) || lpad(n::text, 12, '0'), 'evt_gone', $2, 'transaction.confirmed', 'RETRYING',
       now() - interval '2 hours' + n * interval '100 milliseconds', 'org_a', n
     FROM generate_series(1, $3::int) n RETURNING id`,
    [Id.make("del"), webhook.id, WAITING]
  )
  ids = rows.map(({ id }) => String(id)).sort()
  await app.sql(
    "INSERT INTO webhook_health (webhook_id, consecutive_failures, failing_since, last_failure_at) VALUES ($1, 1, now(), now())",
    [webhook.id]
  )
})

const client = {
  workflowService: {
    listWorkflowExecutions: async ({ query }: { readonly query: string }) => {
      asked.lists++
      const named = [...query.matchAll(/"(del_[^"]+)"/g)].map(([, id = ""]) => id)
      return { executions: named.filter(listed).map((workflowId) => ({ execution: { workflowId } })) }
    }
  }
}
const fakes = Layer.mergeAll(
  // Only the parts that a sweep uses.
  Layer.succeed(TemporalConnection, {
    now: Effect.succeed({ client }),
    ready: Effect.void,
    isAvailable: Effect.succeed(true),
    namespace: "test"
  } as never),
  Layer.succeed(WorkflowStarter, {
    start: ({ id }: { readonly id: string }) =>
      Effect.sync(() => {
        asked.starts++
        if (running.has(id)) return "running"
        running.add(id)
        return "started"
      }),
    wake: () => Effect.sync(() => void asked.wakes++),
    retrySearchAttributes: Effect.void
  } as never),
  Layer.succeed(Notices, {} as never)
)

/** Runs this many sweeps of one dispatcher. */
const sweeps = (count: number) =>
  Effect.runPromise(
    Effect.flatMap(Sweeper, ({ sweep }) => Effect.repeatN(sweep, count - 1)).pipe(
      Effect.provide(
        Layer.provide(Sweeper.layer, Layer.merge(fakes, Database.layer(Redacted.make(app.databaseUrl), Database.pools.command)))
      )
    )
  )

test(`${WAITING} overdue deliveries with running workflows: a sweep makes at most ${LISTS} queries and looks up 20 workflows by name`, async () => {
  for (const id of ids) running.add(id)
  await sweeps(1)
  expect(asked.lists).toBeLessThanOrEqual(LISTS)
  expect(asked.starts).toBeLessThanOrEqual(20)
  expect(asked.wakes).toBe(0)
})

test("missing workflows are started within one walk, and those of recently overdue deliveries by the first sweep", async () => {
  // The last of the list is overdue for two hours less 2,500 s: not lately, so it is made so.
  const late = ids.at(-1) ?? ""
  await app.sql("UPDATE deliveries SET next_attempt_at = now() - interval '70 seconds' WHERE id = $1", [late])
  const gone = [ids[3] ?? "", ids[WAITING / 2] ?? "", ids[WAITING - 5] ?? ""]
  for (const id of [...gone, late]) running.delete(id)
  await sweeps(1)
  expect(running.has(late)).toBe(true)
  for (const id of gone) running.delete(id)
  await sweeps(3)
  expect(gone.filter((id) => !running.has(id))).toEqual([])
  expect(asked.starts).toBeLessThan(120)
})

test("a list that names missing workflows is not trusted: all of them are started", async () => {
  running.clear()
  listed = () => true
  await sweeps(4)
  expect(running.size).toBe(WAITING)
  listed = (id) => running.has(id)
})

test("if workflows cannot be listed, a sweep looks up a bounded number of them by name", async () => {
  listed = () => {
    throw new Error("visibility is away")
  }
  await sweeps(1)
  expect(asked.starts).toBeLessThanOrEqual(1_020)
  expect(asked.starts).toBeGreaterThan(0)
  listed = (id) => running.has(id)
})

test("deliveries that are to be canceled with their webhook get no workflow any more", async () => {
  running.clear()
  await app.sql(
    "INSERT INTO pending_cancellations (webhook_id, reason, until) SELECT DISTINCT webhook_id, 'WEBHOOK_DISABLED', clock_timestamp() FROM deliveries"
  )
  await sweeps(1)
  expect(asked).toEqual({ lists: expect.any(Number), starts: 0, wakes: 0 })
})
