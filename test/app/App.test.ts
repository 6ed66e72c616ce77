/** Background work of a process, beside its listeners. */
import { expect, test } from "bun:test"
import { Effect, Fiber, Logger, LogLevel, TestClock, TestContext } from "effect"
import { surviving } from "../../src/app/App.ts"

test("background work is restarted after a failure, a defect and an interruption from within", async () => {
  const ends = [Effect.fail("away"), Effect.die(new Error("no bundle")), Effect.interrupt, Effect.succeed("done")]
  let starts = 0
  const work = Effect.suspend(() => ends[starts++] ?? Effect.never)
  const outcome = await Effect.gen(function* () {
    const fiber = yield* Effect.fork(surviving("the work", work))
    yield* TestClock.adjust("2 seconds")
    expect(starts).toBe(1)
    yield* TestClock.adjust("10 seconds")
    return yield* Fiber.join(fiber)
  }).pipe(Logger.withMinimumLogLevel(LogLevel.None), Effect.provide(TestContext.TestContext), Effect.runPromise)
  expect([outcome, starts]).toEqual(["done", 4])
})
