/** A TCP proxy in front of a real server, to take the server away from the program: cut, silent, and back. */
import * as net from "node:net"

export class Proxy {
  readonly #sockets = new Set<net.Socket>()
  #target: URL
  #server: net.Server | undefined
  #port = 0
  #silent = false
  /** Called when the commit that is to be lost was made. */
  #lost: (() => void) | undefined

  constructor(target: string) {
    this.#target = new URL(target)
  }

  /** The target's URL with the proxy's port. */
  get url(): string {
    const url = new URL(this.#target)
    url.hostname = "127.0.0.1"
    url.port = String(this.#port)
    return url.toString()
  }

  /** Listens, on the same port as before when it did. */
  open(): Promise<void> {
    this.#silent = false
    return new Promise((resolve, reject) => {
      const server = net.createServer((near) => {
        const far = net.connect(Number(this.#target.port), this.#target.hostname)
        for (const [from, to] of [
          [near, far],
          [far, near]
        ] as const) {
          this.#sockets.add(from)
          from.on("data", (chunk) => {
            if (this.#silent) return
            if (this.#lost !== undefined && from === near && chunk.includes("COMMIT")) {
              const lost = this.#lost
              this.#lost = undefined
              // The server's response to it is the first that does not come through.
              far.removeAllListeners("data").once("data", () => {
                near.destroy()
                lost()
              })
            }
            to.write(chunk)
          })
          from.on("error", () => {})
          from.on("close", () => {
            this.#sockets.delete(from)
            to.destroy()
          })
        }
      })
      server.once("error", reject)
      server.listen(this.#port, "127.0.0.1", () => {
        const address = server.address()
        this.#port = typeof address === "object" && address !== null ? address.port : 0
        this.#server = server
        resolve()
      })
    })
  }

  /** Ends every connection; new ones are refused. */
  async cut(): Promise<void> {
    const closed = new Promise((resolve) => this.#server?.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  /** Ends every connection; new ones lead to the target that `failover` returns, once it has. */
  async fail(failover: () => Promise<string>): Promise<void> {
    await this.cut()
    this.#target = new URL(await failover())
    await this.open()
  }

  /** Ends the connection of the next commit when the server has made it, instead of passing on that it has; resolves then. */
  loseCommit(): Promise<void> {
    return new Promise((resolve) => {
      this.#lost = resolve
    })
  }

  /** Keeps connections open and forwards nothing. */
  silence(): void {
    this.#silent = true
  }
}
