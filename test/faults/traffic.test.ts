/**
 * The public API under client behavior: a stop with requests in flight, thousands of connections that are slow
 * on purpose, a key that is revoked while many processes use it, and requests whose response times are compared.
 * Reliability, numbers: API drain, slow clients, revocation, foreign against absent.
 */
import { beforeAll, describe, expect, test } from "bun:test"
import * as net from "node:net"
import * as path from "node:path"
import { Effect } from "effect"
import { ApiKeys } from "../../src/access/keys/ApiKeys.ts"
import { type Process, useApp } from "../support/app.ts"
import { create, fields, useKeys } from "../support/webhookFixtures.ts"
import { long, report } from "./Rig.ts"

const app = useApp()
const keys = useKeys(app)
let webhookId = ""

beforeAll(async () => {
  webhookId = (await create(app, keys.stranger, { entityIds: ["entity_z"], status: "DISABLED" })).id
})

/** A connection that has sent `start`; resolves with the response and how many ms after `from` it was closed. */
const connection = (baseUrl: string, start: string) => {
  const { hostname, port } = new URL(baseUrl)
  const chunks: Array<Buffer> = []
  const socket = net.connect(Number(port), hostname, () => socket.write(start))
  socket.on("data", (chunk) => chunks.push(Buffer.from(chunk)))
  socket.on("error", () => {})
  const closed = new Promise<number>((resolve) => socket.once("close", () => resolve(performance.now())))
  return { socket, closed, text: () => Buffer.concat(chunks).toString() }
}
const lines = (method: string, path: string, key: string, more: ReadonlyArray<string> = []) =>
  [`${method} ${path} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${key}`, ...more, "", ""].join("\r\n")
const median = (values: ReadonlyArray<number>) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
const p99 = (values: ReadonlyArray<number>) => [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Number.NaN

describe("stopping: a request in flight is never cut off", () => {
  test("200 requests in flight at SIGTERM are all answered within 15 s", async () => {
    const process: Process = await app.start(["api"])
    // Their handlers have begun and wait for the rest of the body, so they are certainly in flight.
    const made = JSON.stringify(fields({ status: "DISABLED" })),
      refused = JSON.stringify({ ...fields(), colour: "red" })
    const started: Array<ReturnType<typeof connection> & { readonly rest: string; readonly makes: boolean }> = []
    for (let count = 0; count < 200; count++) {
      const makes = count % 10 === 0
      const body = makes ? made : refused
      const head = lines("POST", "/v1/webhooks", keys.owner, ["Content-Type: application/json", `Content-Length: ${body.length}`])
      started.push({ ...connection(process.baseUrl, head + body.slice(0, 10)), rest: body.slice(10), makes })
      await Bun.sleep(5)
    }
    const before = (await app.walk("/v1/webhooks", keys.owner, 500)).length
    await Bun.sleep(1_500)
    const begun = performance.now()
    const ended = process.end("SIGTERM")
    await Bun.sleep(300)
    for (const { rest, socket } of started) socket.write(rest)
    await Promise.all(started.map(({ closed }) => closed))
    // A response is complete if its body has its announced length. Whoever waits a second for a slot of
    // the organization is refused with 503, which many are if a disk is slow; none is cut off.
    const outcomes = started.map(({ makes, text }) => {
      const [head = "", body = ""] = text().split("\r\n\r\n")
      const whole = Buffer.byteLength(body) === Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? Number.NaN)
      return `${makes ? "made" : "refused"} ${whole ? head.slice(9, 12) : "cut off"}`
    })
    const tally = Object.fromEntries([...Map.groupBy(outcomes, (one) => one)].map(([outcome, all]) => [outcome, all.length]))
    expect(await ended).toBe(0)
    const seconds = (performance.now() - begun) / 1_000
    report("200 in flight at SIGTERM", { seconds, ...tally })
    expect(new Set(Object.keys(tally)).isSubsetOf(new Set(["made 201", "refused 400", "made 503", "refused 503"]))).toBe(true)
    expect((await app.walk("/v1/webhooks", keys.owner, 500)).length).toBe(before + (tally["made 201"] ?? 0))
    expect(tally["refused 400"]).toBeGreaterThan(0)
    expect(seconds).toBeLessThan(15)
  })
})

