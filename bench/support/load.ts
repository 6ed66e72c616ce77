/**
 * A load generator in a separate process: keep-alive connections that each send the next request when the last one has
 * its response. Written on raw sockets, so that it uses as little CPU as possible.
 *
 * `bun bench/support/load.ts <json>` with `{ port, paths, key, connections, seconds }` prints
 * `{ requests, failed, perSecond, p50Ms, p99Ms }`.
 */
import { AnswerReader } from "./answer.ts"

interface Ask {
  readonly port: number
  readonly paths: ReadonlyArray<string>
  readonly key: string
  readonly connections: number
  readonly seconds: number
}

const { connections, key, paths, port, seconds }: Ask = JSON.parse(process.argv[2] ?? "{}")
const requests = paths.map((path) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`))

let requestCount = 0,
  failed = 0
const latencies: Array<number> = []
let measuring = false,
  over = false

interface Connection {
  started: number
  readonly answer: AnswerReader
}

const send = (socket: Bun.Socket<Connection>) => {
  socket.data.started = performance.now()
  socket.data.answer.begin()
  socket.write(requests[requestCount % requests.length] ?? Buffer.alloc(0))
}

const finish = (socket: Bun.Socket<Connection>, ok: boolean) => {
  if (measuring) {
    requestCount++
    latencies.push(performance.now() - socket.data.started)
    if (!ok) failed++
  } else requestCount++
  if (over) socket.end()
  else send(socket)
}

for (let index = 0; index < connections; index++) {
  await Bun.connect<Connection>({
    hostname: "127.0.0.1",
    port,
    data: { started: 0, answer: new AnswerReader() },
    socket: {
      open: send,
      data(socket, chunk) {
        if (socket.data.answer.take(chunk)) finish(socket, socket.data.answer.status === 200)
      },
      error() {
        failed++
      }
    }
  })
}

await Bun.sleep(1_000)
measuring = true
requestCount = 0
const startedAt = performance.now()
await Bun.sleep(seconds * 1_000)
const took = (performance.now() - startedAt) / 1_000
over = true
latencies.sort((a, b) => a - b)
const at = (share: number) => Math.round((latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0) * 100) / 100
console.log(
  JSON.stringify({
    requests: latencies.length,
    failed,
    perSecond: Math.round(latencies.length / took),
    p50Ms: at(0.5),
    p99Ms: at(0.99)
  })
)
process.exit(0)
