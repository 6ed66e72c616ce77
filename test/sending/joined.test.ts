/** Work that a repeated activity joins: once at a time for each key, for as long as it takes. */
import { expect, test } from "bun:test"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { makeJoined } from "../../src/sending/joined.ts"

const setUp = Effect.gen(function* () {
  const scope = yield* Scope.make()
  const over = yield* Deferred.make<string, string>()
  const joined = yield* Scope.extend(makeJoined<string, string>(), scope)
  const seen = { begun: 0, interrupted: 0 }
  const work = Effect.suspend(() => {
    seen.begun++
    return Effect.onInterrupt(Deferred.await(over), () => Effect.sync(() => seen.interrupted++))
  })
  return { over, scope, seen, work, ...joined }
})
const run = <A, E>(body: Effect.Effect<A, E>) => Effect.runPromise(body)

test("work that is asked for again while it is in flight runs once, and everyone has its outcome", () =>
  run(
    Effect.gen(function* () {
      const { join, over, seen, work } = yield* setUp
      const all = yield* Effect.fork(
        Effect.all([join("a", work), join("a", work), join("b", Effect.succeed("other"))], { concurrency: "unbounded" })
      )
      yield* Effect.yieldNow()
      yield* Deferred.succeed(over, "done")
      expect(yield* Fiber.join(all)).toEqual(["done", "done", "other"])
      expect(seen).toEqual({ begun: 1, interrupted: 0 })
      expect(yield* join("a", Effect.succeed("again"))).toBe("again")
    })
  ))

test("its failure is everyone's, and the next one runs it again", () =>
  run(
    Effect.gen(function* () {
      const { join, over, seen, work } = yield* setUp
      const both = yield* Effect.fork(
        Effect.all([Effect.flip(join("a", work)), Effect.flip(join("a", work))], { concurrency: "unbounded" })
      )
      yield* Effect.yieldNow()
      yield* Deferred.fail(over, "unavailable")
      expect(yield* Fiber.join(both)).toEqual(["unavailable", "unavailable"])
      expect(yield* Effect.flip(join("a", work))).toBe("unavailable")
      expect(seen.begun).toBe(2)
    })
  ))

test("it goes on when the one that asked for it is interrupted, and ends with its scope", () =>
  run(
    Effect.gen(function* () {
      const { ended, join, scope, seen, work } = yield* setUp
      const first = yield* Effect.fork(join("a", work))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(first)
      const second = yield* Effect.fork(join("a", work))
      yield* Effect.yieldNow()
      expect(seen).toEqual({ begun: 1, interrupted: 0 })
      expect(yield* Effect.timeoutOption(ended, "10 millis")).toMatchObject({ _tag: "None" })
      yield* Scope.close(scope, Exit.void)
      yield* ended
      expect(Exit.isInterrupted(yield* Fiber.await(second))).toBe(true)
      expect(seen).toEqual({ begun: 1, interrupted: 1 })
    })
  ))
