/**
 * Limits how many requests of the feed stay open in this process, streams and waiting requests: each takes a connection
 * and memory that all organizations share, and each reads when an event is recorded. C-1.
 */
import { Effect } from "effect"
import { callerOf, type PrincipalState } from "../../access/credentials/Principal.ts"
import { type ProblemOf, problem } from "../../http/Problem.ts"

/** Maximum number of open streams of a key, and of its waiting requests. */
export const STREAMS_OF_A_KEY = 5,
  LONG_POLLS_OF_A_KEY = 20
/** Maximum number of both together for an organization. A user of it has at most as many as are left to the others: alone half. */
const OPEN_OF_AN_ORGANIZATION = 1_000

const limits = {
  stream: { most: STREAMS_OF_A_KEY, what: "open streams" },
  longPoll: { most: LONG_POLLS_OF_A_KEY, what: "requests that wait for events" }
} as const

export class OpenReaders extends Effect.Service<OpenReaders>()("custody/OpenReaders", {
  sync: () => {
    const counts = new Map<string, number>()
    const of = (name: string) => counts.get(name) ?? 0
    const add = (name: string, by: number) => {
      const count = of(name) + by
      if (count === 0) counts.delete(name)
      else counts.set(name, count)
    }
    return {
      /** Counts a request that stays open. Returns a function that ends it; fails if there are too many. */
      enter: (kind: keyof typeof limits, principal: PrincipalState): Effect.Effect<() => void, ProblemOf<"too_many_streams">> =>
        Effect.suspend((): Effect.Effect<() => void, ProblemOf<"too_many_streams">> => {
          const { most, what } = limits[kind]
          const caller = `${kind}/${callerOf(principal)}`,
            user = `user/${principal.userId}`,
            organization = `of/${principal.organizationId}`
          const refuse = (detail: string) => problem("too_many_streams", detail, { headers: { "retry-after": "5" } })
          if (of(caller) >= most) return refuse(`An API key can have ${most} ${what}.`)
          if (of(user) >= OPEN_OF_AN_ORGANIZATION - of(organization))
            return refuse(
              `An organization can have ${OPEN_OF_AN_ORGANIZATION} open streams and requests that wait for events, and a user as many as are left.`
            )
          for (const name of [caller, user, organization]) add(name, 1)
          let left = false
          return Effect.succeed(() => {
            if (left) return
            left = true
            for (const name of [caller, user, organization]) add(name, -1)
          })
        })
    }
  }
}) {
  static readonly layer = this.Default
}