// Takes as long as the timeouts of slow clients.
describe.if(long)("slow requests", () => {
  const COUNT = 2_000

  test(`${COUNT} connections that send slowly or nothing are closed, and readers are served meanwhile`, async () => {
    const process: Process = await app.start(["api"])
    const json = ["Content-Type: application/json"]
    const kinds: ReadonlyArray<readonly [string, string]> = [
      ["", ""],
      ["GET /v1/vaults HTTP/1.1\r\nHost: localhost\r\n", ""],
      ["GET /v1/vaults HTTP/1.1\r\nX-Slow: ", "a"],
      [`${lines("POST", "/v1/webhooks", keys.owner, [...json, "Content-Length: 1000"])}{`, ""],
      [`${lines("POST", "/v1/webhooks", keys.owner, [...json, "Content-Length: 1000"])}{`, " "],
      [lines("POST", "/v1/webhooks", keys.owner, [...json, "Transfer-Encoding: chunked"]), "1\r\n \r\n"],
      [`${lines("PATCH", "/v1/webhooks/whs_absent", "no-key", [...json, "Content-Length: 1000"])}{`, " "]
    ]
    const latencies = async (count: number) => {
      const taken: Array<number> = []
      for (let asked = 0; asked < count; asked++) {
        const begun = performance.now()
        const answer = await fetch(`${process.baseUrl}/v1/vaults`, { headers: { authorization: `Bearer ${keys.owner}` } })
        await answer.text()
        expect(answer.status).toBe(200)
        taken.push(performance.now() - begun)
        await Bun.sleep(10)
      }
      return taken
    }
    await latencies(50)
    const alone = await latencies(400)
    const { hostname, port } = new URL(process.baseUrl)
    const slow = Bun.spawn(
      [globalThis.process.execPath, path.join(import.meta.dir, "slowClients.ts"), hostname, port, String(COUNT), JSON.stringify(kinds)],
      { stdout: "pipe" }
    )
    const beside = await latencies(400)
    const { lastClosedSeconds } = JSON.parse(await new Response(slow.stdout).text())
    report(`${COUNT} slow connections`, { lastClosedSeconds, aloneP99: p99(alone), besideP99: p99(beside) })
    expect(lastClosedSeconds).toBeGreaterThan(5)
    expect(lastClosedSeconds).toBeLessThan(15)
    // The goal of twice is in the report; the limit here also holds on a busy machine.
    expect(median(beside)).toBeLessThan(10 * median(alone) + 100)
    await process.end()
  })

  test("a response that takes longer than a body may is not cut off", async () => {
    // Without a worker a ping waits until it times out, with an unneeded body and without.
    const own = (await create(app, keys.owner, { status: "DISABLED" })).id
    const answers = await Promise.all(
      [{}, { body: {} }].map((body) => app.request("POST", `/v1/webhooks/${own}/ping`, { key: keys.owner, ...body }))
    )
    expect(answers.map(({ json, status }) => [status, json.code])).toEqual(answers.map(() => [503, "service_unavailable"]))
  })
})

describe("hidden and nonexistent resources", () => {
  const PAIRS = long ? 500 : 100

  for (const [name, foreign, absent] of [
    ["a vault", () => "/v1/vaults/vault_z", "/v1/vaults/vault_absent"],
    ["a vault's transactions", () => "/v1/vaults/vault_z/transactions", "/v1/vaults/vault_absent/transactions"],
    ["a webhook", () => `/v1/webhooks/${webhookId}`, "/v1/webhooks/whs_01jz0000000000000000000000"]
  ] as const)
    test(`${name}: the same bytes, and over ${PAIRS} pairs medians within a millisecond`, async () => {
      const ask = async (target: string) => {
        const begun = performance.now()
        const answer = await app.get(target, keys.owner, { "x-request-id": "same-request-id" })
        return { took: performance.now() - begun, seen: `${answer.status} ${answer.text}` }
      }
      const seen = new Set<string>()
      const gaps: Array<number> = []
      // A gap made by the service appears every time; one made by the machine does not.
      for (let round = 0; round < 20 && !gaps.some((gap) => Math.abs(gap) <= 1); round++) {
        const [theirs, nobodys]: [Array<number>, Array<number>] = [[], []]
        for (let pair = 0; pair < PAIRS; pair++) {
          for (const [target, times] of pair % 2 === 0
            ? ([
                [foreign(), theirs],
                [absent, nobodys]
              ] as const)
            : ([
                [absent, nobodys],
                [foreign(), theirs]
              ] as const)) {
            const { seen: text, took } = await ask(target)
            times.push(took)
            seen.add(text)
          }
        }
        gaps.push(median(theirs) - median(nobodys))
      }
      report(`foreign against absent: ${name}`, { pairs: PAIRS, gapsMs: gaps })
      expect([...seen].map((text) => text.slice(0, 3))).toEqual(["404"])
      expect(gaps.some((gap) => Math.abs(gap) <= 1)).toBe(true)
    })
})

// Authentication 7 is tested with two processes among the usual tests.
if (long)
  describe("revocation of a key", () => {
    test("with eight processes: no request that begins after the revocation was acknowledged succeeds", async () => {
      const processes = await Promise.all(Array.from({ length: 8 }, () => app.start(["api"])))
      let after = 0
      for (let round = 0; round < 20; round++) {
        const { key, secret } = await app.key("user_a")
        let revokedAt = Number.POSITIVE_INFINITY
        const late: Array<number> = []
        let before = 0
        const hammer = async (baseUrl: string) => {
          for (let left = 5; left > 0; ) {
            const begun = performance.now()
            const { status } = await fetch(`${baseUrl}/v1/vaults`, { headers: { authorization: `Bearer ${secret}` } })
            if (begun > revokedAt) {
              late.push(status)
              left--
            } else if (status === 200) before++
          }
        }
        const load = processes.flatMap(({ baseUrl }) => [hammer(baseUrl), hammer(baseUrl)])
        await Bun.sleep(100 + round)
        await app.run(Effect.flatMap(ApiKeys, ({ revoke }) => revoke(key.id)))
        revokedAt = performance.now()
        await Promise.all(load)
        expect(before).toBeGreaterThan(0)
        expect(new Set(late)).toEqual(new Set([401]))
        after += late.length
      }
      report("revocation with 8 processes", { rounds: 20, requestsAfter: after, succeeded: 0 })
      await Promise.all(processes.map((one) => one.end()))
    })
  })
