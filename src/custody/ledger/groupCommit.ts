/**
 * Applies waiting batches of the same organizations in one transaction: their rows are loaded, the batches are applied
 * one after the other, and the changes of all of them are written together. An invalid batch is undone and fails alone.
 * Source: custody records, rules 1 to 3.
 */
import type { SqlClient } from "@effect/sql"
import { Data, Effect, Either, Exit } from "effect"
import type { Occurrence } from "../../events/log/Envelope.ts"
import * as EventLog from "../../events/log/EventLog.ts"
import type { Kind } from "../../events/log/Kind.ts"
import * as Idempotency from "../../http/Idempotency.ts"
import { MasterKey, type Sealing } from "../../runtime/crypto/MasterKey.ts"
import { transaction } from "../../runtime/database/sql.ts"
import { failpoint } from "../../runtime/failpoint.ts"
import { applyRecords, type Numbered } from "./applyRecords.ts"
import type { LedgerCatalog } from "./LedgerCatalog.ts"
import { mark, type State, undo } from "./LedgerState.ts"
import type { Fault, Record } from "./Record.ts"
import { load } from "./readState.ts"
import { keepFormerEntities, write } from "./writeState.ts"

/** Most stale lines that a response names. */
export const NAMED = 100

/** The result of a batch. `events` counts the recorded events. */
export interface Applied {
  readonly received: number
  readonly changed: number
  readonly unchanged: number
  /** Records older than what their rows already say, and the lines of the first hundred. C-9. */
  readonly stale: number
  readonly staleLines: ReadonlyArray<number>
  readonly events: number
}

/** Some records are invalid; nothing of the batch was applied. */
export class InvalidRecords extends Data.TaggedError("InvalidRecords")<{ readonly faults: ReadonlyArray<Fault> }> {
  override get message() {
    return this.faults.map(({ field, line, reason }) => `line ${line}: ${field === "" ? "" : `${field} `}${reason}`).join("\n")
  }
}

/** A decoded line: a record, or what is wrong with it. */
export interface Line {
  readonly line: number
  readonly read: Either.Either<Record, ReadonlyArray<Fault>>
  /** The id or name in the line, even if the rest is invalid. */
  readonly id?: string | undefined
}

/** A batch of lines. */
export interface Batch {
  readonly lines: ReadonlyArray<Line>
  /** Whether it causes events. */
  readonly events: boolean
  /** Its idempotency key, and the key that encrypts stored responses; undefined without one. */
  readonly identity: (Idempotency.Identity & { readonly master: Sealing }) | undefined
}

/** The response to a batch, and its result: undefined if the response was stored by an earlier request. */
export interface BatchResponse {
  readonly answer: Idempotency.StoredResponse
  readonly applied: Applied | undefined
}

/** The outcome of one of several batches: its response, or why it was rejected. */
export type Outcome = Exit.Exit<BatchResponse, InvalidRecords | Idempotency.IdempotencyProblem>

const shared: ReadonlySet<Record["type"]> = new Set(["transaction", "address", "balance"])

/** Whether a record belongs to the catalog, which is applied while nobody else writes. */
export const isCatalogRecord = ({ type }: Record): boolean => !shared.has(type)

/** The records of a batch, the errors of its other lines, and the ids in those. */
const read = ({ lines }: Batch) => {
  const records: Array<Numbered> = []
  const faults: Array<Fault> = []
  const broken = new Set<string>()
  for (const { id, line, read } of lines) {
    if (Either.isRight(read)) records.push({ line, record: read.right })
    else {
      faults.push(...read.left)
      if (id !== undefined) broken.add(id)
    }
  }
  return { records, faults, broken }
}

/** The organizations that a state refers to. */
const organizationsIn = ({ entities, organizations, users, vaults }: State): ReadonlySet<string> =>
  new Set([
    ...[...vaults.all(), ...entities.all(), ...users.all()].map(({ organizationId }) => organizationId),
    ...[...organizations.all()].map(({ id }) => id)
  ])

/**
 * Applies batches in one transaction, in order. `organizationIds` are those of the vaults that they name. A batch of the
 * catalog comes alone and needs none, because nobody else writes meanwhile. Returns the outcome of each; fails if the
 * transaction does.
 */
export const groupCommit = (
  sql: SqlClient.SqlClient,
  catalog: LedgerCatalog,
  batches: ReadonlyArray<Batch>,
  organizationIds: ReadonlySet<string>
) =>
  transaction(sql)(
    Effect.gen(function* () {
      const all = batches.map((batch) => ({ batch, ...read(batch) }))
      const records = all.flatMap((one) => one.records.map(({ record }) => record))
      const exclusive = records.some(isCatalogRecord)
      // Every other writer locks a row of the table, so this waits for them and keeps them out.
      if (exclusive) yield* sql`LOCK TABLE event_streams IN EXCLUSIVE MODE`
      const locked = yield* EventLog.lock(sql, organizationIds)
      const state = yield* load(sql, records, catalog.at(locked.catalogVersion))
      const streams = exclusive ? yield* EventLog.lock(sql, organizationsIn(state)) : locked
      // A vault that was recorded after its organization was looked up is not locked, and counts as not recorded before.
      if (!exclusive) state.vaults.retain(({ organizationId }) => streams.of.has(organizationId))

      const occurrences: Array<Occurrence<Kind>> = []
      const before = yield* EventLog.datesAhead(sql, streams)
      let dates = before
      const applyOne = ({ batch, broken, faults, records }: (typeof all)[number]) =>
        Effect.suspend(() => {
          mark(state)
          const result = applyRecords(state, records, broken, new Date(streams.now).toISOString(), dates)
          if (faults.length + result.faults.length > 0) {
            undo(state)
            return new InvalidRecords({ faults: [...faults, ...result.faults].sort((a, b) => a.line - b.line) })
          }
          dates = result.dates
          if (batch.events) occurrences.push(...result.occurrences)
          return Effect.succeed<Applied>({
            received: batch.lines.length,
            changed: result.changed,
            unchanged: result.unchanged,
            stale: result.stale.length,
            staleLines: result.stale.slice(0, NAMED),
            events: batch.events ? result.occurrences.length : 0
          })
        })

      const outcomes: Array<Outcome> = []
      for (const one of all) {
        let applied: Applied | undefined
        const answering = Effect.map(applyOne(one), (body): Idempotency.StoredResponse => {
          applied = body
          return { status: 200, body }
        })
        const { identity } = one.batch
        const once =
          identity === undefined
            ? answering
            : Effect.provideService(Idempotency.guarded(sql, identity, answering), MasterKey, identity.master)
        outcomes.push(
          yield* Effect.matchEffect(once, {
            onSuccess: (answer) => Effect.succeed<Outcome>(Exit.succeed({ answer, applied })),
            onFailure: (error) => (error._tag === "SqlError" ? Effect.fail(error) : Effect.succeed<Outcome>(Exit.fail(error)))
          })
        )
      }
      const ids = EventLog.identify(streams, occurrences)
      yield* write(sql, state)
      yield* keepFormerEntities(sql, state, occurrences)
      const created = occurrences.filter(({ organizationId }) => !streams.of.has(organizationId))
      const fresh = created.length === 0 ? streams : yield* EventLog.lock(sql, new Set(created.map(({ organizationId }) => organizationId)))
      yield* EventLog.append(sql, { ...streams, of: new Map([...streams.of, ...fresh.of]) }, occurrences, ids)
      yield* EventLog.keepDates(sql, streams, before, dates)
      failpoint("feed-written")
      return outcomes
    })
  )
