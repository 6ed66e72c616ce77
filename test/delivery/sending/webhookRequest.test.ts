/** Time spent before a request is sent does not count against the endpoint. Decision D-21; reliability F7. */
import { expect, test } from "bun:test"
import * as fs from "node:fs"
import { Effect, Exit } from "effect"
import { trustIn } from "../../../src/delivery/sending/request/ClientIdentity.ts"
import { ConnectionPool } from "../../../src/delivery/sending/request/ConnectionPool.ts"
import { post } from "../../../src/delivery/sending/request/webhookRequest.ts"
import { useReceiver } from "../../support/receiver.ts"

const receiver = useReceiver()

/** Posts to a path as if seven of an attempt's ten seconds had passed, with the given check whether the request is still wanted. */
const attempt = (path: string, wanted: Effect.Effect<boolean>) =>
  Effect.runPromiseExit(
    post({
      url: new URL(receiver.url(path)),
      route: { webhookId: "whs_a", address: "127.0.0.1", port: receiver.port, host: "localhost", certificate: "" },
      pool: new ConnectionPool(),
      fresh: false,
      headers: { "content-type": "application/json" },
      body: "{}",
      startedAt: performance.now() - 7_000,
      hidden: [],
      wanted,
      trust: trustIn(fs.readFileSync(receiver.caFile, "utf8"))
    })
  )

test("a Postgres that is slow to confirm the request counts against no endpoint", async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const asking = Effect.as(Effect.never, true).pipe(Effect.onInterrupt(() => Effect.sync(end)))
  const exit = await attempt("/slow-database", asking)
  expect(Exit.isFailure(exit) && exit.cause).toMatchObject({ _tag: "Fail", error: { _tag: "Withdrawn" } })
  expect(receiver.to("/slow-database")).toHaveLength(0)
  await ended
})

test("an endpoint that does not answer within the remaining time is a timeout", async () => {
  receiver.on("/silent", async () => {
    await Bun.sleep(9_000)
    return new Response("")
  })
  const exit = await attempt("/silent", Effect.succeed(true))
  expect(exit).toMatchObject({ _tag: "Success", value: { result: "timeout", httpStatus: 0 } })
  expect(receiver.to("/silent")).toHaveLength(1)
})
