/** Users of one organization, and the requests and background work of each, get its slots by turns. */
import { expect, test } from "bun:test"
import { Deferred, Effect, Fiber, FiberId } from "effect"
import { Admission, CONCURRENCY } from "../../../src/access/visibility/Admission.ts"
import { principalOf } from "../../support/principal.ts"

const principal = principalOf()

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

test("work that is interrupted at any moment leaves all slots", async () => {
  const end = await Effect.runPromise(
    Effect.gen(function* () {
      const { admit } = yield* Admission
      const gate = yield* Deferred.make<void>()
      const run = () => Effect.runFork(admit(principal, Deferred.await(gate)))
      // Interrupted before they have begun.
      for (let count = 0; count < CONCURRENCY; count++) run().unsafeInterruptAsFork(FiberId.none)
      yield* Effect.promise(() => new Promise(setImmediate))
      const held = Array.from({ length: CONCURRENCY }, run)
      yield* Effect.promise(() => new Promise(setImmediate))
      // Half of the queue leaves while it waits, the other half as the slots are given to it.
      const waiting = Array.from({ length: 2 * CONCURRENCY }, run)
      yield* Effect.promise(() => new Promise(setImmediate))
      yield* Fiber.interruptAll(waiting.slice(0, CONCURRENCY))
      for (const fiber of [...held, ...waiting]) fiber.unsafeInterruptAsFork(FiberId.none)
      yield* Fiber.interruptAll([...held, ...waiting])
      const names = Array.from({ length: CONCURRENCY }, (_, number) => number)
      const all = yield* Effect.forkAll(names.map((number) => admit(principal, Effect.as(Deferred.await(gate), number))))
      yield* Effect.promise(() => new Promise(setImmediate))
      // All have a slot, and a further one finds none.
      const none = yield* Effect.exit(Effect.timeout(admit(principal, Effect.void), "100 millis"))
      yield* Deferred.succeed(gate, undefined)
      return [none._tag, yield* Fiber.join(all)]
    }).pipe(Effect.provide(Admission.layer))
  )
  expect(end).toEqual(["Failure", [0, 1, 2, 3, 4]])
})
