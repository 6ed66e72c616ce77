/** How long a stream lasts at most. C-1. */
import { beforeAll, expect, spyOn, test } from "bun:test"
import { useApi } from "../../support/api.ts"
import { patiently } from "../../support/app.ts"
import { smallest } from "../../support/records.ts"

const app = useApi()
let key = ""
beforeAll(async () => {
  await app.feed(smallest(), { "x-record-events": "none" })
  key = (await app.key("user_a")).secret
})

const MINUTE = 60_000

test("a stream ends after an hour, with a cursor to resume from", async () => {
  const { body } = await patiently(() => app.send("api", "/v1/event-feed/stream?from=now", { headers: { authorization: `Bearer ${key}` } }))
  const reader = body?.getReader()
  const next = async () => {
    const part = await reader?.read()
    return part?.done === true ? undefined : new TextDecoder().decode(part?.value)
  }
  const comment = expect.stringMatching(/^: at \S+\n\n$/)
  expect(await next()).toEqual(comment)
  const now = performance.now.bind(performance)
  const clock = spyOn(performance, "now")
  try {
    clock.mockImplementation(() => now() + 59 * MINUTE)
    expect(await next()).toEqual(comment)
    clock.mockImplementation(() => now() + 60 * MINUTE)
    expect([await next(), await next()]).toEqual([comment, undefined])
  } finally {
    clock.mockRestore()
  }
})
