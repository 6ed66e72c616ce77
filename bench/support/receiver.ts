/**
 * A fast local HTTPS receiver in a separate process. It answers 200 at once and records when it saw each body's
 * transaction. Under `/hang` it never answers, and under `/slow` it answers after 2 s; it records neither. Under
 * `/numbered` it records the delivery's number instead. `GET /seen` on the control port returns and forgets its record:
 * `[[hash, epochMs], …]`.
 *
 * `bun bench/support/receiver.ts <folder>` writes `ca.pem` there and prints `{ port, control }`.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { authority } from "../../test/support/receiver.ts"

const folder = process.argv[2] ?? "."
const trusted = await authority()
fs.writeFileSync(path.join(folder, "ca.pem"), trusted.ca)
const { cert, key } = await trusted.sign({ names: ["localhost", "127.0.0.1"] })

let seen: Array<[string, number]> = []
const now = () => performance.timeOrigin + performance.now()
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  tls: { cert, key },
  idleTimeout: 60,
  async fetch(request) {
    const at = now()
    if (request.url.endsWith("/hang")) {
      await Bun.sleep(60_000)
      return new Response("late")
    }
    if (request.url.endsWith("/slow")) {
      await Bun.sleep(2_000)
      return new Response("ok")
    }
    if (request.url.endsWith("/numbered")) {
      seen.push([request.headers.get("webhook-sequence") ?? "", at])
      return new Response("ok")
    }
    seen.push([/"hash":"([^"]+)"/.exec(await request.text())?.[1] ?? "", at])
    return new Response("ok")
  }
})
const control = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    if (new URL(request.url).pathname === "/count") return Response.json(seen.length)
    const answer = Response.json(seen)
    seen = []
    return answer
  }
})
console.log(JSON.stringify({ port: server.port, control: control.port }))
