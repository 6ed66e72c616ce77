/**
 * The ledger: the only writer of custody data. It applies batches of records. A batch is applied completely or not at
 * all, and its changes and the events that they cause commit together. Writers of one organization take turns under the
 * lock of its event stream, so a record that is fed twice concurrently is one row and one event. Writers of different
 * organizations do not wait for each other, except for records of the catalog (networks, assets, organizations, entities,
 * vaults, users), which are applied while nobody else writes.
 *
 * Waiting batches of one organization share a transaction and its statements, but each gets its own response: an invalid
 * one is removed and the others commit. An idle ledger adds no wait.
 *
 * What can fail: an invalid record, which is reported by line and field; an unavailable Postgres, which loses nothing
 * because nothing was acknowledged; a deadlock, after which the transaction is repeated. Source: custody records.
 */

import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Data, Effect, Exit, Metric, MetricBoundaries, Schema } from "effect"
import { LRUCache } from "lru-cache"
import * as Idempotency from "../../http/Idempotency.ts"
import { type ProblemOf, problem } from "../../http/Problem.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { batched } from "../../runtime/database/Batch.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { isUnavailable } from "../../runtime/database/unavailable.ts"
import { type Batch, type BatchResponse, groupCommit, type InvalidRecords, isCatalogRecord, type Line } from "./groupCommit.ts"
import { LedgerCatalog } from "./LedgerCatalog.ts"

/** Most records per request, and most requests per transaction. */
export const MAX_RECORDS = 1_000
/** How long a batch waits for its turn, in ms, before it is rejected. */
const PATIENCE_MS = 10_000
/** Vaults and organizations that are cached between batches. */
const REMEMBERED = 50_000

const waited = Metric.histogram(
  "custody_feed_wait_seconds",
  MetricBoundaries.fromIterable([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]),
  "How long a batch of records waited for its turn"
)

/** A waiting batch; `since` is on the monotonic clock. */
interface Waiting extends Batch {
  readonly since: number
}

/** A batch did not get its turn in time. */
class Overloaded extends Data.TaggedError("Overloaded") {}

/** The outcome of a waiting batch. */
type Settled = Exit.Exit<BatchResponse, InvalidRecords | Idempotency.IdempotencyProblem | SqlError.SqlError | Overloaded>

const decodeVaults = decodeRows(Schema.Struct({ id: Schema.String, organizationId: Schema.String }))

