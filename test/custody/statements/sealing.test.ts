/**
 * Sealing in operation: by the schedule on a real Temporal server, with workers that are killed halfway, in
 * parts, and by several sealers at once. C-6.
 */
import { beforeAll, describe, expect, setSystemTime, test } from "bun:test"
import { Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { type SigningKeySet, verifyStatementChain } from "../../../src/client/index.ts"
import { StatementSealer } from "../../../src/custody/statements/StatementSealer.ts"
import { masterKeyLayer } from "../../../src/runtime/crypto/MasterKey.ts"
import { SigningKeys } from "../../../src/runtime/crypto/SigningKeys.ts"
import * as Database from "../../../src/runtime/database/Database.ts"
import { DataDir } from "../../../src/runtime/embedded/DataDir.ts"
import { cli, useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { settingsOf } from "../../support/servers.ts"
import { describeSchedule, operator } from "../../support/temporal.ts"
import { beginDay, dayOf, ETH, timeOf, useStatements } from "./statementFixtures.ts"

await beginDay()

const VAULTS = 30,
  DAYS = 120
const settings = { STATEMENT_DELAY: "0s", STATEMENT_HISTORY: `${DAYS}d` }
const app = useApp(["api"], settings)
const { fresh, get, list, revisions, seal } = useStatements(app)
const vaults: Array<string> = []
let keys: SigningKeySet

beforeAll(async () => {
  for (let vault = 0; vault < VAULTS; vault++) vaults.push(await fresh())
  await app.feed(
    vaults.flatMap((vaultId) => [
      { type: "balance", vaultId, asset: ETH, amount: "1", occurredAt: timeOf(-DAYS + 2, "12:00:00.000") },
      { type: "balance", vaultId, asset: ETH, amount: "2", occurredAt: timeOf(-2, "12:00:00.000") }
    ]),
    { "x-record-events": "none" }
  )
  keys = (await app.get("/v1/jwks.json")).json
})

const sealedCount = async () => Number((await app.sql("SELECT count(*)::int AS count FROM statements"))[0]?.["count"])
/** Every day of every vault is sealed once, and each chain verifies. */
const whole = async () => {
  for (const id of vaults) {
    const all = await revisions(id)
    expect([id, all.map((one) => [one.date, one.revision])]).toEqual([id, Array.from({ length: DAYS }, (_, day) => [dayOf(-1 - day), 1])])
    expect(await verifyStatementChain(all, keys)).toMatchObject({ valid: true, statements: DAYS, previousHash: null })
  }
}

/** The sealer on this test's database, as in a worker. */
const sealer = <A>(use: (sealer: StatementSealer) => Effect.Effect<A>): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(StatementSealer, use).pipe(
      Effect.provide(Layer.provide(StatementSealer.layer, SigningKeys.layer)),
      Effect.provide(Database.layer(Redacted.make(app.databaseUrl), Database.pools.command)),
      Effect.provide(Layer.provideMerge(masterKeyLayer, DataDir.layer)),
      Effect.provide(settingsOf(app.env["DATA_DIR"] ?? "", Object.entries(app.env)))
    )
  )

describe("sealing statements", () => {
  test("continues where a killed worker stopped, and seals every day once", async () => {
    const { client, close } = await operator()
    const queue = app.env["TEMPORAL_TASK_QUEUE"] ?? ""
    const worker = await app.start(["worker"])
    const scheduleId = `custody-seal-statements-${queue}`
    await describeSchedule(client, scheduleId)
    // One vault cannot be sealed before the kill, however quick the worker is.
    const holder = new pg.Client({ connectionString: app.databaseUrl })
    await holder.connect()
    await holder.query("BEGIN")
    await holder.query("INSERT INTO statement_chains (vault_id, first_date, next_date) VALUES ($1, $2, $2)", [vaults.at(-1), dayOf(-DAYS)])
    await client.schedule.getHandle(scheduleId).trigger()
    await until("the first statements", async () => (await sealedCount()) > 20)
    await worker.end("SIGKILL")
    const killedAt = await sealedCount()
    await holder.query("ROLLBACK")
    await holder.end()
    expect(killedAt).toBeLessThan(VAULTS * DAYS)
    const second = await app.start(["worker"])
    // The schedule runs within a minute, and the killed worker's part is repeated within the heartbeat timeout.
    await until("every statement", async () => (await sealedCount()) >= (VAULTS + 1) * DAYS, 240)
    await whole()
    const { action, info, policies, spec } = (await describeSchedule(client, scheduleId)) as Awaited<
      ReturnType<typeof describeSchedule>
    > & {
      readonly action: { readonly args?: ReadonlyArray<unknown> }
      readonly policies: { readonly overlap: string }
    }
    // An argument would stay encrypted with a key that is rotated.
    expect(action.args ?? []).toEqual([])
    expect([policies.overlap, spec.intervals?.map(({ every }) => every)]).toEqual(["SKIP", [60_000]])
    expect(info.runningActions.length).toBeLessThanOrEqual(1)
    await close()
    await second.end()
  })

  test("seals no day that only the clock of Postgres has ended", async () => {
    const id = await fresh()
    const newest = async () => {
      await sealer((one) => one.seal("", 60_000))
      return (await list(id))[0]?.date
    }
    // Beside this process, Postgres is ahead by a day.
    setSystemTime(Date.now() - 86_400_000)
    try {
      expect(await newest()).toBe(dayOf(-2))
    } finally {
      setSystemTime()
    }
    expect(await newest()).toBe(dayOf(-1))
  })

  test("runs in parts, each of which continues where the last ran out of time", async () => {
    // A late record: every day since then is compared again.
    await app.feed(
      vaults.map((vaultId) => ({ type: "balance", vaultId, asset: ETH, amount: "7", occurredAt: timeOf(-DAYS, "00:00:00.000") }))
    )
    let parts = 0,
      revised = 0
    for (let after: string | null = ""; after !== null; parts++) {
      const from: string = after
      const part = await sealer((one) => one.seal(from, 20 * 1.5 ** parts))
      expect(part.failed).toBe(0)
      revised += part.revised
      after = part.after
    }
    expect(parts).toBeGreaterThan(2)
    // The days between the late record and the one after it changed.
    expect(revised).toBeLessThanOrEqual(VAULTS * 3)
    for (const id of vaults.slice(0, 3)) {
      const all = await revisions(id)
      expect(await verifyStatementChain(all, keys)).toMatchObject({ valid: true, previousHash: null })
      expect((await get(id, `/${dayOf(-DAYS)}`)).json.assets[0].closing).toBe("7")
    }
    expect(await seal()).toEqual({ sealed: 0, revised: 0, failed: 0 })
  })

  test("by several processes at once seals each day once", async () => {
    const more: Array<string> = []
    for (let vault = 0; vault < 4; vault++) more.push(await fresh())
    const results = await Promise.all([seal(), seal(), sealer((one) => one.seal("", 10_000))])
    expect(results.reduce((sum, { sealed }) => sum + sealed, 0)).toBe(more.length * DAYS)
    for (const id of more) expect(await verifyStatementChain(await revisions(id), keys)).toMatchObject({ valid: true, statements: DAYS })
  })

  test("a record that arrives while its day is being sealed is not lost", async () => {
    const id = await fresh()
    await seal()
    const DAY = dayOf(-1)
    // A sealer that has read the day's lines but not committed yet: it holds the organization's stream.
    await app.sql("DELETE FROM statements WHERE vault_id = $1 AND date = $2", [id, DAY])
    await app.sql("UPDATE statement_chains SET next_date = $2, last_hash = NULL WHERE vault_id = $1", [id, DAY])
    const one = new pg.Client({ connectionString: app.databaseUrl })
    await one.connect()
    await one.query("BEGIN")
    await one.query("SELECT 1 FROM event_streams WHERE organization_id = 'org_a' FOR UPDATE")
    await one.query(
      `INSERT INTO statements (vault_id, date, revision, sealed_at, previous_hash, hash, assets, jws) VALUES ($1, $2, 1, now(), NULL, $3, '[]', 'x')`,
      [id, DAY, "0".repeat(64)]
    )
    await one.query("UPDATE statement_chains SET next_date = $2::date + 1 WHERE vault_id = $1", [id, DAY])
    const fed = app.feed([{ type: "balance", vaultId: id, asset: ETH, amount: "5", occurredAt: `${DAY}T12:00:00.000Z` }])
    await until(
      "the ledger's wait",
      async () =>
        Number(
          (
            await app.sql(
              "SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%event_streams%'"
            )
          )[0]?.["count"]
        ) > 0
    )
    await one.query("COMMIT")
    await one.end()
    await fed
    await seal()
    const [newest] = await list(id)
    expect([newest.date, newest.revision, newest.assets[0]?.closing]).toEqual([DAY, 2, "5"])
  })

  test("a day that was sealed too early is revised once, after its end", async () => {
    const id = await fresh()
    await seal()
    const day = `/${dayOf(-1)}`
    const arrives = (amount: string) =>
      app.feed([{ type: "balance", vaultId: id, asset: ETH, amount, occurredAt: timeOf(-1, `0${amount}:00:00.000`) }])
    // The clock is back in the day that was sealed.
    setSystemTime(Date.now() - 86_400_000)
    try {
      for (const amount of ["5", "6"]) {
        await arrives(amount)
        await sealer((one) => one.seal("", 60_000))
        expect((await get(id, day)).json).toMatchObject({ revision: 1, assets: [] })
      }
    } finally {
      setSystemTime()
    }
    await sealer((one) => one.seal("", 60_000))
    expect((await get(id, day)).json).toMatchObject({ revision: 2, assets: [{ asset: ETH, closing: "6" }] })

    // The same in Postgres' own day: the record is noted for when it is over.
    const sealedUpTo = (to: string) => app.sql("UPDATE statement_chains SET next_date = $2 WHERE vault_id = $1", [id, to])
    await sealedUpTo(dayOf(1))
    await app.feed([{ type: "balance", vaultId: id, asset: ETH, amount: "7", occurredAt: timeOf(0, "00:00:00.000") }])
    await seal()
    expect(await app.sql("SELECT date::text, cause FROM statement_changes WHERE vault_id = $1", [id])).toEqual([
      { date: dayOf(0), cause: expect.any(String) }
    ])
    await sealedUpTo(dayOf(0))
  })

  test("that is overdue is reported by the doctor, by readiness and by a metric", async () => {
    const doctor = async () => {
      const { code, stdout } = await cli(["doctor", "--json"], app.env)
      expect(code).toBe(0)
      const findings: ReadonlyArray<{ readonly subject: string; readonly state: string; readonly says: string }> =
        JSON.parse(stdout).findings
      return (subject: string) => findings.filter((one) => one.subject === subject).map(({ says, state }) => `${state}: ${says}`)
    }
    const overdue = async () => {
      const at = app.main?.platformUrl
      const { oldestOverdueStatementSeconds } = (await (await fetch(`${at}/health/ready`)).json()) as {
        oldestOverdueStatementSeconds: number
      }
      const metric = /^custody_oldest_overdue_statement_seconds (.*)$/m.exec(await (await fetch(`${at}/metrics`)).text())?.[1]
      return [oldestOverdueStatementSeconds, Number(metric)]
    }
    const well = await doctor()
    expect(well("Signing key")).toEqual([`well: ${keys.keys[0]?.kid} is published`])
    expect(well("Statements")).toEqual([`well: sealed for every vault up to ${dayOf(-1)}`])
    expect(await overdue()).toEqual([0, 0])
    await app.sql("UPDATE statement_chains SET next_date = next_date - 3 WHERE vault_id = $1", [vaults[0]])
    expect((await doctor())("Statements")).toEqual([
      expect.stringMatching(new RegExp(`^notice: The statements of ${dayOf(-3)} are not sealed for every vault`))
    ])
    for (const seconds of await overdue()) expect(Math.floor(seconds / 86_400)).toBe(2)
    // Those days have their statements: another one cannot be sealed.
    const failed = await cli(["statements", "seal"], app.env)
    expect([failed.code, JSON.parse(failed.stdout)]).toEqual([1, { sealed: 0, revised: 0, failed: 1 }])
    expect(failed.stderr).toContain("Vaults whose statements could not be sealed: 1.")
    await app.sql("UPDATE statement_chains SET next_date = next_date + 3 WHERE vault_id = $1", [vaults[0]])
  })
})
