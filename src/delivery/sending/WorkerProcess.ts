/**
 * This worker among all workers: its id in the rows of its attempts, and its share of the attempts that may be in flight at
 * one webhook. The shares of `WEBHOOK_MAX_IN_FLIGHT` are whole numbers by the rank of the process ids and add up to the
 * limit; a share may be 0. When a worker joins, those that run have attempts in flight by their earlier shares, so it takes
 * its own once these must have ended, and no task before that: it would have to queue what it gets. Decision D-52.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Deferred, Effect } from "effect"
import { presence } from "../../runtime/processes/Presence.ts"
import { resolverIsAway } from "../../runtime/processes/resolver.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { insertDeliveryCommands } from "../../runtime/temporal/commands.ts"

/** Longest time from a worker's start until attempts of others by their earlier shares have ended, in seconds. */
const JOINING_S = 13

/** A process's share of a limit: whole numbers that add up to it. */
export const shareOf = (limit: number, rank: number, processes: number): number =>
  Math.floor(limit / processes) + (rank < limit % processes ? 1 : 0)

export class WorkerProcess extends Effect.Service<WorkerProcess>()("custody/WorkerProcess", {
  scoped: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { webhookMaxInFlight } = yield* Settings
    const { id, isSeen, keep } = yield* presence("worker")
    let share = 0
    const joined = yield* Deferred.make<void>()
    /** The attempts of processes that are gone are made again: their deliveries' workflows hear of it. */
    const takeOver = (lost: ReadonlyArray<string>) =>
      insertDeliveryCommands(
        sql,
        sql`SELECT t.delivery_id, t.organization_id FROM delivery_attempts t WHERE t.process_id = ANY(${lost}::text[]) AND t.result IS NULL`
      )
    yield* keep({
      canSend: () => !resolverIsAway(),
      takeOver,
      seen: ({ ageS, isAlone, isOldest, others }) =>
        Effect.suspend(() => {
          const rank = [...others, id].sort().indexOf(id)
          const hasJoined = others.length === 0 || isOldest || ageS > JOINING_S
          share = hasJoined ? shareOf(webhookMaxInFlight, rank, others.length + 1) : 0
          return hasJoined || isAlone ? Deferred.succeed(joined, undefined) : Effect.void
        })
    })
    return {
      id,
      /** Waits until the process has a share, or no other one can take tasks. */
      joined: Deferred.await(joined),
      /** Attempts that this process may have in flight at one webhook now; none while others may think that it is gone. */
      share: () => (isSeen() ? share : 0)
    }
  })
}) {
  static readonly layer = this.Default
}
