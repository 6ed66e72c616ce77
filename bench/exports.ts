/**
 * `bun run bench exports [--quick]`: a vault's million transactions as NDJSON and as CSV: rows a second, the memory growth of
 * the process, and the effect on a client that reads pages meanwhile. Floor: the rows' stored text from a cursor of `pg`
 * through `Bun.serve`; for the reads, the same reads alone. C-6.
 */

import { residentMb } from "./support/cpu.ts"
import { percentile } from "./support/deliveries.ts"
import { options } from "./support/options.ts"
import { reader } from "./support/reader.ts"
import { announced, database, embedded, end, environment, median, start } from "./support/servers.ts"
import { loadVault, seedTransactions, VAULT } from "./support/vaultRows.ts"

const ROWS = options.quick ? 100_000 : 1_000_000,
  ROUNDS = options.quick ? 1 : 2,
  ALONE_MS = 10_000
/** Exports before memory is measured: memory that a process keeps after its first ones does not count as growth. */
const WARM_UP = 1

type Started = Awaited<ReturnType<typeof start<{ readonly port: number }>>>

/** Runs one export; its rate, and by how much the process of the server grew at most, in MB. */
const exported = async ({ port, process: { pid = 0 } }: Started, path: string, key: string) => {
  const before = residentMb(pid)
  let most = before
  const watch = setInterval(() => {
    most = Math.max(most, residentMb(pid))
  }, 20)
  const client = Bun.spawn([process.execPath, `${import.meta.dir}/support/exportClient.ts`, JSON.stringify({ port, path, key })], {
    stderr: "inherit"
  })
  const text = await new Response(client.stdout).text()
  clearInterval(watch)
  const { firstByteMs, lines, seconds }: { readonly lines: number; readonly seconds: number; readonly firstByteMs: number } =
    JSON.parse(text)
  if (lines < ROWS) throw new Error(`the file had ${lines} lines`)
  return { rowsPerSecond: Math.round(lines / seconds), grownMb: most - before, residentMb: most, firstByteMs }
}

try {
  const env = environment()
  const ours = await start("src/main.ts", ["start", "--roles", "api"], env, announced)
  const key = await loadVault(env)
  const client = await database()
  await client.query("SET timezone = 'UTC'")
  await seedTransactions(client, 0, ROWS)
  const floor = await start("bench/support/exportsFloor.ts", [], { ...env, DATABASE_URL: embedded().databaseUrl }, (line) =>
    line.startsWith("{") ? (JSON.parse(line) as { readonly port: number }) : undefined
  )
  const of = (format: string) => `/v1/vaults/${VAULT}/transactions/export?format=${format}`
  const reading = () => reader(ours.port, key, `/v1/vaults/${VAULT}/transactions?limit=20`)
  const alone = async () => {
    const reads = reading()
    await Bun.sleep(ALONE_MS)
    return reads()
  }

  for (let warm = 0; warm < WARM_UP; warm++) {
    for (const format of ["ndjson", "csv"]) await exported(ours, of(format), key)
    await exported(floor, of("ndjson"), key)
  }
  await alone()
  const idle = [...(await alone())]
  const table: Array<Record<string, unknown>> = []
  const floors: Array<number> = []
  for (const format of ["ndjson", "csv"]) {
    const runs: Array<Awaited<ReturnType<typeof exported>>> = []
    const beside: Array<number> = []
    for (let round = 0; round < ROUNDS; round++) {
      floors.push((await exported(floor, of("ndjson"), key)).rowsPerSecond)
      await Bun.sleep(1_000)
      runs.push(await exported(ours, of(format), key))
      await Bun.sleep(1_000)
      const reads = reading()
      await exported(ours, of(format), key)
      beside.push(...(await reads()))
    }
    idle.push(...(await alone()))
    const rowsPerSecond = median(runs.map((run) => run.rowsPerSecond))
    table.push({
      format,
      rows: ROWS,
      floorRowsPerSecond: median(floors),
      rowsPerSecond,
      ratio: Math.round((rowsPerSecond / median(floors)) * 100) / 100,
      firstByteMs: median(runs.map((run) => run.firstByteMs)),
      grownMb: Math.max(...runs.map((run) => run.grownMb)),
      residentMb: Math.max(...runs.map((run) => run.residentMb)),
      readsBeside: beside.length,
      readP50BesideMs: percentile(beside, 0.5),
      readP99BesideMs: percentile(beside, 0.99)
    })
  }
  const reads = { readP50AloneMs: percentile(idle, 0.5), readP99AloneMs: percentile(idle, 0.99) }
  const results = table.map((row) => ({
    ...row,
    ...reads,
    readP99Ratio: Math.round((Number(row["readP99BesideMs"]) / reads.readP99AloneMs) * 100) / 100
  }))
  await client.end()
  console.log(JSON.stringify({ bench: "exports", rounds: ROUNDS, results }, null, 2))
  console.table(Object.fromEntries(results.map(({ format, ...row }: Record<string, unknown>) => [String(format), row])))
} finally {
  await end()
}
