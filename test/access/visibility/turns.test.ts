/** Users of one organization, and the requests and background work of each, get its slots by turns. */
import { expect, test } from "bun:test"
import { Deferred, Effect, Fiber } from "effect"
import type { PrincipalState } from "../../../src/access/credentials/Principal.ts"
import { Admission, CONCURRENCY } from "../../../src/access/visibility/Admission.ts"

const principal: PrincipalState = {
  keyId: "key_a",
  userId: "user_a",
  organizationId: "org_a",
  sessionId: null,
  scopes: new Set(),
  vaultAllowlist: null,
  isOwner: false,
  client: undefined
}

test("a request does not wait behind all pages of streams, nor they behind requests", async () => {
  const order: Array<string> = []
  await Effect.runPromise(
    Effect.gen(function* () {
      const { admit, admitPatiently } = yield* Admission
      const gate = yield* Deferred.make<void>()
      const held = yield* Effect.forkAll(Array.from({ length: CONCURRENCY }, () => admit(principal, Deferred.await(gate))))
      yield* Effect.yieldNow()
      const other = { ...principal, userId: "user_b" }
      const note = (name: string) =>
        Effect.zipRight(
          Effect.yieldNow(),
          Effect.sync(() => order.push(name))
        )
      const waiting = []
      for (let count = 0; count < 10; count++) waiting.push(yield* Effect.fork(admitPatiently(principal, note("page"))))
      for (let count = 0; count < 10; count++) waiting.push(yield* Effect.fork(admit(principal, note("request"))))
      for (let count = 0; count < 5; count++) waiting.push(yield* Effect.fork(admitPatiently(other, note("other's page"))))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.all([Fiber.join(held), Fiber.joinAll(waiting)])
    }).pipe(Effect.provide(Admission.layer))
  )
  expect(order).toHaveLength(25)
  // All are served from the start on.
  for (const name of ["page", "request", "other's page"]) expect(order.slice(0, 15).filter((one) => one === name)).toHaveLength(5)
})
