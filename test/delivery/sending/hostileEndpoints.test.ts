/**
 * The hostile receiver: endpoints that are slow, endless, broken or hostile, and how an attempt at each is recorded.
 * Reliability F12 to F20; Decisions D-20, D-21.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { gzipSync } from "node:zlib"
import { type Answer, App } from "../../support/app.ts"
import { deliveryWhen, feedOrganization, feedTransactions, webhookOf } from "../../support/deliveryFixtures.ts"
import { Dns } from "../../support/dns.ts"
import { temporaryFiles } from "../../support/files.ts"
import { type Behaviour, HostileEndpoints } from "../../support/hostileEndpoints.ts"
import { authority, until } from "../../support/receiver.ts"

const app = new App()
const hostile = new HostileEndpoints()
const dns = new Dns()
const files = temporaryFiles()
let key = ""

const answer = (status: string, headers: ReadonlyArray<string> = [], body = "") =>
  [`HTTP/1.1 ${status}`, `Content-Length: ${Buffer.byteLength(body)}`, ...headers, "", body].join("\r\n")

const says =
  (text: string | Uint8Array): Behaviour =>
  (scenario) => {
    scenario.write(text)
    scenario.end()
  }

interface Expected {
  readonly result: string
  readonly status?: number
  readonly snippet?: unknown
  /** By default null. */
  readonly detail?: unknown
  /** Bounds of the attempt's latency in ms. */
  readonly latency?: readonly [number, number]
  /** Bounds of the wait until the next attempt, in minutes; by default an hour ±20 %. */
  readonly wait?: readonly [number, number]
  /** Requests that reached the endpoint; by default one. */
  readonly requests?: number
}

/** 64 MiB of zeros, compressed. */
const bomb = gzipSync(Buffer.alloc(64 * 1_048_576))

const HOUR: readonly [number, number] = [47.9, 72.1]

