/**
 * `bun run bench startup`: the time from `custody start` on a prepared data directory until it is ready, with embedded
 * servers that it must start and with running ones; the memory of the process at rest; and how long a command takes that
 * only uses the database.
 */
import { residentMb } from "./support/cpu.ts"
import { announced, custody, end, environment, median, start } from "./support/servers.ts"

const ROUNDS = 5
const REST_MS = 10_000

const once = async () => {
  const startedAt = performance.now()
  const { process } = await start("src/main.ts", ["start"], environment(), announced)
  return { process, ms: Math.round(performance.now() - startedAt) }
}
const stop = (process: Awaited<ReturnType<typeof once>>["process"]) =>
  new Promise<number>((resolve) => {
    const startedAt = performance.now()
    process.once("exit", () => resolve(Math.round(performance.now() - startedAt)))
    process.kill("SIGTERM")
  })

try {
  const first = await once()
  await stop(first.process)
  const cold: Array<number> = [],
    stops: Array<number> = [],
    memory: Array<number> = [],
    commands: Array<number> = []
  for (let round = 0; round < ROUNDS; round++) {
    const { ms, process } = await once()
    cold.push(ms)
    await Bun.sleep(REST_MS)
    memory.push(residentMb(process.pid ?? 0))
    const askedAt = performance.now()
    await custody(["keys", "list"], environment())
    commands.push(Math.round(performance.now() - askedAt))
    stops.push(await stop(process))
  }
  const results = {
    firstStartMs: first.ms,
    preparedStartMs: median(cold),
    slowestPreparedStartMs: Math.max(...cold),
    stopMs: median(stops),
    restMb: median(memory),
    keysListMs: median(commands)
  }
  console.log(JSON.stringify({ bench: "startup", rounds: ROUNDS, cold, stops, memory, commands, results }, null, 2))
  console.table(results)
} finally {
  await end()
}
