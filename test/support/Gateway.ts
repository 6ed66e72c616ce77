/** A gateway between a program and the service, mostly the platform listener for a feed, which may answer instead of it. */
import { expect } from "bun:test"
import type { App } from "./app.ts"

export class Gateway {
  /** Answers instead of the service; undefined passes requests on. */
  instead: (() => Response) | undefined
  /** Told of each answer of the service before the program gets it: its status, or 0 without one. */
  onAnswer: (status: number) => Promise<void> | void = () => {}
  /** How many requests the gateway answered itself. */
  answered = 0
  /** The authorization of each request to the host of {@link redirect}. */
  readonly strays: Array<string | null> = []
  readonly #elsewhere = Bun.serve({
    hostname: "localhost",
    port: 0,
    fetch: ({ headers }) => {
      this.strays.push(headers.get("authorization"))
      return new Response("<html>Log in</html>")
    }
  })
  readonly #server: Bun.Server<undefined>

  constructor(app?: App) {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      // A body that stops is left to the program's own timeout.
      idleTimeout: 0,
      fetch: async (request) => {
        const { headers, method, url } = request
        const body = await request.arrayBuffer()
        if (this.instead !== undefined) {
          this.answered++
          return this.instead()
        }
        const answer = await fetch(`${app?.main?.platformUrl}${new URL(url).pathname}`, { method, headers, body }).catch(() => undefined)
        await this.onAnswer(answer?.status ?? 0)
        return answer ?? new Response(null, { status: 502 })
      }
    })
  }

  get url(): string {
    return this.#server.url.origin
  }

  /** To the login page of another host. */
  readonly redirect = (): Response => Response.redirect(`${this.#elsewhere.url}login`, 302)
  readonly badRequest = (): Response => new Response("The plain HTTP request was sent to HTTPS port", { status: 400 })
  readonly maintenance = (): Response => new Response("<html>Back soon</html>", { headers: { "content-type": "text/html" } })
  /** As receivers of webhooks answer. */
  readonly acknowledgement = (): Response => Response.json({ received: true })

  /** Stops in its body. */
  readonly stalled = (): Response => new Response(new ReadableStream({ start: (body) => body.enqueue(new TextEncoder().encode("{")) }))

  async stop(): Promise<void> {
    await Promise.all([this.#server.stop(true), this.#elsewhere.stop(true)])
  }
}

/** Runs a reader of the API, which waits for an answer for seconds, behind gateways: it fails, and sends its key nowhere else. */
export const failsBehindGateways = async (
  reader: (url: string) => Promise<{ readonly code: number; readonly error: string }>
): Promise<void> => {
  const gateway = new Gateway()
  try {
    for (const [page, reason] of [
      [gateway.redirect, /302|redirect/i],
      [gateway.stalled, /timed out|Client\.Timeout/]
    ] as const) {
      gateway.instead = page
      const { code, error } = await reader(gateway.url)
      expect([code === 0, error]).toEqual([false, expect.stringMatching(reason)])
    }
    expect(gateway.strays).toEqual([])
  } finally {
    await gateway.stop()
  }
}