/** How the server handles a request, and how the attempt is recorded. */
const scenarios: { readonly [name: string]: readonly [Behaviour, Expected] } = {
  "204 without a body": [says("HTTP/1.1 204 No Content\r\n\r\n"), { result: "2xx", status: 204 }],
  "299": [says(answer("299 Odd", [], "ok")), { result: "2xx", status: 299, snippet: "ok" }],
  "304": [says("HTTP/1.1 304 Not Modified\r\n\r\n"), { result: "3xx", status: 304 }],
  "404": [says(answer("404 Not Found", [], "none")), { result: "4xx", status: 404, snippet: "none" }],
  "410": [says(answer("410 Gone")), { result: "4xx", status: 410 }],
  "500": [says(answer("500 Oh", [], "oh")), { result: "5xx", status: 500, snippet: "oh" }],
  "503 that asks for two hours": [says(answer("503 Busy", ["Retry-After: 7200"])), { result: "5xx", status: 503, wait: [119.9, 120.1] }],
  "429 that asks for two hours": [says(answer("429 Slow", ["Retry-After: 7200"])), { result: "4xx", status: 429, wait: [119.9, 120.1] }],
  "429 that asks for a day gets twice the step": [
    says(answer("429 Slow", ["Retry-After: 99999999999"])),
    { result: "4xx", status: 429, wait: [119.9, 120.1] }
  ],
  "429 that asks for a second": [says(answer("429 Slow", ["Retry-After: 1"])), { result: "4xx", status: 429 }],
  "Retry-After that is a date": [
    (scenario) => says(answer("503 Busy", [`Retry-After: ${new Date(Date.now() + 100 * 60_000).toUTCString()}`]))(scenario),
    { result: "5xx", status: 503, wait: [99, 100.1] }
  ],
  "Retry-After that is nonsense": [says(answer("503 Busy", ["Retry-After: soon"])), { result: "5xx", status: 503 }],
  // F12
  "a 2xx after 8 s is within the 10 seconds": [
    ({ after, end, write }) =>
      after(8_000, () => {
        write(answer("200 OK"))
        end()
      }),
    { result: "2xx", status: 200, latency: [7_900, 10_000] }
  ],
  "a 2xx after 11 s is too late and not a success": [
    ({ after, write }) => after(11_000, () => write(answer("200 OK"))),
    { result: "timeout", latency: [9_900, 14_500] }
  ],
  // F13
  "no answer": [() => {}, { result: "timeout", latency: [9_900, 14_500] }],
  "headers a byte at a time": [
    ({ forever, write }) => {
      write("HTTP/1.1 200 OK\r\nX-Slow: ")
      forever("a", 300)
    },
    { result: "timeout", latency: [9_900, 14_500] }
  ],
  // F14
  "a body a byte at a time": [
    ({ forever, write }) => {
      write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
      forever("b", 100)
    },
    { result: "2xx", status: 200, snippet: expect.stringMatching(/^b{1,60}$/) }
  ],
  "a body without end": [
    ({ forever, write }) => {
      write("HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n")
      forever(Buffer.alloc(65_536, "c"))
    },
    { result: "2xx", status: 200, snippet: "c".repeat(1_024) }
  ],
  "empty lines without end": [({ forever }) => forever("\r\n".repeat(32_768)), { result: "network_error", detail: "Response too large" }],
  "spaces before a header's value without end": [
    ({ forever, write }) => {
      write("HTTP/1.1 200 OK\r\nX-Slow: ")
      forever(" ".repeat(65_536))
    },
    { result: "network_error", detail: "Response too large" }
  ],
  "an extension of a chunk without end": [
    ({ forever, write }) => {
      write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;")
      forever("e".repeat(65_536))
    },
    { result: "2xx", status: 200 }
  ],
  "chunks without end": [
    ({ forever, write }) => {
      write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      forever(`1000\r\n${"d".repeat(4_096)}\r\n`)
    },
    { result: "2xx", status: 200, snippet: "d".repeat(1_024) }
  ],
  "an error page without end": [
    ({ forever, write }) => {
      write("HTTP/1.1 502 Bad\r\nContent-Length: 100000000000\r\n\r\n")
      forever(Buffer.alloc(65_536, "e"))
    },
    { result: "5xx", status: 502, snippet: "e".repeat(1_024) }
  ],
  // F15
  "a gzip bomb": [
    ({ end, write }) => {
      write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`)
      write(bomb)
      end()
    },
    { result: "2xx", status: 200 }
  ],
  // F16
  "a reset after the request": [({ reset }) => reset(), { result: "connection_reset" }],
  "an end after the request": [({ end }) => end(), { result: "connection_reset" }],
  "a reset in the headers": [
    ({ after, reset, write }) => {
      write("HTTP/1.1 200 OK\r\nX-A")
      after(100, reset)
    },
    { result: "connection_reset" }
  ],
  "a reset in the body": [
    ({ after, reset, write }) => {
      write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour")
      after(100, reset)
    },
    { result: "2xx", status: 200, snippet: "four" }
  ],
  // F17
  garbage: [
    says("\u0000\u0001\u0002 no HTTP at all\r\n\r\n"),
    { result: "network_error", snippet: null, detail: "Expected HTTP/, RTSP/ or ICE/" }
  ],
  "a header without end": [
    ({ forever, write }) => {
      write("HTTP/1.1 200 OK\r\nX-Large: ")
      forever("f".repeat(65_536))
    },
    { result: "network_error", detail: "Header overflow", latency: [0, 9_000] }
  ],
  "20,000 headers": [
    says(`HTTP/1.1 200 OK\r\n${Array.from({ length: 20_000 }, (_, number) => `X-${number}: a\r\n`).join("")}\r\n`),
    { result: "network_error", detail: "Header overflow", latency: [0, 9_000] }
  ],
  "headers of 20 KiB": [
    says(answer("200 OK", [`Content-Security-Policy: ${"f".repeat(20_480)}`], "ok")),
    { result: "2xx", status: 200, snippet: "ok" }
  ],
  "lines that end with LF": [
    says(answer("200 OK", ["X-A: a"], "ok").replaceAll("\r\n", "\n")),
    { result: "2xx", status: 200, snippet: "ok" }
  ],
  "a folded header": [says(answer("200 OK", ["X-A: a", "\tb", " c"], "ok")), { result: "2xx", status: 200, snippet: "ok" }],
  "one length twice": [says(answer("200 OK", ["content-length: 2"], "ok")), { result: "2xx", status: 200, snippet: "ok" }],
  "one length twice, in a list": [
    says("HTTP/1.1 500 Oh\r\nContent-Length: 2 , 2\r\n\r\noh"),
    { result: "5xx", status: 500, snippet: "oh" }
  ],
  "a length that is no number": [
    says("HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok"),
    { result: "network_error", snippet: null, detail: "Invalid character in Content-Length" }
  ],
  "a body that is shorter than it says": [
    says("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour"),
    { result: "2xx", status: 200, snippet: "four" }
  ],
  "a body that is longer than it says": [says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nfour"), { result: "2xx", status: 200 }],
  "two lengths": [
    says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\nfour"),
    { result: "network_error", detail: "Duplicate Content-Length" }
  ],
  "101": [
    ({ write }) => write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: Upgrade\r\n\r\n"),
    {
      result: expect.stringMatching(/^(connection_reset|network_error)$/),
      status: expect.any(Number),
      detail: expect.anything(),
      latency: [0, 9_000]
    }
  ],
  "status 999": [says(answer("999 Odd")), { result: "network_error", status: 999 }],
  "a flood of 103": [
    ({ forever }) => forever("HTTP/1.1 103 Early Hints\r\n\r\n"),
    { result: "network_error", detail: "Too many informational responses", latency: [0, 9_000] }
  ],
  "100 and 103 before the answer": [
    says(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${answer("200 OK", [], "fine")}`),
    { result: "2xx", status: 200, snippet: "fine" }
  ],
  "bytes that no text has": [
    (scenario) =>
      says(Buffer.concat([Buffer.from("HTTP/1.1 500 Oh\r\nContent-Length: 6\r\n\r\n"), Buffer.from([0, 0xff, 0x1b, 0x41, 0xc3, 0xa4])]))(
        scenario
      ),
    { result: "5xx", status: 500, snippet: "\\u0000\ufffd\\u001bAä" }
  ]
}

