/**
 * A rolling upgrade and a rollback: processes of an earlier version and of this one on one database and one task queue, while
 * records are fed and deliveries wait for days. Deliveries that began under either version end under the other, nothing is
 * lost, and no workflow task fails. The long run also kills processes in turn. Reliability F29.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { temporal } from "@temporalio/proto"
import { type Answer, cli, type Process } from "../support/app.ts"
import { checkOut, missing } from "../support/earlierVersion.ts"
import { until } from "../support/receiver.ts"
import { atRest, operator } from "../support/temporal.ts"
import { long, Rig, randoms, report, sound } from "./Rig.ts"

/**
 * The commit of the earlier version: that of the baseline migration, so that every migration and every change of workflows since
 * then is applied under running processes. Undefined while there is no later version.
 */
const BASELINE: string | undefined = undefined
const EARLIER = process.env["CUSTODY_UPGRADE_FROM"] ?? BASELINE ?? ""
const reason = EARLIER === "" ? "the baseline is the present version" : missing(EARLIER)

const { WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND } = temporal.api.enums.v1.WorkflowTaskFailedCause
const OLD = "earlier version",
  NEW = "this version"
type Version = typeof OLD | typeof NEW
const SENDER = ["worker", "dispatcher"]
/** Kills of the long run. */
const ROUNDS = 12

const rig = new Rig()
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-upgrade-"))
/** Deliveries of `/two` that its endpoint takes. */
const released = new Set<string>()
let old = ""
let temporalServer: Awaited<ReturnType<typeof operator>> | undefined

const start = (version: Version, roles: ReadonlyArray<string>): Promise<Process> =>
  rig.app.start(roles, {}, version === OLD ? old : undefined)

/** The API and the sender of a version: two processes in the long run, otherwise one with every role. */
const startBoth = async (version: Version): Promise<readonly [Process, Process]> => {
  if (long) return Promise.all([start(version, ["api"]), start(version, SENDER)])
  const one = await start(version, ["api", ...SENDER])
  return [one, one]
}

/** Stops a process, which ends with code 0. */
const stop = async (running: Process) => expect([await running.end(), running.output()]).toEqual([0, expect.any(String)])

const deliveries = (path: string): Promise<ReadonlyArray<Answer["json"]>> =>
  rig.app.walk(`/v1/webhooks/${rig.idOf(path)}/deliveries`, rig.key, 500)

/** The ids of the deliveries to `/two` that wait for days, once there are this many. */
const waiting = (count: number): Promise<ReadonlyArray<string>> =>
  until(
    `${count} deliveries that wait for days`,
    async () => {
      const rows = (await deliveries("/two")).filter(
        ({ nextAttemptAt, status }) => status === "RETRYING" && Date.parse(nextAttemptAt) > Date.now() + 86_400_000
      )
      return rows.length === count ? rows.map(({ id }) => id) : undefined
    },
    120
  )

/** Lets the endpoint take these deliveries, asks their workflows for the next attempt once they wait, and awaits it. */
const release = async (ids: ReadonlyArray<string>) => {
  for (const id of ids) released.add(id)
  for (const id of ids) await (await atRest(temporalServer?.client.workflow.getHandle(id))).signal("retryNow")
  await until(
    `${ids.length} released deliveries`,
    async () => {
      const rows = await deliveries("/two")
      return ids.every((id) => rows.find((row) => row.id === id)?.status === "DELIVERED")
    },
    120
  )
}

const setStatus = async (path: string, status: string) => {
  const answer = await rig.app.request("PATCH", `/v1/webhooks/${rig.idOf(path)}`, { key: rig.key, body: { status } })
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
}

/** Waits until none but these deliveries of `/two` waits. */
const settled = (count: number) =>
  until(
    "the end of all other deliveries",
    async () => {
      const [row] = await rig.app.sql(`
        SELECT (SELECT count(*) FROM event_outbox)::int AS events,
          (SELECT count(*) FROM deliveries WHERE status IN ('PENDING', 'RETRYING', 'HELD'))::int AS waiting`)
      return row?.["events"] === 0 && row["waiting"] === count
    },
    150
  )

/** Feeds over each of the APIs in turn; half of the transactions are of the webhook `/two`. */
const feed = async (apis: ReadonlyArray<Process>, count: number) => {
  for (let fed = 0; fed < count; fed += 10) {
    rig.app.main = apis[(fed / 10) % apis.length]
    await rig.feed(10)
  }
}

