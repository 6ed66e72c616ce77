/**
 * Exports a vault's transactions as one file from one consistent snapshot: a cursor in its own transaction, read in parts
 * as the client receives them, so memory use does not depend on the size. If the client disconnects, or reads nothing for
 * a minute, everything is released; the response then ends with a broken connection, so it never looks complete. C-6.
 */
import { HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { SqlClient, type Statement } from "@effect/sql"
import { Effect, Exit, Runtime, Scope } from "effect"
import { seesVault } from "../access/visibility.ts"
import { callerOf, type PrincipalState } from "../credentials/Principal.ts"
import { type Snapshot, Snapshots } from "../database/Snapshots.ts"
import { and } from "../database/sql.ts"
import { notFound, problem } from "../http/Problem.ts"
import { currentRequest } from "../http/RequestContext.ts"
import { Settings } from "../settings/Settings.ts"
import { csvHeader, csvLine } from "./transactionCsv.ts"
import type { TransactionFilter } from "./transactionPage.ts"

/** Conditions of the filters on rows of `transactions v`, each with its AND. */
const transactionFilters = (sql: SqlClient.SqlClient, filter: TransactionFilter): Statement.Fragment =>
  and(
    sql,
    filter.status !== undefined && sql`v.status = ${sql.literal(`'${filter.status}'`)}`,
    filter.direction !== undefined && sql`v.direction = ${filter.direction}`,
    filter.asset !== undefined && sql`v.asset_id = ${filter.asset}`,
    filter.network !== undefined && sql`v.network = ${filter.network}`,
    filter.hash !== undefined && sql`v.hash = ${filter.hash}`,
    filter.occurredAfter !== undefined && sql`v.timestamp >= ${filter.occurredAfter}::timestamptz`,
    filter.occurredBefore !== undefined && sql`v.timestamp <= ${filter.occurredBefore}::timestamptz`
  )

/** Concurrent exports of a key, and of an organization with all its keys: half of what a process has connections for. */
const AT_ONCE = 2,
  ORGANIZATION_AT_ONCE = 3
/** Rows per part. */
const PART = 1_000
/** Seconds without progress after which a client is disconnected. The listener checks every 4 seconds. */
const STALLED = 64

/** Longest time an export may take, in ms: until it ends, Postgres keeps every row that was replaced meanwhile. */
const LONGEST = 1_800_000

/** The formats of an export. */
export type ExportFormat = "csv" | "ndjson"

interface JsonRow {
  readonly json: string
}

export class TransactionExport extends Effect.Service<TransactionExport>()("custody/TransactionExport", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const snapshots = yield* Snapshots
    const { exportMaxRows } = yield* Settings
    const runPromise = Runtime.runPromise(yield* Effect.runtime<never>())

    /** Takes one of an owner's slots while the snapshot is open, whichever process serves it. Returns whether one was free. */
    const takeSlot = Effect.fnUntraced(function* (snapshot: Snapshot, owner: string, slots: number) {
      for (let slot = 1; slot <= slots; slot++) {
        const [row] = yield* snapshot.query(
          sql<{ taken: boolean }>`SELECT pg_try_advisory_xact_lock(hashtextextended(${owner}, ${slot}::bigint)) AS taken`
        )
        if (row?.taken === true) return true
      }
      return false
    })

    const takePlace = Effect.fnUntraced(function* (snapshot: Snapshot, principal: PrincipalState) {
      for (const [owner, slots, whose] of [
        [callerOf(principal), AT_ONCE, "an API key"],
        [`exports of ${principal.organizationId}`, ORGANIZATION_AT_ONCE, "an organization"]
      ] as const) {
        if (!(yield* takeSlot(snapshot, owner, slots)))
          return yield* problem("too_many_exports", `At most ${slots} exports can run at a time for ${whose}.`, {
            headers: { "retry-after": "5" }
          })
      }
    })

    const prepare = Effect.fnUntraced(function* (principal: PrincipalState, vaultId: string, filter: TransactionFilter) {
      const snapshot = yield* snapshots.open
      const seen = yield* snapshot.query(
        sql`SELECT 1 FROM vaults v WHERE v.id = ${vaultId} AND ${seesVault(sql, principal, sql`${vaultId}::text`)}`
      )
      if (seen.length === 0) return yield* notFound()
      yield* takePlace(snapshot, principal)
      const where: Statement.Fragment = sql`v.vault_id = ${vaultId} ${transactionFilters(sql, filter)}`
      const [found] = yield* snapshot.query(
        sql<{ count: number }>`SELECT count(*) AS count FROM (SELECT 1 FROM transactions v WHERE ${where} LIMIT ${exportMaxRows + 1}) v`
      )
      if ((found?.count ?? 0) > exportMaxRows) {
        return yield* problem(
          "too_many_rows",
          `More than ${exportMaxRows} transactions match, and an export has at most ${exportMaxRows}. Narrow the filters.`
        )
      }
      yield* snapshot.query(sql`
        DECLARE transactions_export NO SCROLL CURSOR FOR
        SELECT v.json FROM transactions v WHERE ${where} ORDER BY v.timestamp DESC, v.id DESC`)
      return snapshot.query(sql<JsonRow>`${sql.literal(`FETCH FORWARD ${PART} FROM transactions_export`)}`)
    })

    return {
      /** The file as a response; 404 if the vault is not visible. */
      start: Effect.fn("TransactionExport.start")(function* (
        principal: PrincipalState,
        vaultId: string,
        format: ExportFormat,
        filter: TransactionFilter
      ) {
        const { method } = yield* HttpServerRequest.HttpServerRequest
        const context = yield* currentRequest
        const scope = yield* Scope.make()
        const close = () => runPromise(Scope.close(scope, Exit.void))
        const next = yield* prepare(principal, vaultId, filter).pipe(
          Scope.extend(scope),
          Effect.catchTag("SqlError", Effect.die),
          Effect.onError(() => Scope.close(scope, Exit.void))
        )
        const contentType = format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson"
        const headers = { "content-disposition": `attachment; filename="transactions.${format}"` }
        if (method === "HEAD") {
          yield* Scope.close(scope, Exit.void)
          return HttpServerResponse.raw("", { contentType, headers })
        }
        context.allowIdle(STALLED)
        return HttpServerResponse.raw(
          fileOf(format, () => runPromise(next), close),
          { contentType, headers }
        )
      })
    }
  })
}) {
  static readonly layer = this.Default
}

