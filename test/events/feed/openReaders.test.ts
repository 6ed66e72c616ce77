/** How many readers may stay open, counted by key, user and organization. C-1. */
import { expect, test } from "bun:test"
import { Effect } from "effect"
import { OpenReaders } from "../../../src/events/feed/OpenReaders.ts"
import { principalOf } from "../../support/principal.ts"

test("a user has as many open readers as are left to others", async () => {
  await Effect.runPromise(
    Effect.gen(function* () {
      const { enter } = yield* OpenReaders
      const open = (userId: string) =>
        Effect.gen(function* () {
          const ends: Array<() => void> = []
          for (let key = 0; key < 60; key++)
            for (let count = 0; count < 20; count++) {
              const end = yield* Effect.option(enter("longPoll", principalOf({ userId, keyId: `${userId}_${key}` })))
              if (end._tag === "None") return ends
              ends.push(end.value)
            }
          return ends
        })
      const first = yield* open("user_a")
      const second = yield* open("user_b")
      expect([first.length, second.length]).toEqual([500, 250])
      expect((yield* open("user_a")).length).toBe(0)
      for (const end of [...first, ...second]) end()
      expect((yield* open("user_a")).length).toBe(500)
    }).pipe(Effect.provide(OpenReaders.layer))
  )
})
