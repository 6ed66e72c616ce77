/** A proxy in front of the service that changes its answers on their way. */
import { afterAll, beforeAll } from "bun:test"
import type { App } from "./app.ts"

/** Changes the text of an answer, or answers itself; `target` is path and query of the request. */
export type Tampering = (text: string, target: string) => string | Response

export const useTampering = (app: App) => {
  let proxy: ReturnType<typeof Bun.serve>,
    change: Tampering = (text) => text
  beforeAll(() => {
    proxy = Bun.serve({
      port: 0,
      fetch: async ({ headers, url }) => {
        const { pathname, search } = new URL(url)
        const target = `${pathname}${search}`
        const { headers: answered, status, text } = await app.get(target, undefined, { authorization: headers.get("authorization") ?? "" })
        const changed = change(text, target)
        return changed instanceof Response
          ? changed
          : new Response(changed, { status, headers: { "content-type": answered.get("content-type") ?? "" } })
      }
    })
  })
  afterAll(() => proxy.stop(true))
  return {
    url: () => `http://127.0.0.1:${proxy.port}`,
    /** Sets what is done to each answer from now on. */
    tamper: (next: Tampering) => {
      change = next
    }
  }
}
