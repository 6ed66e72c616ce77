/** A failure around a response is logged and does not end the process. Reliability T17, T21. */
import { expect, test } from "bun:test"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { listen } from "../../src/http/listener.ts"

test("neither a throwing observer nor an unwritable response affects the next request", async () => {
  let observed = 0
  const listener = {
    name: "test listener",
    host: "127.0.0.1",
    port: 0,
    portSetting: "PORT",
    trustedProxies: [],
    maxBody: 1_024,
    onResponse: () => {
      observed++
      throw new Error("an observer that throws")
    }
  }
  let header = "x-good"
  const app = Effect.suspend(() => Effect.delay(HttpServerResponse.text("answered", { headers: { [header]: "1" } }), 1))
  const statuses = await Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(listen(listener, app), ({ port }) =>
        Effect.promise(async () => {
          const ask = async () => (await fetch(`http://127.0.0.1:${port}/`)).status
          const first = await ask()
          header = "not a header"
          const second = await ask()
          header = "x-good"
          return [first, second, await ask()]
        })
      )
    )
  )
  expect(statuses).toEqual([200, 500, 200])
  expect(observed).toBe(2)
})
