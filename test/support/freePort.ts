/** Ports for servers that need to know theirs before they start. */
import * as net from "node:net"
import { Effect } from "effect"

const [FROM, TO] = [20_000, 32_000]

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const server = net.createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/** A free port below those that the system gives to connections and servers by itself, so that none of them takes it meanwhile. */
export const freePort: Effect.Effect<number> = Effect.promise(async () => {
  for (;;) {
    const port = FROM + Math.floor(Math.random() * (TO - FROM))
    if (await isFree(port)) return port
  }
})
