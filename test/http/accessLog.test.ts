/** The access log: which requests are logged one by one, and what of them. Reliability: no one can fill the disk. */
import { expect, test } from "bun:test"
import { Effect, HashMap, Layer, Logger } from "effect"
import ipaddr from "ipaddr.js"
import { accessLog } from "../../src/http/accessLog.ts"
import { make } from "../../src/http/RequestContext.ts"
import { until } from "../support/receiver.ts"

type Line = { readonly message: unknown } & Readonly<Record<string, unknown>>

/** A log with a short period, and its lines. */
const logOf = async (period: number) => {
  const lines: Array<Line> = []
  const logger = Logger.make(({ annotations, message }) => {
    lines.push({ message: String(message), ...Object.fromEntries(HashMap.toEntries(annotations)) })
  })
  const layer = Layer.mergeAll(Logger.replace(Logger.defaultLogger, logger))
  const log = accessLog(false, await Effect.runPromise(Effect.provide(Effect.runtime<never>(), layer)), period)
  const answer = (
    address: string,
    status: number,
    {
      isKnown = false,
      keyId,
      method = "GET",
      path = "/v1/vaults"
    }: Partial<Record<"keyId" | "method" | "path", string>> & {
      readonly isKnown?: boolean
    } = {}
  ) => log(new Request(`http://localhost${path}`, { method }), { ...make(null, ipaddr.process(address)), isKnown, keyId }, status)
  return { lines, answer, requests: () => lines.filter(({ message }) => message === "request") }
}

test("requests without key or session are counted after the first ten of an address", async () => {
  const { answer, lines, requests } = await logOf(50)
  const statuses = [302, 400, 401, 403, 404, 405, 421, 429, 500, 200]
  for (let count = 0; count < 300; count++) answer("203.0.113.7", statuses[count % 10] ?? 0, { method: "HEAD" })
  answer("203.0.113.8", 401)
  expect(requests().map(({ client }) => client)).toEqual([...Array.from({ length: 10 }, () => "203.0.113.7"), "203.0.113.8"])
  await until("the count", () => lines.length === 12)
  expect(lines.at(-1)).toEqual({
    message: "requests without a key or session",
    client: "203.0.113.7",
    count: 300,
    statuses: Object.fromEntries(statuses.map((status) => [status, 30]))
  })
  // The next period begins anew.
  answer("203.0.113.7", 401)
  expect(requests()).toHaveLength(12)
})

test("requests with a key or a session are logged one by one", async () => {
  const { answer, requests } = await logOf(60_000)
  for (let count = 0; count < 50; count++) {
    answer("203.0.113.7", 404, { keyId: "key_1" })
    answer("203.0.113.7", 404, { isKnown: true })
  }
  expect(requests()).toHaveLength(100)
})

test("many addresses share a count, so that memory and lines are bounded", async () => {
  const { answer, requests } = await logOf(60_000)
  for (let count = 0; count < 20_000; count++) answer(`10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`, 401)
  expect(requests().length).toBeLessThanOrEqual(1_010)
})

test("a path is cut, and a query is not logged", async () => {
  const { answer, requests } = await logOf(60_000)
  answer("203.0.113.7", 414, { path: `/v1/${"a".repeat(8_000)}?cursor=secret` })
  expect(requests()[0]?.path).toBe(`/v1/${"a".repeat(196)}`)
})
