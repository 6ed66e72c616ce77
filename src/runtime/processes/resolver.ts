/**
 * Whether this process's DNS resolver is away: it does not respond, not even to a query for the root. That is a fault of ours and
 * not of an endpoint: the worker takes no attempts until the resolver answers, and nothing is recorded or used up. A name
 * that gets no answer while the resolver answers for the root is its endpoint's failure. The state is here and not in
 * sending/ because readiness reads it, and nothing but the worker may import sending/. C-5.
 */
import { Resolver } from "node:dns/promises"
import { Effect, Metric } from "effect"

/** Timeout of a query for the root, in ms, and time between two of them while the resolver is away. */
const ROOT_MS = 1_000
const AGAIN = "1 second"

const gauge = Metric.gauge("custody_resolver_away", {
  description: "1 while the DNS resolver of the worker does not respond, not even to a query for the root; no attempts are made then"
})

/** Codes of a query that no server answered; any other failure is an answer. */
const UNANSWERED = /^(ETIMEOUT|ECONNREFUSED|ECANCELLED)$/

/** Open while the resolver of this process answers, and while it is away. */
const answering = Effect.unsafeMakeLatch(true),
  absent = Effect.unsafeMakeLatch(false)
let away = false
gauge.unsafeUpdate(0, [])
const setAway = (is: boolean) => {
  away = is
  gauge.unsafeUpdate(is ? 1 : 0, [])
  if (is) answering.unsafeClose()
  else absent.unsafeClose()
  if (is) absent.unsafeOpen()
  else answering.unsafeOpen()
}

/** Whether the resolver of this process is away. */
export const resolverIsAway = (): boolean => away

/** Whether no server answered the query that failed so. */
export const isUnanswered = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "code" in error && UNANSWERED.test(String(error.code))

const askRoot = async (servers: ReadonlyArray<string>): Promise<boolean> => {
  const resolver = new Resolver({ timeout: ROOT_MS, tries: 1 })
  if (servers.length > 0) resolver.setServers([...servers])
  const timer = setTimeout(() => resolver.cancel(), 2 * ROOT_MS)
  try {
    await resolver.resolveNs(".")
    return true
  } catch (error) {
    return !isUnanswered(error)
  } finally {
    clearTimeout(timer)
  }
}

let asking: Promise<boolean> | undefined
/** Asks for the root after a name got no answer, and returns whether the resolver is away; one query at a time. */
export const checkResolver = async (servers: ReadonlyArray<string>): Promise<boolean> => {
  asking ??= askRoot(servers).finally(() => {
    asking = undefined
  })
  setAway(!(await asking))
  return away
}

/** Runs an effect that never ends while the resolver answers, again whenever it answers again, and asks for the root meanwhile. */
export const whileResolverAnswers = <E, R>(servers: ReadonlyArray<string>, work: Effect.Effect<unknown, E, R>) => {
  const isAway = Effect.delay(
    Effect.promise(() => checkResolver(servers)),
    AGAIN
  )
  const untilItAnswers = Effect.zipRight(absent.await, Effect.repeat(isAway, { while: (is) => is }))
  return Effect.raceFirst(
    Effect.forever(Effect.zipRight(answering.await, Effect.raceFirst(work, absent.await))),
    Effect.forever(untilItAnswers)
  )
}
