/** Graceful shutdown: SIGTERM and SIGINT stop accepting connections, finish requests in flight, and exit with code 0. */
import { beforeAll, describe, expect, test } from "bun:test"
import * as net from "node:net"
import pg from "pg"
import { type Process, useApp } from "../../support/app.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction } from "../../support/records.ts"

const app = useApp([])
let key = ""

beforeAll(async () => {
  const first = await app.start(["api"])
  app.main = first
  await app.feed(smallest())
  key = (await app.key("user_a")).secret
  expect(await first.end()).toBe(0)
})

const read = (process: Process) => fetch(`${process.baseUrl}/v1/vaults`, { headers: { authorization: `Bearer ${key}` } })

/** A batch that reads a vault; it waits longer for a lock than a read does. */
const feed = (process: Process) =>
  fetch(`${process.platformUrl}/platform/v1/records`, {
    method: "POST",
    body: JSON.stringify(transaction("vault_a", 1)),
    headers: { authorization: `Bearer ${app.env.PLATFORM_TOKEN}` }
  })

/** Holds a lock that every read of vaults waits for, until released. */
const hold = async () => {
  const client = new pg.Client({ connectionString: app.databaseUrl })
  await client.connect()
  await client.query("BEGIN")
  await client.query("LOCK TABLE vaults IN ACCESS EXCLUSIVE MODE")
  return async () => {
    await client.query("COMMIT")
    await client.end()
  }
}
const waiting = (wanted: number) =>
  until("requests that wait in the database", async () => {
    const waits = await app.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
    return waits.length >= wanted
  })

describe("graceful shutdown", () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    /** The responses to requests in flight. */
    const endWhileAsked = async () => {
      const process = await app.start(["api"])
      const { hostname, port } = new URL(process.baseUrl)
      // An idle connection that is kept open after a response.
      const idle = net.connect(Number(port), hostname, () => idle.write("GET /v1/docs HTTP/1.1\r\nHost: localhost\r\n\r\n"))
      const idleClosed = new Promise<number>((resolve) => idle.once("close", () => resolve(performance.now())))
      await new Promise((resolve) => idle.on("data", resolve))
      const release = await hold()
      const answers = Array.from({ length: 5 }, () =>
        read(process).then(async (answer) => [answer.status, (await answer.json()) as unknown])
      )
      await Promise.race([waiting(5), Promise.all(answers)])
      const begun = performance.now()
      const ended = process.end(signal)
      expect((await idleClosed) - begun).toBeLessThan(10_000)
      const refused = await read(process).then(
        ({ status }) => status,
        () => "refused"
      )
      expect(refused).toBe("refused")
      const runs = process.child.exitCode === null
      await release()
      const responses = await Promise.all(answers)
      expect(await ended).toBe(0)
      expect(performance.now() - begun).toBeLessThan(20_000)
      return { responses, runs }
    }
    test(`${signal}: requests in flight get 200, new connections are refused, the exit code is 0`, async () => {
      let got = await endWhileAsked()
      // On a machine that pauses, a read waits for the lock for longer than the two seconds that it may.
      for (let again = 0; got.responses.some(([status]) => status === 503) && again < 5; again++) got = await endWhileAsked()
      expect(got.runs).toBe(true)
      for (const [status, body] of got.responses) {
        expect(status).toBe(200)
        expect(body).toMatchObject({ data: [{ id: "vault_a" }] })
      }
    })
  }

  for (const [after, what, code] of [
    [1_500, "a second signal does not wait", 143],
    [200, "a second signal within a second is ignored, because a shell or a package runner passes on the same one", 0]
  ] as const) {
    /** The exit code after two signals. */
    const codeAfterTwo = async () => {
      const process = await app.start(["api"])
      const release = await hold()
      const answer = feed(process).catch(() => undefined)
      await waiting(1)
      const ended = process.end("SIGTERM")
      await Bun.sleep(after)
      process.child.kill("SIGTERM")
      if (code === 0) await release()
      const got = await ended
      if (code !== 0) await release()
      await answer
      return got
    }
    test(what, async () => {
      let got = await codeAfterTwo()
      // A process that is held up sees the signals closer together, or further apart, than they were sent.
      for (let again = 0; got !== code && again < 2; again++) got = await codeAfterTwo()
      expect(got).toBe(code)
    })
  }

  test("the last use of each key and its address are written before the process exits", async () => {
    const process = await app.start(["api"])
    const before = Date.now() - 1_000
    await read(process)
    await process.end()
    const [{ address, used } = {}] = await app.sql(
      "SELECT last_used_at AS used, last_used_address AS address FROM api_keys ORDER BY last_used_at DESC NULLS LAST LIMIT 1"
    )
    expect((used as Date).getTime()).toBeGreaterThan(before)
    expect(address).toBe("127.0.0.1")
  })
})
