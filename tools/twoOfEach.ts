/**
 * Two of each process of the service, with a read replica, on a Temporal server with 512 history shards: records are fed over
 * both APIs while one process of each kind, the replica and Temporal are killed and started again. The history check of the
 * fault tests compares at the end what was acknowledged, what the API shows and what the receiver got.
 */
import { Rig } from "../test/faults/Rig.ts"
import type { Process } from "../test/support/app.ts"
import type { PostgresServer } from "../test/support/postgres.ts"
import { until } from "../test/support/receiver.ts"
import { Replica } from "../test/support/replica.ts"
import { POSTGRES, TEMPORAL, TEMPORAL_UI, urlOf } from "../test/support/servers.ts"
import type * as Temporal from "./temporalServer.ts"

interface Setup {
  readonly primary: PostgresServer
  readonly temporal: Awaited<ReturnType<typeof Temporal.start>>
  /** Root of the image's files. */
  readonly sources: string
  readonly step: <A>(what: string, work: () => Promise<A>) => Promise<A>
  readonly closers: Array<() => unknown>
}

const ROLES = ["api", "worker", "dispatcher"] as const
/** Transactions in all; half of them are fed before anything is killed. */
const EVENTS = 400

export const twoOfEach = async ({ closers, primary, sources, step, temporal }: Setup): Promise<void> => {
  Object.assign(process.env, {
    [POSTGRES]: urlOf(primary.url, "postgres"),
    [TEMPORAL]: temporal.address,
    [TEMPORAL_UI]: "http://127.0.0.1:8233"
  })
  const rig = new Rig()
  closers.push(() => rig.close())
  rig.version = sources
  // The replica is a copy of the whole primary, so the database comes first.
  const replica = new Replica(primary)
  closers.push(() => replica.stop())
  await step("a streaming replica, and the first API, which reads lists from it", async () => {
    await rig.open({}, ["api"], async (url) => {
      await replica.start()
      const readUrl = new URL(replica.url)
      readUrl.pathname = new URL(url).pathname
      rig.app.env = { ...rig.app.env, DATABASE_READ_URL: readUrl.toString() }
      return url
    })
  })
  const first = rig.app.main
  if (first === undefined) throw new Error("the API did not start")
  const processes: { [role in (typeof ROLES)[number]]: Array<Process> } = { api: [first], worker: [], dispatcher: [] }
  const start = (role: (typeof ROLES)[number]) => rig.app.start([role], {}, sources)
  await step("two of each process", async () => {
    processes.api.push(await start("api"))
    for (const role of ["worker", "dispatcher"] as const) processes[role].push(...(await Promise.all([start(role), start(role)])))
  })
  // One in ten first attempts is rejected, so that retries are in progress too.
  for (const path of rig.paths) rig.answer(path, ({ headers }) => (headers["x-service-attempt"] === "1" && Math.random() < 0.1 ? 500 : 200))

  let turn = 0
  const feed = async (count: number) => {
    for (let fed = 0; fed < count; fed += 10) {
      rig.app.main = processes.api[turn++ % processes.api.length]
      await rig.feed(10, 50)
    }
  }
  await step(`${EVENTS / 2} transactions over both APIs are delivered`, async () => {
    await feed(EVENTS / 2)
    await rig.settle()
  })
  await step("lists come from the replica", () =>
    until(
      "a read from it",
      async () => {
        await rig.app.get("/v1/vaults", rig.key)
        const metrics = await (await fetch(`${rig.app.main?.platformUrl}/metrics`)).text()
        return /^custody_list_reads_total\{.*reason="replica".*\} [1-9]/m.test(metrics)
      },
      30
    )
  )

  let feeding = true
  const fed = (async () => {
    for (let count = 0; feeding || count < EVENTS / 2; count += 10) await feed(10)
  })()
  const faults = async () => {
    for (const role of ROLES)
      await step(`one ${role} of two is killed and replaced while records are fed`, async () => {
        const [victim, other] = processes[role]
        if (victim === undefined || other === undefined) throw new Error(`there are no two of ${role}`)
        processes[role] = [other]
        // Requests that were not acknowledged are repeated over the other API, as a load balancer does.
        if (role === "api") rig.app.main = other
        await victim.end("SIGKILL")
        await Bun.sleep(2_000)
        processes[role] = [other, await start(role)]
      })
    await step("the replica is stopped, lists come from the primary, and it returns", async () => {
      await replica.stop()
      const answer = await rig.app.get("/v1/vaults", rig.key)
      if (answer.status !== 200) throw new Error(`a list answered ${answer.status} without the replica`)
      await replica.start()
    })
    await step("Temporal is killed and started again", temporal.crash)
  }
  await faults().finally(() => {
    feeding = false
  })
  await step("the rest is fed and delivered", async () => {
    await fed
    await rig.settle()
  })
  const history = await step("the history check", () => rig.history())
  console.log(JSON.stringify({ acknowledged: rig.acknowledged.size, ...history }))
  const { lost, unexpected, unfinished, unmatched } = history
  if (lost + unexpected + unfinished + unmatched > 0 || history.events !== rig.acknowledged.size)
    throw new Error("the history check found a difference")
}
