/**
 * How many attempts this worker may have in flight at each endpoint, so that all workers together have at most
 * WEBHOOK_MAX_IN_FLIGHT. Permits are leased, not taken for each attempt: a worker keeps the ones it uses and requests more
 * when it has more to send. If others wait for permits of the same webhook, each returns what exceeds its fair share as its
 * attempts end, so an endpoint's permits are where its deliveries are.
 *
 * The only worker holds every permit and requests none. When another one registers, it first records which permits
 * are in use; only then is the other one granted any. Permits of a worker that has not been seen for four seconds are free,
 * unless Postgres was unavailable in between: then no worker could be seen.
 * Decision D-52.
 */
import { createHash } from "node:crypto"
import { Context, Effect, Layer, Schedule } from "effect"
import { batched } from "../../database/Batch.ts"
import { presence } from "../../processes/Presence.ts"
import { Settings } from "../../settings/Settings.ts"
import { permitsRepo, type Shared } from "./PermitsRepo.ts"

/** Interval at which a worker checks which others wait for permits. */
const LOOK_EVERY = "400 millis"
/** How long a worker that was refused a permit leaves further requests to its regular check, in ms. */
const AGAIN_MS = 400
/** How long permits without attempts are kept while no other worker waits for them, in ms. */
const IDLE_MS = 15_000

/** The attempts at an endpoint. */
export interface Usage {
  readonly inFlight: number
  /** Attempts that wait in line. */
  readonly waiting: number
}

/** The permits of this worker, for its {@link EndpointLimiter}. */
export interface Permits {
  /** Attempts that may be in flight at the endpoint now. */
  readonly of: (webhookId: string) => number
  /** Whether requesting one more may help. */
  readonly mayGrow: (webhookId: string) => boolean
  /** Requests one more; has no effect if there is none. */
  readonly grow: (webhookId: string) => Effect.Effect<void>
  /** Connects the limiter: the attempts at its endpoints, and what to do when there may be more permits. */
  readonly serve: (usage: (webhookId: string) => Usage, changed: (webhookId: string) => void, used: () => Iterable<string>) => void
}

/** The permits of a worker that is always the only one. */
export const unshared = (most: number): Permits => ({ of: () => most, mayGrow: () => false, grow: () => Effect.void, serve: () => {} })

interface Lease {
  permits: number
  /** Limit of attempts in flight while others wait for permits. */
  bound: number
  refusedAt: number
  usedAt: number
}

/** A worker's share of a webhook's permits: equal shares, and the remainder by a hash, so that it differs by webhook. */
export const fairShare = (me: string, { held, wanted, webhookId }: Shared, most: number): number => {
  const hashed = (id: string) => createHash("sha1").update(`${webhookId}/${id}`).digest("hex")
  const contenders = [...new Set([...Object.keys(held), ...Object.keys(wanted), me])].sort((one, other) =>
    hashed(one) < hashed(other) ? -1 : 1
  )
  return Math.floor(most / contenders.length) + (contenders.indexOf(me) < most % contenders.length ? 1 : 0)
}

