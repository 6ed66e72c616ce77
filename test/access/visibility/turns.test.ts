/** Requests and background work of one organization get its slots by turns. */
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
      const note = (name: string) =>
        Effect.zipRight(
          Effect.yieldNow(),
          Effect.sync(() => order.push(name))
        )
      const waiting = []
      for (let count = 0; count < 10; count++) waiting.push(yield* Effect.fork(admitPatiently(principal, note("page"))))
      for (let count = 0; count < 10; count++) waiting.push(yield* Effect.fork(admit(principal, note("request"))))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.all([Fiber.join(held), Fiber.joinAll(waiting)])
    }).pipe(Effect.provide(Admission.layer))
  )
  expect(order).toHaveLength(20)
  // Both are served from the start on.
  for (const part of [order.slice(0, 10), order.slice(10)]) expect(part.filter((name) => name === "page")).toHaveLength(5)
})
