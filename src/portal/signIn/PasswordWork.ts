/**
 * Hashing and checking passwords. Each takes a core and 64 MB, so networks take turns: one with many attempts delays another by one.
 * docs/security.md, T27.
 */
import { Effect } from "effect"
import { siteOf } from "../../http/ClientAddress.ts"
import { type Problem, problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"

/** Concurrent hashes and checks, and requests in or before one, in total and of one site. */
const CONCURRENCY = 2,
  WAITING = 2_000,
  WAITING_OF_SITE = 20

const library = Effect.promise(() => import("./auth.ts"))

export class PasswordWork extends Effect.Service<PasswordWork>()("custody/portal/PasswordWork", {
  effect: Effect.gen(function* () {
    const cores = yield* Effect.makeSemaphore(CONCURRENCY)
    /** The sites of requests in or before their work. */
    const sites = new Map<string, { readonly turn: Effect.Semaphore; waiting: number }>()
    let waiting = 0
    const site = Effect.map(currentRequest, ({ client }) => (client === undefined ? "unknown" : siteOf(client)))

    /** Waits for a free core, and rejects the request if too many wait, in total or from its site. */
    const inTurn = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | Problem<"service_unavailable">, R> =>
      Effect.flatMap(site, (name): Effect.Effect<A, E | Problem<"service_unavailable">, R> => {
        const from = sites.get(name) ?? { turn: Effect.unsafeMakeSemaphore(1), waiting: 0 }
        if (waiting >= WAITING || from.waiting >= WAITING_OF_SITE)
          return problem("service_unavailable", "Too many people are signing in right now. Try again.", { headers: { "retry-after": "2" } })
        sites.set(name, from)
        from.waiting++
        waiting++
        // The work goes on when its client leaves, so it keeps its turn. Waiting ends.
        return Effect.ensuring(
          from.turn.withPermits(1)(cores.withPermits(1)(Effect.uninterruptible(work))),
          Effect.sync(() => {
            waiting--
            if (--from.waiting === 0) sites.delete(name)
          })
        )
      })

    return {
      inTurn,
      /** The hash of a password, for storage. */
      hash: (password: string) => Effect.flatMap(library, ({ hashPassword }) => inTurn(Effect.promise(() => hashPassword(password)))),
      /** Whether a password has a hash. */
      verify: (password: string, hash: string) =>
        Effect.flatMap(library, ({ verifyPassword }) => inTurn(Effect.promise(() => verifyPassword(password, hash))))
    }
  })
}) {
  static readonly layer = this.Default
}