const make = Effect.gen(function* () {
  const { webhookMaxInFlight: most } = yield* Settings
  const { claimSole, exclusively, id: me, isSeen, keep, releaseSole } = yield* presence("worker")
  const repo = yield* permitsRepo(me, most)
  const leases = new Map<string, Lease>()
  /** Whether this is the only worker. */
  let sole = false
  /** Closed while it is. */
  const hasOthers = yield* Effect.makeLatch(true)
  const setSole = (is: boolean) => {
    sole = is
    if (is) hasOthers.unsafeClose()
    else hasOthers.unsafeOpen()
  }
  /** Whether the other workers know which permits this one uses. */
  let recorded = false
  let usageOf = (_: string): Usage => ({ inFlight: 0, waiting: 0 }),
    changed = (_: string): void => {},
    used = (): Iterable<string> => []

  const leaseOf = (webhookId: string): Lease => {
    const known = leases.get(webhookId)
    if (known !== undefined) return known
    const fresh: Lease = { permits: 0, bound: most, refusedAt: Number.NEGATIVE_INFINITY, usedAt: performance.now() }
    leases.set(webhookId, fresh)
    return fresh
  }

  const take = (asked: ReadonlyArray<readonly [string, number]>) =>
    Effect.map(repo.take(asked), (rows) => {
      const now = performance.now()
      const granted = new Map(rows.map(({ permits, webhookId }) => [webhookId, permits]))
      for (const [webhookId, more] of asked) {
        const lease = leaseOf(webhookId)
        const before = lease.permits
        lease.permits = granted.get(webhookId) ?? before
        lease.usedAt = now
        if (lease.permits < before + more) lease.refusedAt = now
      }
    })

  const grow = yield* batched(
    (webhookIds: ReadonlyArray<string>) =>
      exclusively(
        Effect.suspend(() => {
          const demands = [...Map.groupBy(webhookIds, (id) => id)].flatMap(([id, all]) => {
            const more = sole ? 0 : Math.min(all.length, most - (leases.get(id)?.permits ?? 0))
            return more > 0 ? [[id, more] as const] : []
          })
          demands.sort(([one], [other]) => (one < other ? -1 : 1))
          return Effect.as(
            demands.length === 0 ? Effect.void : take(demands),
            webhookIds.map(() => true)
          )
        })
      ),
    { size: 500, parallel: 1 }
  )

  /** Records which permits are in use and leaves the others to other workers. */
  const share = Effect.suspend(() => {
    setSole(false)
    recorded = false
    const held = [...used()].flatMap((id) => {
      const { inFlight } = usageOf(id)
      if (inFlight > 0) leaseOf(id).permits = inFlight
      return inFlight > 0 ? [[id, inFlight] as const] : []
    })
    return Effect.map(releaseSole(repo.share(held.sort(([one], [other]) => (one < other ? -1 : 1)))), () => {
      recorded = true
    })
  })

  /** Its permits were granted to other workers. Attempts in flight end; all other permits are requested again. */
  const absent = () => {
    setSole(false)
    recorded = false
    leases.clear()
  }

  const seen = (others: number) =>
    Effect.gen(function* () {
      if (others > 0 && !recorded) yield* share
      if (others === 0 && !sole && (yield* claimSole(repo.clear))) {
        setSole(true)
        recorded = false
        const ids = [...leases.keys()]
        leases.clear()
        for (const id of ids) changed(id)
      }
    })

  /** The permits of a webhook to keep; waiting workers get the rest as attempts end. */
  const settle = (shared: Shared, lease: Lease, now: number): number => {
    const { inFlight, waiting } = usageOf(shared.webhookId)
    const need = inFlight + waiting
    const sumOfOthers = (all: Readonly<Record<string, number>>) =>
      Object.entries(all).reduce((sum, [id, count]) => (id === me ? sum : sum + count), 0)
    const wanted = sumOfOthers(shared.wanted)
    if (need > 0) lease.usedAt = now
    if (wanted === 0) {
      lease.bound = most
      return now - lease.usedAt > IDLE_MS ? 0 : lease.permits
    }
    lease.bound = Math.min(need, Math.max(fairShare(me, shared, most), most - sumOfOthers(shared.held) - wanted))
    return Math.min(lease.permits, Math.max(inFlight, lease.bound))
  }

  const look = exclusively(
    Effect.gen(function* () {
      if (sole || leases.size === 0) return
      const now = performance.now()
      const rows = new Map((yield* repo.read([...leases.keys()].sort())).map((row) => [row.webhookId, row]))
      const kept: Array<readonly [string, number]> = [],
        asked: Array<readonly [string, number]> = []
      for (const [webhookId, lease] of leases) {
        const shared = rows.get(webhookId) ?? { webhookId, held: {}, wanted: {} }
        const [held, wanted] = [shared.held[me] ?? 0, shared.wanted[me] ?? 0]
        lease.permits = Math.min(lease.permits, held)
        // From here on, no attempt begins beyond the permits that are kept.
        lease.permits = settle(shared, lease, now)
        const { inFlight, waiting } = usageOf(webhookId)
        const more = Math.min(waiting, Math.min(most, lease.bound) - lease.permits)
        if (more > 0) asked.push([webhookId, more])
        else if (held !== lease.permits || wanted > 0) kept.push([webhookId, lease.permits])
        if (lease.permits === 0 && inFlight + waiting === 0 && now - lease.refusedAt > AGAIN_MS) leases.delete(webhookId)
      }
      if (kept.length > 0) yield* repo.keep(kept)
      if (asked.length > 0) yield* take(asked.sort(([one], [other]) => (one < other ? -1 : 1)))
      for (const [webhookId] of asked) changed(webhookId)
    })
  )

  const quietly = <A, E>(what: Effect.Effect<A, E>) =>
    Effect.catchAllCause(what, (cause) => Effect.logDebug("permits of endpoints could not be shared with other workers", cause))

  yield* keep({ absent, seen, free: repo.free, leave: repo.free([me]) })
  yield* Effect.forkScoped(Effect.schedule(hasOthers.whenOpen(quietly(look)), Schedule.spaced(LOOK_EVERY)))

  return EndpointPermits.of({
    of: (webhookId) => {
      if (sole) return most
      // Permits that this worker has not renewed may have been granted to others.
      if (!isSeen()) return 0
      const lease = leases.get(webhookId)
      return lease === undefined ? 0 : Math.min(lease.permits, lease.bound)
    },
    mayGrow: (webhookId) => {
      if (sole) return false
      const lease = leases.get(webhookId)
      return lease === undefined || (lease.permits < Math.min(most, lease.bound) && performance.now() - lease.refusedAt > AGAIN_MS)
    },
    grow: (webhookId) => quietly(grow(webhookId)).pipe(Effect.asVoid),
    serve: (usage, onChange, all) => {
      usageOf = usage
      changed = onChange
      used = all
    }
  })
})

export class EndpointPermits extends Context.Tag("custody/EndpointPermits")<EndpointPermits, Permits>() {
  static readonly layer = Layer.scoped(EndpointPermits, make)
}
