/** The programs of docs/examples that feed the service from a platform's outbox: killed, refused and restarted. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as path from "node:path"
import { Effect } from "effect"
import pg from "pg"
import { useApp } from "../../support/app.ts"
import { documentText } from "../../support/document.ts"
import { freePort } from "../../support/freePort.ts"
import { Gateway } from "../../support/Gateway.ts"
import { impatient, maven, outcome, python } from "../../support/languages.ts"
import { refuseOne, untilOneWaits, whileLocked } from "../../support/lockedLedger.ts"
import { until } from "../../support/receiver.ts"
import { asset, balance, hash, smallest, transaction, user, vault } from "../../support/records.ts"
import { dropDatabase, freshDatabase } from "../../support/servers.ts"

const examples = path.resolve(import.meta.dir, "../../../docs/examples")
const HISTORY = 1_200,
  NEW = 1_000

const driver = await maven("org.postgresql", "postgresql", "42.7.14", "baac8f9ea24ee785f4b7d378af74eda162fa47f21a9074f0c20d2de7e394b0d8")
const { interpreter, without } = await python(["psycopg==3.3.9", "psycopg-binary==3.3.9"])

/** The URL of a database as Java's driver takes it. */
const jdbc = (url: string) => {
  const { host, password, pathname, username } = new URL(url)
  return `jdbc:postgresql://${host}${pathname}?user=${username}&password=${password}`
}

const languages = [
  { name: "python", skipped: without, command: [interpreter, "feed.py"], database: (url: string) => url },
  { name: "typescript", skipped: "", command: [process.execPath, "feed.ts"], database: (url: string) => url },
  { name: "java", skipped: driver.without, command: ["java", "-cp", `${driver.jars}/*`, "Feed.java"], database: jdbc }
]

/** Its own ones, which no other process takes while the service is restarted. */
const [port, platformPort] = await Effect.runPromise(Effect.all([freePort, freePort]))
const ports = { PORT: String(port), PLATFORM_PORT: String(platformPort) }
const app = useApp(["api"], ports)
const gateway = new Gateway(app)
afterAll(() => gateway.stop())