/** The file as bytes: a part each time the connection accepts more. Breaks off after `longest` ms. */
export const fileOf = (
  format: ExportFormat,
  next: () => Promise<ReadonlyArray<JsonRow>>,
  close: () => Promise<void>,
  longest = LONGEST
) => {
  const encoder = new TextEncoder()
  const startedAt = performance.now()
  let watch: Timer | undefined
  const end = () => {
    clearTimeout(watch)
    return close()
  }
  let first = true
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(watch)
        try {
          if (performance.now() - startedAt > longest) throw new Error("the export took too long")
          const rows = await next()
          let text = first && format === "csv" ? csvHeader : ""
          first = false
          if (format === "csv") for (const { json } of rows) text += csvLine(json)
          else for (const { json } of rows) text += `${json}\n`
          if (text !== "") controller.enqueue(encoder.encode(text))
          if (rows.length < PART) {
            // The place is free before the client knows that the file is complete: its next export is not refused.
            await end()
            controller.close()
            return
          }
          // The listener closes the connection of a client that stops reading; this is for a client that never started.
          watch = setTimeout(() => void close(), (STALLED + 10) * 1_000)
        } catch (error) {
          controller.error(error)
          await end()
        }
      },
      cancel: end
    },
    { highWaterMark: 0 }
  )
}