for (const status of [301, 302, 303, 307, 308])
  Object.assign(scenarios, {
    [`${status} to another listener`]: [
      (scenario: Parameters<Behaviour>[0]) =>
        says(answer(`${status} There`, [`Location: https://localhost:${hostile.port}/redirected`]))(scenario),
      { result: "3xx", status }
    ]
  })

const pathOf = (name: string) => `/${encodeURIComponent(name)}`

/** Endpoints that fail before any request, by name: their addresses, set when they are open, and the recorded results. */
const unreachable: { readonly [name: string]: Expected & { url?: string } } = {
  "nothing listens": { result: "connection_refused" },
  "a reset at connect": { result: "connection_reset" },
  "a close at connect": { result: "connection_reset" },
  "a port without TLS": { result: "tls_error" },
  "a handshake that hangs": { result: "timeout", latency: [4_900, 9_500] },
  "an expired certificate": { result: "tls_error", detail: "the certificate has expired" },
  "a certificate of an unknown authority": {
    result: "tls_error",
    detail: "the certificate's authority is not known, or its chain is incomplete"
  },
  "a certificate of another host": { result: "tls_error", detail: "the certificate is for another host" },
  "TLS 1.1": { result: "tls_error" },
  // F20
  "a name that does not exist": { result: "dns_error", url: "https://nowhere.hostile.test/", latency: [0, 8_000] },
  "a name server that fails": { result: "dns_error", url: "https://servfail.hostile.test/", latency: [0, 8_000] },
  "a name server that is silent": { result: "dns_error", url: "https://silent.hostile.test/", latency: [0, 8_000] },
  "a name without an address": { result: "dns_error", url: "https://empty.hostile.test/", latency: [0, 8_000] },
  "a CNAME loop": { result: "dns_error", url: "https://loop.hostile.test/", latency: [0, 8_000] }
}

const webhooks = new Map<string, Answer["json"]>()

/** Whether arriving bytes can be observed: through Linux's socket options, which Python can read and Bun cannot. */
const watches = process.platform === "linux" && Bun.which("python3") !== null

