/**
 * Connections to endpoints are kept between attempts, and a kept connection that turns out to be closed uses up nothing of a
 * delivery's schedule. Decision D-21; reliability, pitfalls of Bun.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { Effect } from "effect"
import type { Answer } from "../../../src/delivery/sending/request/Answer.ts"
import { trustIn } from "../../../src/delivery/sending/request/ClientIdentity.ts"
import { ConnectionPool } from "../../../src/delivery/sending/request/ConnectionPool.ts"
import { post } from "../../../src/delivery/sending/request/webhookRequest.ts"
import { KeepAliveEndpoint, ok } from "../../support/KeepAliveEndpoint.ts"
import { until } from "../../support/receiver.ts"

const endpoint = new KeepAliveEndpoint()
beforeAll(() => endpoint.open(["localhost", "other.test"]))
afterAll(() => endpoint.close())

const pools: Array<ConnectionPool> = []
afterAll(() => {
  for (const pool of pools) pool.destroy()
})

interface More {
  readonly webhookId?: string
  readonly host?: string
  readonly certificate?: string
  readonly fresh?: boolean
  readonly wanted?: Effect.Effect<boolean>
}

/** A client with its own connections. */
const client = (most?: number) => {
  const pool = new ConnectionPool(most === undefined ? {} : { most })
  pools.push(pool)
  const trust = trustIn(endpoint.ca)
  const send = (
    path: string,
    { certificate = "", fresh = false, host = "localhost", wanted, webhookId = "whs_a" }: More = {}
  ): Promise<Answer> =>
    Effect.runPromise(
      post({
        url: new URL(endpoint.url(path, host)),
        route: { webhookId, address: "127.0.0.1", port: endpoint.port, host, certificate },
        pool,
        fresh,
        headers: { "content-type": "application/json" },
        body: "{}",
        startedAt: performance.now(),
        hidden: [],
        wanted: wanted ?? Effect.succeed(true),
        trust
      })
    )
  return { pool, send }
}

const last = () => endpoint.requests.at(-1)
/** The end of a connection, in ms. An idle one ends after four seconds. */
const closes = (connection = 0, seconds = 3) => until("the end of the connection", () => endpoint.closed.get(connection), seconds)
/** A tenth of a second in several turns of the event loop: after a pause, one timer could end before the sockets are read. */
const moment = async () => {
  for (let turn = 0; turn < 10; turn++) await Bun.sleep(10)
}

