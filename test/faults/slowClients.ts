/**
 * Clients that are slow on purpose, in a separate process: their own cost must not show in the latencies of the
 * measured reader. Usage: bun slowClients.ts <host> <port> <count> <kinds>, where the kinds are
 * JSON, pairs of what is sent at once and what follows each second (nothing if empty). Writes the seconds
 * until the last connection was closed.
 */
import * as net from "node:net"

const [host = "", port = "", count = "", json = "[]"] = process.argv.slice(2)
const kinds: ReadonlyArray<readonly [string, string]> = JSON.parse(json)

const connect = (start: string, drip: string) =>
  new Promise<void>((resolve) => {
    let timer: Timer | undefined
    const socket = net.connect(Number(port), host, () => {
      socket.write(start)
      if (drip !== "") timer = setInterval(() => socket.write(drip), 1_000)
    })
    socket.on("data", () => {})
    socket.on("error", () => {})
    socket.once("close", () => {
      clearInterval(timer)
      resolve()
    })
  })

const begun = performance.now()
await Promise.all(Array.from({ length: Number(count) }, (_, index) => connect(...(kinds[index % kinds.length] ?? ["", ""]))))
console.log(JSON.stringify({ lastClosedSeconds: (performance.now() - begun) / 1_000 }))