/** The endpoint in Python and its output: a line with its port, then one for each body with the bytes that arrived. */
let endless: Bun.Subprocess<"ignore", "pipe", "inherit"> | undefined
let printed = ""
const line = (number: number): Promise<number> =>
  until(`line ${number} of the endpoint in Python`, async () => {
    const whole = printed.split("\n").slice(0, -1)
    return whole.length > number ? Number(whole[number]) : undefined
  })
const startEndless = async (certificate: string, key: string): Promise<number> => {
  const child = Bun.spawn(["python3", `${import.meta.dir}/endless.py`, certificate, key], { stdout: "pipe", stderr: "inherit" })
  endless = child
  const read = async () => {
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) printed += chunk
  }
  void read()
  return line(0)
}

beforeAll(async () => {
  const good = await authority(),
    bad = await authority()
  const host = { names: ["localhost", "many.hostile.test"] }
  await Promise.all([hostile.open(await good.sign(host)), dns.open()])
  const expired = await hostile.tls(await good.sign({ ...host, expired: true }))
  const nobody = await hostile.tls(await bad.sign(host))
  const other = await hostile.tls(await good.sign({ names: ["other.example.com"] }))
  const old = await hostile.tls({ ...(await good.sign(host)), minVersion: "TLSv1", maxVersion: "TLSv1.1" })
  const plain = await hostile.plain((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
  const resets = await hostile.plain((socket) => socket.resetAndDestroy())
  const closes = await hostile.plain((socket) => socket.end())
  const hangs = await hostile.plain(() => {})
  const mine = await good.sign(host)
  const sends = watches ? await startEndless(files.write("cert.pem", mine.cert), files.write("key.pem", mine.key)) : 1
  const ports = { sends, expired, nobody, other, old, plain, resets, closes, hangs, refused: 1 }
  const at = (port: number) => `https://localhost:${port}/wall`
  Object.assign(unreachable["nothing listens"] ?? {}, { url: at(ports.refused) })
  Object.assign(unreachable["a reset at connect"] ?? {}, { url: at(resets) })
  Object.assign(unreachable["a close at connect"] ?? {}, { url: at(closes) })
  Object.assign(unreachable["a port without TLS"] ?? {}, { url: at(plain) })
  Object.assign(unreachable["a handshake that hangs"] ?? {}, { url: at(hangs) })
  Object.assign(unreachable["an expired certificate"] ?? {}, { url: at(expired) })
  Object.assign(unreachable["a certificate of an unknown authority"] ?? {}, { url: at(nobody) })
  Object.assign(unreachable["a certificate of another host"] ?? {}, { url: at(other) })
  Object.assign(unreachable["TLS 1.1"] ?? {}, { url: at(old) })
  dns.on("servfail.hostile.test", { rcode: 2 })
  dns.on("silent.hostile.test", { silent: true })
  dns.on("empty.hostile.test", {})
  dns.on("loop.hostile.test", { cname: "loop.hostile.test" })
  dns.on("many.hostile.test", { a: Array.from({ length: 100 }, () => "127.0.0.1") })
  for (const [name, [behaviour]] of Object.entries(scenarios)) hostile.on(pathOf(name), behaviour)
  hostile.on("/many", says(answer("200 OK")))

  await app.open(["api", "worker", "dispatcher"], {
    WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
    WEBHOOK_ALLOW_PORTS: [hostile.port, ...Object.values(ports)].join(","),
    WEBHOOK_EXTRA_CA: files.write("ca.pem", good.ca),
    WEBHOOK_DNS_SERVERS: dns.address,
    WEBHOOK_RETRY_SCHEDULE: "0s,1h"
  })
  const urls = new Map<string, string>([
    ...Object.keys(scenarios).map((name) => [name, `https://localhost:${hostile.port}${pathOf(name)}`] as const),
    ...Object.entries(unreachable).map(([name, { url = "" }]) => [name, url] as const),
    ["endless", `https://localhost:${sends}/`] as const,
    ["100 addresses", `https://many.hostile.test:${hostile.port}/many`] as const
  ])
  key = await feedOrganization(app, urls.size)
  let number = 0
  for (const [name, url] of urls) webhooks.set(name, await webhookOf(app, key, number++, url))
  // The others must not use up the spare seconds of this one.
  const patient = [...urls.keys()].findIndex((name) => name.includes("a 2xx after 8 s"))
  for (let number = 1; number <= 4; number++) {
    await feedTransactions(app, [patient])
    const { id } = [...webhooks.values()][patient]
    const { attempts } = await deliveryWhen(app, key, id, ({ attempts, sequence }) => sequence === number && attempts.length > 0)
    // A pause of the machine uses them up.
    if (attempts[0].result !== "timeout") break
  }
  await feedTransactions(
    app,
    Array.from({ length: urls.size }, (_, index) => index).filter((index) => index !== patient)
  )
})
afterAll(async () => {
  await app.close()
  endless?.kill()
  hostile.close()
  dns.close()
  files.remove()
})

/** The one attempt at an endpoint, once it is recorded. */
const attemptAt = async (name: string, expected: Expected) => {
  const delivery = await deliveryWhen(app, key, webhooks.get(name)?.id ?? "", ({ attempts }) => attempts.length > 0)
  const [attempt] = delivery.attempts
  expect(delivery.attempts).toHaveLength(1)
  expect(attempt).toMatchObject({ result: expected.result, httpStatus: expected.status ?? 0 })
  if (expected.snippet !== undefined) expect(attempt.bodySnippet).toEqual(expected.snippet)
  expect(attempt.detail).toEqual(expected.detail ?? null)
  const [least, most] = expected.latency ?? [0, 14_500]
  expect(attempt.latencyMs).toBeGreaterThanOrEqual(least)
  expect(attempt.latencyMs).toBeLessThanOrEqual(most)
  if (expected.result === "2xx") return expect(delivery).toMatchObject({ status: "DELIVERED", nextAttemptAt: null })
  expect(delivery.status).toBe("RETRYING")
  const wait = (Date.parse(delivery.nextAttemptAt) - Date.parse(attempt.at) - attempt.latencyMs) / 60_000
  const [shortest, longest] = expected.wait ?? HOUR
  expect(wait).toBeGreaterThanOrEqual(shortest)
  // A body is read for a second after the latency was measured, and the machine may be busy.
  expect(wait).toBeLessThanOrEqual(longest + 0.1)
}

describe("how an attempt is recorded", () => {
  for (const [name, [, expected]] of Object.entries(scenarios)) {
    test(name, async () => {
      await attemptAt(name, expected)
      expect(hostile.seen(pathOf(name)).requests).toBe(1)
    })
  }
  for (const [name, expected] of Object.entries(unreachable)) test(name, () => attemptAt(name, expected))

  test("a name with 100 addresses", () => attemptAt("100 addresses", { result: "2xx", status: 200 }))
})

describe("the cost of an endpoint's response", () => {
  test("of an endless response, only what the kernel has room for leaves the endpoint", async () => {
    for (const name of [
      "a body without end",
      "chunks without end",
      "an error page without end",
      "empty lines without end",
      "spaces before a header's value without end",
      "an extension of a chunk without end"
    ]) {
      const seen = hostile.seen(pathOf(name))
      expect(seen.sent).toBeLessThan(8 * 1_048_576)
      expect(seen.openFor).toBeLessThan(10_000)
    }
    expect(hostile.seen(pathOf("a body a byte at a time")).openFor).toBeLessThan(10_000)
  })

  test.skipIf(!watches)(`of an endless body at most 1 MB arrives${watches ? "" : " (skipped: it needs Linux and python3)"}`, async () => {
    await attemptAt("endless", { result: "2xx", status: 200, snippet: "f".repeat(1_024) })
    const arrived = await line(1)
    expect(arrived).toBeGreaterThan(16_384)
    expect(arrived).toBeLessThan(1_048_576)
  })

  test("no redirect is followed", () => {
    expect(hostile.seen("/redirected").requests).toBe(0)
  })

  test("nothing is sent if the certificate is invalid", () => {
    expect(hostile.seen("/wall").requests).toBe(0)
  })
})