export class Ledger extends Effect.Service<Ledger>()("custody/Ledger", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const catalog = new LedgerCatalog()
    const organizationOfVault = new LRUCache<string, string>({ max: REMEMBERED })

    const vaultsIn = (lines: ReadonlyArray<Line>): ReadonlySet<string> =>
      new Set(lines.flatMap(({ read }) => (read._tag === "Right" && "vaultId" in read.right ? [read.right.vaultId] : [])))

    /** The organizations of vaults, which are cached: one changes only if it is recorded again after its organization was deleted. */
    const organizationsOf = Effect.fnUntraced(function* (vaultIds: ReadonlySet<string>) {
      const unknown = [...vaultIds].filter((id) => !organizationOfVault.has(id))
      if (unknown.length > 0) {
        const rows = yield* decodeVaults(sql`
          SELECT id, organization_id AS "organizationId" FROM vaults WHERE id = ANY(${unknown})`)
        for (const { id, organizationId } of rows) organizationOfVault.set(id, organizationId)
      }
      return new Set([...vaultIds].flatMap((id) => organizationOfVault.get(id) ?? []))
    })

    const together = (batches: ReadonlyArray<Batch>, organizationIds: ReadonlySet<string>) =>
      groupCommit(sql, catalog, batches, organizationIds)

    /** Applies the waiting batches of one organization; rejects those that waited too long. */
    const turn = (organizationId: string) =>
      Effect.fnUntraced(function* (waiting: ReadonlyArray<Waiting>) {
        const now = performance.now()
        const late = waiting.map(({ since }) => now - since > PATIENCE_MS)
        for (const { since } of waiting) waited.unsafeUpdate((now - since) / 1_000, [])
        const due = waiting.filter((_, index) => late[index] !== true)
        const outcomes = due.length === 0 ? [] : yield* oneByOneWhenBroken(due, new Set([organizationId]))
        let next = 0
        return late.map((isLate): Settled => {
          const outcome = isLate ? undefined : outcomes[next++]
          return outcome ?? Exit.fail(new Overloaded())
        })
      })

    /** A statement that Postgres rejects because of one batch must not fail the others. */
    const oneByOneWhenBroken = (due: ReadonlyArray<Batch>, organizationIds: ReadonlySet<string>) =>
      Effect.catchAll(together(due, organizationIds), (error) =>
        due.length === 1 || isUnavailable(error)
          ? Effect.fail(error)
          : Effect.map(
              Effect.forEach(due, (batch) => Effect.exit(together([batch], organizationIds))),
              (exits) =>
                exits.map(
                  (exit): Settled => (Exit.isSuccess(exit) ? (exit.value[0] ?? Exit.die("no outcome")) : Exit.failCause(exit.cause))
                )
            )
      )

    const context = yield* Effect.context<never>()
    /** A queue of batches for each organization. */
    const queues = new LRUCache<string, (item: Waiting) => Effect.Effect<Settled, SqlError.SqlError>>({
      max: REMEMBERED,
      memoMethod: (organizationId) =>
        Effect.runSync(
          Effect.provide(
            batched(turn(organizationId), { size: MAX_RECORDS, parallel: 1, weight: ({ lines }) => Math.max(1, lines.length) }),
            context
          )
        )
    })

    /** Applies a batch of vaults of these organizations: together with others, or alone if it has none or several. */
    const applyTo = Effect.fnUntraced(function* (batch: Waiting, organizationIds: ReadonlySet<string>) {
      const [organizationId] = organizationIds
      if (organizationIds.size === 1 && organizationId !== undefined) return yield* Effect.flatten(queues.memo(organizationId)(batch))
      const [outcome]: ReadonlyArray<Settled> = yield* together([batch], organizationIds)
      return yield* outcome ?? Effect.dieMessage("a batch was given no outcome")
    })

    /** Applies a batch. A rejected one is applied again if its vaults are no longer in the organizations that were cached. */
    const apply = Effect.fnUntraced(function* (unqueued: Batch) {
      const batch = { ...unqueued, since: performance.now() }
      if (batch.lines.some(({ read }) => read._tag === "Right" && isCatalogRecord(read.right))) return yield* applyTo(batch, new Set())
      const vaultIds = vaultsIn(batch.lines)
      const cached = yield* organizationsOf(vaultIds)
      return yield* Effect.catchTag(applyTo(batch, cached), "InvalidRecords", (rejected) =>
        Effect.gen(function* () {
          for (const id of vaultIds) organizationOfVault.delete(id)
          const current = yield* organizationsOf(vaultIds)
          return yield* current.symmetricDifference(cached).size === 0 ? rejected : applyTo(batch, current)
        })
      )
    })

    return {
      /**
       * Applies a batch in one transaction. `events: false` records no events, for history that predates the service.
       * Fails with {@link InvalidRecords}; then nothing changed.
       */
      apply: (lines: ReadonlyArray<Line>, { events }: { readonly events: boolean }) =>
        apply({ lines, events, identity: undefined }).pipe(
          Effect.flatMap(({ applied }) =>
            applied === undefined ? Effect.dieMessage("a batch without an Idempotency-Key got a stored response") : Effect.succeed(applied)
          ),
          Effect.uninterruptible
        ),

      /**
       * The same for the current request, once per `Idempotency-Key`: a client that lost the response repeats the request
       * without causing events twice. `sent` is the request's content. Fails with a problem if the key does not match, or
       * if the ledger could not apply the batch within 10 s. Decision D-13.
       */
      feed: (sent: string, lines: ReadonlyArray<Line>, { events }: { readonly events: boolean }) =>
        Effect.gen(function* () {
          const identity = yield* Idempotency.identify("platform", [events, sent])
          const master = yield* MasterKey
          return yield* apply({ lines, events, identity: identity === undefined ? undefined : { ...identity, master } })
        }).pipe(Effect.catchTag("Overloaded", overloaded), Effect.uninterruptible)
    }
  })
}) {
  static readonly layer = this.Default
}

const overloaded = (): ProblemOf<"service_unavailable"> =>
  problem("service_unavailable", "The feed is overloaded: the batch waited for 10 seconds. Send it again.", {
    headers: { "retry-after": "1" }
  })
