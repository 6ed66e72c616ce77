/**
 * The outbox of signals: relays decisions from the database to running workflows, which cancel a delivery or make it due
 * now. A signal is a row, written with the change that causes it, and removed after it was sent. Sending twice is
 * harmless: a woken delivery checks whether it is due. A workflow that has ended or not yet started needs no signal: its
 * first step reads the row, and the sweeper starts overdue deliveries without a workflow. Decision D-22.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { WorkflowNotFoundError } from "@temporalio/common"
import { Effect, Schema } from "effect"
import { signals } from "../../workflows/contract.ts"
import { decodeRows } from "../database/decodeRows.ts"
import { TemporalConnection } from "../temporal/Connection.ts"

/** Signals per batch, and concurrent ones. */
const BATCH = 200,
  CONCURRENCY = 24
/** How often the position where polls start advances, in ms, and how often a poll starts from the beginning. */
const ADVANCE = 60_000,
  WHOLE = 600_000
/** Signals per batch for deliveries that were canceled in bulk: ending a workflow costs as much as a delivery. */
const BULK = 10

const decodeLast = decodeRows(Schema.Struct({ last: Schema.Number }))
const decodeSignals = decodeRows(Schema.Struct({ id: Schema.Number, deliveryId: Schema.String, signal: Schema.String }))

export class SignalRelay extends Effect.Service<SignalRelay>()("custody/SignalRelay", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const temporal = yield* TemporalConnection

    /**
     * Where polls for signals start. Removed rows stay in the index for as long as a backup holds a snapshot, so a poll starts
     * after the ids whose rows were already removed a minute ago: by now, every transaction with an earlier id has ended. If
     * one has not, a poll from the beginning finds its signal.
     */
    const start = () => ({ from: 0, gone: 0, at: performance.now(), since: performance.now() })
    const starts = { single: start(), bulk: start() }

    const advance = Effect.fnUntraced(function* (place: ReturnType<typeof start>, first: number | undefined) {
      const now = performance.now()
      if (now - place.since > WHOLE) return Object.assign(place, start())
      if (now - place.at <= ADVANCE) return
      const [row] = yield* decodeLast(sql`SELECT coalesce(pg_sequence_last_value('delivery_signals_id_seq'), 0) AS last`)
      const gone = first === undefined ? (row?.last ?? 0) : first - 1
      Object.assign(place, { from: Math.min(place.gone, gone), gone, at: now })
    })

    /** Sends the signals after `last`. Returns the last one that was read, undefined without any. */
    const batch = Effect.fnUntraced(function* (last: number, bulk: boolean) {
      const rows = yield* decodeSignals(sql`
        SELECT id, delivery_id AS "deliveryId", signal FROM delivery_signals WHERE bulk = ${bulk} AND id > ${last}
        ORDER BY id LIMIT ${bulk ? BULK : BATCH}`)
      const [first, end] = [rows[0]?.id, rows.at(-1)?.id]
      if (end === undefined || !(yield* temporal.isAvailable)) return { first, end, more: false }
      const { client } = yield* temporal.now
      const sent = yield* Effect.forEach(
        rows,
        ({ deliveryId, id, signal }) => {
          const handle = client.workflow.getHandle(deliveryId)
          return Effect.tryPromise(async () => {
            // Older processes also write `retryNow` rows, which mean the same as `wake`.
            await (signal === "cancel" ? handle.cancel() : handle.signal(signals.wake))
          }).pipe(Effect.match({ onSuccess: () => [id], onFailure: ({ error }) => (error instanceof WorkflowNotFoundError ? [id] : []) }))
        },
        { concurrency: CONCURRENCY }
      )
      // failpoint: signals-sent
      yield* sql`DELETE FROM delivery_signals WHERE id = ANY(${sent.flat()}::bigint[])`
      return { first, end, more: rows.length === BATCH }
    })

    return {
      /** Sends all signals; a failed one is retried by the next run. Returns whether there were any. */
      relay: Effect.gen(function* () {
        const { bulk, single } = starts
        let part = yield* batch(single.from, false)
        yield* advance(single, part.first)
        let found = part.end !== undefined
        while (part.more && part.end !== undefined) part = yield* batch(part.end, false)
        part = yield* batch(bulk.from, true)
        yield* advance(bulk, part.first)
        found ||= part.end !== undefined
        return found
      })
    }
  })
}) {
  static readonly layer = this.Default
}