/** Workflow tasks that failed, of all workflows of this task queue. */
const failedTasks = async (): Promise<ReadonlyArray<string>> => {
  const client = temporalServer?.client
  if (client === undefined) throw new Error("no client of Temporal")
  const found: Array<string> = []
  let workflows = 0
  for await (const { runId, type, workflowId } of client.workflow.list({ query: `TaskQueue = '${rig.app.env["TEMPORAL_TASK_QUEUE"]}'` })) {
    workflows++
    const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory()
    // A signal that arrives while a task completes: the task is done again, with the signal.
    for (const { workflowTaskFailedEventAttributes: failed } of events ?? [])
      if (failed != null && failed.cause !== WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND)
        found.push(`${type} ${workflowId}: ${failed.failure?.message ?? failed.cause}`)
  }
  expect(workflows).toBeGreaterThan(20)
  return found
}

/** Attempts that a process has made. */
const attemptsOf = async ({ platformUrl }: Process): Promise<number> => {
  const metrics = await (await fetch(`${platformUrl}/metrics`)).text()
  return [...metrics.matchAll(/^custody_delivery_attempts_total\{[^}]*\} (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
}

describe.skipIf(reason !== undefined)(
  `a rolling upgrade${EARLIER === "" ? "" : ` from ${EARLIER}`}${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let oldApi: Process, oldSender: Process, newApi: Process, newSender: Process

    beforeAll(async () => {
      old = checkOut(EARLIER, folder)
      rig.version = old
      await rig.open(
        // After its first four attempts, a delivery waits for days.
        { WEBHOOK_RETRY_SCHEDULE: "0s,1s,1s,1s,48h,48h", WEBHOOK_HOLD_AFTER: "1h" },
        long ? ["api"] : ["api", ...SENDER],
        async (url) => {
          await rig.app.sql("DROP SCHEMA public CASCADE")
          await rig.app.sql("CREATE SCHEMA public")
          expect(await cli(["migrate"], { ...rig.app.env, DATABASE_URL: url }, undefined, old)).toMatchObject({ code: 0 })
          return url
        }
      )
      temporalServer = await operator()
      rig.answer("/two", ({ headers }) => (released.has(headers["x-service-delivery-id"] ?? "") ? 200 : 503))
      rig.answer("/three", ({ headers }) => (Number(headers["x-service-attempt"]) < 3 ? 503 : 200))
      if (rig.app.main === undefined) throw new Error("the API did not start")
      oldApi = rig.app.main
      oldSender = long ? await start(OLD, SENDER) : oldApi
    })
    afterAll(async () => {
      await temporalServer?.close()
      await rig.close()
      fs.rmSync(folder, { recursive: true, force: true })
    })

    let begunOld: ReadonlyArray<string> = [],
      begunBoth: ReadonlyArray<string> = [],
      begunNew: ReadonlyArray<string> = []

    test("the migration runs while the earlier version takes records and delivers", async () => {
      await feed([oldApi], 10)
      begunOld = await waiting(5)
      const [migrated] = await Promise.all([cli(["migrate"], rig.app.env), rig.feed(20, 50)])
      expect(migrated).toMatchObject({ code: 0 })
      // What was recorded before, during and after it is delivered by the earlier version.
      await feed([oldApi], 10)
      await waiting(20)
      await settled(20)
      begunOld = await waiting(20)
    })

    test("both versions read and deliver at once, and deliveries begun earlier go on", async () => {
      ;[newApi, newSender] = await startBoth(NEW)
      // A worker beside others takes its first task after 13 s.
      await until("tasks for both", () => newSender.output().includes("worker started"))
      const before = await attemptsOf(oldSender)
      await feed([oldApi, newApi], 30)
      await settled(35)
      begunBoth = (await waiting(35)).filter((id) => !begunOld.includes(id))
      expect(await attemptsOf(oldSender)).toBeGreaterThan(before)
      expect(await attemptsOf(newSender)).toBeGreaterThan(0)
      // A cursor of one version is read by the other, and a key that one created is known to the other.
      for (const [first, second] of [
        [oldApi, newApi],
        [newApi, oldApi]
      ] as const) {
        for (const list of ["/v1/webhook-events?limit=7", "/v1/event-feed?limit=7"]) {
          rig.app.main = first
          const page = (await rig.app.get(list, rig.key)).json
          rig.app.main = second
          const { nextCursor } = page.pagination
          const next = await rig.app.get(
            `${list}&${list.includes("feed") ? "after" : "cursor"}=${nextCursor ?? page.resumeCursor}`,
            rig.key
          )
          expect([list, next.status]).toEqual([list, 200])
          expect(next.json.data.map(({ id }: Answer["json"]) => id)).not.toContain(page.data[0].id)
        }
      }
      await release(begunOld.slice(0, 10))
      // Held under one version, and released under the other.
      await setStatus("/one", "PAUSED")
      await feed([oldApi, newApi], 10)
      await until("held deliveries", async () => (await deliveries("/one")).filter(({ status }) => status === "HELD").length === 5)
    })

    test("a delivery that began under the earlier version ends under this one", async () => {
      await Promise.all([stop(oldApi), stop(oldSender)])
      rig.app.main = newApi
      await setStatus("/one", "ACTIVE")
      await release([...begunOld.slice(10), ...begunBoth.slice(0, 5)])
      await feed([newApi], 10)
      begunNew = (await waiting(20)).filter((id) => !begunBoth.includes(id))
      await settled(20)
      await setStatus("/one", "PAUSED")
      await feed([newApi], 10)
      await until("held deliveries", async () => (await deliveries("/one")).filter(({ status }) => status === "HELD").length === 5)
    })

    test("after a rollback, a delivery that began under this version ends under the earlier one", async () => {
      ;[oldApi, oldSender] = await startBoth(OLD)
      await Promise.all([stop(newApi), stop(newSender)])
      rig.app.main = oldApi
      await setStatus("/one", "ACTIVE")
      await release([...begunNew, ...begunBoth.slice(5)])
      await feed([oldApi], 10)
    })

    test.skipIf(!long)(
      `${ROUNDS} times one of four processes is replaced by either version: nothing is lost`,
      async () => {
        const random = randoms()
        const either = (): Version => (random() < 0.5 ? OLD : NEW)
        const apis: Array<Process> = [oldApi, await start(NEW, ["api"])]
        const senders: Array<Process> = [oldSender, await start(NEW, SENDER)]
        let feeding = true
        const fed = (async () => {
          for (let turn = 0; feeding; turn++) {
            rig.app.main = apis[turn % apis.length]
            await rig.feed(10, 100)
          }
        })()
        for (let round = 0; round < ROUNDS; round++) {
          const [processes, roles] = random() < 0.5 ? [apis, ["api"]] : [senders, SENDER]
          const at = random() < 0.5 ? 0 : 1
          const [victim, other] = [processes[at], processes[1 - at]]
          if (victim === undefined || other === undefined) throw new Error("there are no two")
          // Until it is replaced, the other API takes all records.
          processes[at] = other
          if (processes === apis) rig.app.main = other
          await victim.end("SIGKILL")
          processes[at] = await start(either(), roles)
          await Bun.sleep(random() * 3_000)
        }
        feeding = false
        await fed
        ;[oldApi, newApi] = [apis[0] ?? oldApi, apis[1] ?? newApi]
        ;[oldSender, newSender] = [senders[0] ?? oldSender, senders[1] ?? newSender]
        await Promise.all([newApi, newSender].map((one) => one.end()))
      },
      600_000
    )

    test("in the end nothing is lost and no workflow task has failed", async () => {
      const [apiAgain, senderAgain] = await startBoth(NEW)
      await Promise.all([oldApi.end(), oldSender.end()])
      rig.app.main = apiAgain
      const ids = (await deliveries("/two")).flatMap(({ id, status }) => (status === "DELIVERED" ? [] : [id]))
      for (const id of ids) released.add(id)
      await until(
        "everything is delivered",
        async () => {
          const left = (await deliveries("/two")).filter(({ status }) => status !== "DELIVERED")
          for (const { id } of left)
            await temporalServer?.client.workflow
              .getHandle(id)
              .signal("retryNow")
              .catch(() => {})
          return left.length === 0
        },
        long ? 400 : 120
      )
      await settled(0)
      const history = await rig.history()
      report("rolling upgrade", history)
      expect(history).toMatchObject({ ...sound, events: rig.acknowledged.size, deliveries: rig.acknowledged.size * 1.5 })
      if (!long) expect(history.repeated).toBe(0)
      expect(await failedTasks()).toEqual([])
      await Promise.all([stop(apiAgain), stop(senderAgain)])
    })
  }
)