describe("connections kept after complete responses", () => {
  test("only attempts with the same webhook, server name and client certificate share a connection", async () => {
    const { send } = client()
    const before = endpoint.connections
    for (let count = 0; count < 3; count++) expect(await send("/hook")).toMatchObject({ result: "2xx", stale: false })
    expect(endpoint.connections - before).toBe(1)
    await send("/hook", { webhookId: "whs_b" })
    await send("/hook", { host: "other.test" })
    await send("/hook", { certificate: "rotated" })
    await send("/hook", { fresh: true })
    expect(endpoint.connections - before).toBe(5)
  })

  test("an idle connection is closed after 4 seconds, or sooner if the endpoint asks", async () => {
    const { send } = client()
    await send("/hook")
    const mine = last()
    const closedAt = await closes(mine?.connection, 10)
    expect(closedAt - (mine?.at ?? 0)).toBeGreaterThan(3_500)
    expect(closedAt - (mine?.at ?? 0)).toBeLessThan(9_000)
    endpoint.on("/last", ({ socket }) => socket.write(ok("Connection: close\r\n")))
    await send("/last")
    await closes(last()?.connection)
  })

  test("a connection whose response was cut off is destroyed", async () => {
    const { send } = client()
    endpoint.on("/long", ({ socket }) => socket.write(ok("", "x".repeat(20_000))))
    expect(await send("/long")).toMatchObject({ result: "2xx" })
    await closes(last()?.connection)
    endpoint.on("/drip", ({ socket }) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour"))
    expect(await send("/drip")).toMatchObject({ result: "2xx", bodySnippet: "four" })
    await closes(last()?.connection)
  })

  test("a connection to an address that the guard no longer allows is closed at once", async () => {
    const { pool, send } = client()
    await send("/hook")
    const mine = last()
    pool.retain("whs_b")
    pool.retain("whs_a", ({ address }) => address === "127.0.0.1")
    await send("/hook")
    expect(last()?.connection).toBe(mine?.connection ?? 0)
    pool.retain("whs_a", ({ address }) => address === "127.0.0.2")
    await closes(mine?.connection)
  })

  test("above the limit of idle connections the longest idle one is closed", async () => {
    const { send } = client(4)
    const first = endpoint.connections + 1
    for (let number = 0; number < 6; number++) await send("/hook", { webhookId: `whs_${number}` })
    await closes(first)
    await closes(first + 1)
    expect([2, 3, 4, 5].filter((number) => endpoint.closed.has(first + number))).toEqual([])
  })
})

describe("no kept connection passes off old data as a response", () => {
  test("a connection that the endpoint closed or half-closed while idle is not used again", async () => {
    for (const how of ["end", "destroy"] as const) {
      const { send } = client()
      endpoint.on(`/${how}`, ({ socket }) => {
        socket.write(ok())
        setTimeout(() => socket[how](), 20)
      })
      await send(`/${how}`)
      const mine = last()
      await moment()
      expect(await send("/hook")).toMatchObject({ result: "2xx", stale: false })
      expect(last()?.connection).not.toBe(mine?.connection ?? 0)
    }
  })

  test("a response that arrives while idle is not taken for that to a request", async () => {
    for (const text of ["HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", ok(), "HTTP/1.1"]) {
      const { send } = client()
      endpoint.on("/talks", ({ socket }) => {
        socket.write(ok())
        setTimeout(() => socket.write(text), 20)
      })
      await send("/talks")
      const mine = last()
      await closes(mine?.connection)
      expect(await send("/hook")).toMatchObject({ result: "2xx", httpStatus: 200, bodySnippet: "ok", stale: false })
      expect(last()?.connection).not.toBe(mine?.connection ?? 0)
    }
  })

  test("a connection that closes before the request is written is replaced, and nothing was sent", async () => {
    for (const [path, spoil] of [
      ["/spoilt-by-408", (request) => request.socket.write("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")],
      ["/spoilt-by-end", (request) => request.socket.destroy()]
    ] as ReadonlyArray<readonly [string, (request: NonNullable<ReturnType<typeof last>>) => void]>) {
      const { send } = client()
      await send(path)
      const mine = last()
      // The check before the request is written takes long enough for it.
      const wanted = Effect.as(
        Effect.zipRight(
          Effect.sync(() => mine !== undefined && spoil(mine)),
          Effect.promise(moment)
        ),
        true
      )
      expect(await send("/hook", { wanted })).toMatchObject({ result: "2xx", httpStatus: 200, bodySnippet: "ok", stale: false })
      expect(endpoint.requests.filter(({ connection }) => connection === mine?.connection)).toHaveLength(1)
    }
  })

  test("unsolicited data after a response destroys the connection", async () => {
    const { send } = client()
    endpoint.on("/two", ({ socket }) => socket.write(`${ok()}HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n`))
    expect(await send("/two")).toMatchObject({ result: "2xx", httpStatus: 200 })
    const mine = last()
    expect(await send("/hook")).toMatchObject({ httpStatus: 200 })
    expect(last()?.connection).not.toBe(mine?.connection ?? 0)
  })

  test("a kept connection that fails is stale; a new one is the endpoint's failure", async () => {
    const { send } = client()
    endpoint.on("/dies", ({ socket }) => socket.destroy())
    endpoint.on("/408", ({ socket }) => socket.write("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"))
    endpoint.on("/half-an-answer", ({ socket }) => socket.write("HTTP/1.1 2", () => setTimeout(() => socket.destroy(), 20)))
    await send("/hook")
    expect(await send("/dies")).toMatchObject({ result: "connection_reset", stale: true })
    expect(await send("/dies")).toMatchObject({ result: "connection_reset", stale: false })
    await send("/hook")
    expect(await send("/408")).toMatchObject({ result: "4xx", httpStatus: 408, stale: true })
    expect(await send("/408", { fresh: true })).toMatchObject({ result: "4xx", httpStatus: 408, stale: false })
    await send("/hook")
    expect(await send("/half-an-answer")).toMatchObject({ result: "connection_reset", stale: false })
  })
})