for (const [index, { command, database, name, skipped }] of languages.entries()) {
  describe.skipIf(skipped !== "")(`the example in ${name}${skipped}`, () => {
    const ours = `vault_${name}`
    const first = index * 100_000
    let platform: pg.Client
    let env: { readonly [name: string]: string } = {}
    let url = ""
    let child: ReturnType<typeof Bun.spawn<"ignore", "ignore", "pipe">> | undefined

    const start = (cwd = examples) => {
      child = Bun.spawn([...command], { cwd, env: { ...process.env, ...env }, stdin: "ignore", stdout: "ignore", stderr: "pipe" })
      return child
    }
    const kill = async () => {
      child?.kill("SIGKILL")
      await child?.exited
    }
    const insert = (records: ReadonlyArray<object>, history = false) =>
      platform.query(
        "INSERT INTO custody_outbox (record, history) SELECT r, $2 FROM jsonb_array_elements($1) WITH ORDINALITY a (r, n) ORDER BY n",
        [JSON.stringify(records), history]
      )
    const count = async (where: string) => (await platform.query(`SELECT count(*)::int AS n FROM custody_outbox WHERE ${where}`)).rows[0].n
    const allSent = () => until("everything is sent", async () => (await count("sent_at IS NULL")) === 0)
    const events = () =>
      app.sql(
        `SELECT kind, count(*)::int AS events, count(DISTINCT payload::json -> 'data' -> 'transaction' ->> 'hash')::int AS hashes
         FROM events WHERE vault_id = $1 AND kind LIKE 'transaction.%' GROUP BY kind ORDER BY kind`,
        [ours]
      )
    const reconciled = () => outcome([...command, "reconcile"], { cwd: examples, env })

    beforeAll(async () => {
      url = await freshDatabase()
      platform = new pg.Client({ connectionString: url })
      await platform.connect()
      await platform.query(documentText("docs/examples/outbox.sql"))
      await insert([...smallest(), vault(ours, "entity_a"), user(`user_${name}`, "org_a", ["vault_a", ours])], true)
      await insert(
        Array.from({ length: HISTORY }, (_, number) => transaction(ours, first + number)),
        true
      )
      // A balance changes, and its record has its time, before its history is sent.
      await insert([balance(ours, "ethereum/native", "100")], true)
      await insert([{ ...balance(ours, "ethereum/native", "10"), occurredAt: new Date(Date.now() + 1).toISOString() }])
      env = {
        DATABASE: database(url),
        PLATFORM: app.main?.platformUrl ?? "",
        PLATFORM_TOKEN: app.env["PLATFORM_TOKEN"] ?? "",
        CUSTODY_URL: app.main?.baseUrl ?? ""
      }
    })
    afterAll(async () => {
      await kill()
      await platform.end()
      await dropDatabase(url)
    })

    test("sends history and then news, killed in between: nothing is missing, nothing comes twice", async () => {
      await whileLocked(app, async () => {
        start()
        await untilOneWaits(app)
        await kill()
      })
      expect(await count("batch IS NOT NULL AND sent_at IS NULL")).toBeGreaterThan(0)
      start()
      const news = async (from: number, step: number) => {
        const writer = new pg.Client({ connectionString: url })
        await writer.connect()
        for (let number = from; number < NEW; number += step) {
          const states = ["pending", "confirmed"].map((status) => transaction(ours, first + 50_000 + number, { status }))
          await writer.query("INSERT INTO custody_outbox (record) VALUES ($1), ($2)", states)
        }
        await writer.end()
      }
      const writing = Promise.all([0, 1, 2].map((from) => news(from, 3)))
      await until("news are sent", async () => (await count("sent_at IS NOT NULL AND NOT history")) > 0)
      await kill()
      await writing
      start()
      await allSent()
      // Killed after a batch was applied, before its answer was noted.
      await kill()
      await platform.query(
        "UPDATE custody_outbox SET sent_at = NULL WHERE batch = (SELECT batch FROM custody_outbox ORDER BY id DESC LIMIT 1)"
      )
      start()
      await allSent()
      expect(await events()).toEqual([
        { kind: "transaction.confirmed", events: NEW, hashes: NEW },
        { kind: "transaction.pending", events: NEW, hashes: NEW }
      ])
      expect(await app.sql("SELECT count(*)::int AS rows FROM transactions WHERE vault_id = $1", [ours])).toEqual([{ rows: HISTORY + NEW }])
      expect(await app.sql("SELECT amount::text FROM balances WHERE vault_id = $1", [ours])).toEqual([{ amount: "10" }])
    })

    test("goes on by itself after a 503 and after a restart of the service", async () => {
      await whileLocked(app, async () => {
        await insert([transaction(ours, first + 60_000, { status: "pending" }), transaction(ours, first + 60_000)])
        await refuseOne(app)
      })
      await allSent()

      await app.main?.end("SIGKILL")
      await insert([transaction(ours, first + 60_001, { status: "pending" }), transaction(ours, first + 60_001)])
      app.main = await app.start(["api"])
      await allSent()
      expect((await events()).map(({ events }) => events)).toEqual([NEW + 2, NEW + 2])
    })

    test("stops at a refused batch with its reason, and sends it when it is corrected", async () => {
      const wrong = transaction(ours, first + 70_000, { amount: "-1" })
      const running = child
      await insert([transaction(ours, first + 70_001), wrong])
      expect(await running?.exited).toBe(1)
      expect(await new Response(running?.stderr).text()).toContain("line 2: amount must be a decimal string")
      await platform.query("UPDATE custody_outbox SET record = jsonb_set(record, '{amount}', '\"1\"') WHERE record->>'hash' = $1", [
        hash(first + 70_000)
      ])
      start()
      await allSent()
    })

    test("sends large records in several batches, and later history in its place", async () => {
      const users = [0, 1, 2].map((number) => `user_${name}_${number}`)
      await platform.query("BEGIN")
      await insert([balance(ours, "ethereum/native", "1")])
      await insert(
        // Two of them are more than the service accepts.
        users.map((id) => user(id, "org_a", Array(50_000).fill(ours))),
        true
      )
      await insert(users.map((id) => user(id, "org_a", [], { status: "deactivated" })))
      await platform.query("COMMIT")
      await allSent()
      expect(await app.sql("SELECT DISTINCT status FROM users WHERE id = ANY($1)", [users])).toEqual([{ status: "deactivated" }])
    })

    test("takes no answer of a gateway for the service's, and sends no token elsewhere", async () => {
      await kill()
      await insert([transaction(ours, first + 80_000)])
      env = { ...env, PLATFORM: gateway.url }
      for (const page of [gateway.redirect, gateway.badRequest]) {
        gateway.instead = page
        const stopped = start()
        expect(await stopped.exited).toBe(1)
        expect(await new Response(stopped.stderr).text()).toContain(`was refused: ${page().status}`)
      }
      gateway.instead = gateway.maintenance
      start(impatient(command.at(-1) ?? ""))
      for (const page of [gateway.maintenance, gateway.acknowledgement, gateway.stalled]) {
        gateway.instead = page
        const before = gateway.answered
        await until("a batch is sent again", () => gateway.answered > before + 2)
      }
      expect(await count("sent_at IS NULL")).toBe(1)
      gateway.instead = undefined
      await allSent()
      expect(gateway.strays).toEqual([])
    })

    test("reconciles each vault, and names transactions that differ", async () => {
      env = { ...env, CUSTODY_API_KEY: (await app.key(`user_${name}`)).secret }
      // Other texts of the same values: upper case, trailing zeros, more decimal places of a second, and no index.
      const token = `ethereum/erc20:0x${"AB".repeat(20)}`
      const timestamp = "2024-06-01T12:00:00.0009999Z"
      const { index, ...other } = transaction(ours, first + 68_284, { asset: token, amount: "1.500", timestamp })
      await insert([
        asset(token),
        // The last record leaves the fee out.
        { ...other, index, status: "pending", fee: { asset: "ethereum/native", amount: "0.10" } },
        {
          ...other,
          hash: `0x${hash(first + 68_284)
            .slice(2)
            .toUpperCase()}`
        }
      ])
      await allSent()
      const equal = await reconciled()
      expect([equal.code, equal.error]).toEqual([0, ""])
      expect(equal.out).toContain(ours)
      expect(equal.out).toContain(String(HISTORY + NEW + 6))
      const time = "2024-06-01T12:00:00.000Z"
      const here = [
        [{ amount: "3" }, `3 ${time}`],
        [{ timestamp: "2024-06-01T12:00:00.001Z" }, "1 2024-06-01T12:00:00.001Z"],
        [{ fee: { asset: "ethereum/native", amount: "0.0001" } }, `1 ${time} ethereum/native 0.0001`]
      ] as const
      for (const [number, [changed]] of here.entries())
        await platform.query("UPDATE custody_outbox SET record = record || $2 WHERE record->>'hash' = $1", [hash(first + number), changed])
      const different = await reconciled()
      expect(different.code).toBe(1)
      for (const [number, [, values]] of here.entries()) {
        expect(different.out).toContain(`only here: ethereum ${hash(first + number)} inbound confirmed ethereum/native ${values}`)
        expect(different.out).toContain(`only there: ethereum ${hash(first + number)} inbound confirmed ethereum/native 1 ${time}`)
      }
    })
  })
}
