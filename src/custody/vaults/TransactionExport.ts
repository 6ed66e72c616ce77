/**
 * Exports a vault's transactions as one file from one consistent snapshot: a transaction of its own, read in parts as the
 * client receives them, so memory use does not depend on the size. If the client disconnects, or reads nothing for a
 * minute, everything is released; the response then ends with a broken connection, so it never looks complete. C-6.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Exit, Runtime, Schema, Scope } from "effect"
import { callerOf, type PrincipalState } from "../../access/credentials/Principal.ts"
import { seesVault } from "../../access/visibility/visibility.ts"
import { inPeriod } from "../../http/Period.ts"
import { notFound, problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { againOnPrimary } from "../../runtime/database/replica/ReadReplica.ts"
import { type Snapshot, Snapshots } from "../../runtime/database/Snapshots.ts"
import { and } from "../../runtime/database/sql.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { type ExportFormat, fileOf } from "./exportFile.ts"
import { exportName } from "./exportName.ts"
import type { Amounts, RowNames } from "./transactionCsv.ts"
import { JSON_OF_ROW, type TransactionFilter } from "./transactionPage.ts"

/** Conditions of the filters on rows of `transactions v`, each with its AND. */
const transactionFilters = (sql: SqlClient.SqlClient, filter: TransactionFilter): Statement.Fragment =>
  sql`${inPeriod(sql, "v.timestamp", filter)} ${and(
    sql,
    filter.status !== undefined && sql`v.status = ${sql.literal(`'${filter.status}'`)}`,
    filter.direction !== undefined && sql`v.direction = ${filter.direction}`,
    filter.asset !== undefined && sql`v.asset_id = ${filter.asset}`,
    filter.network !== undefined && sql`v.network = ${filter.network}`,
    filter.hash !== undefined && sql`v.hash = ${filter.hash}`
  )}`

/** Concurrent exports of a key, and of an organization with all its keys: half of what a process has connections for. */
const CONCURRENCY = 2,
  ORGANIZATION_CONCURRENCY = 3
/** Rows per part: about as much as a connection takes at once. */
const PART = 150
/** Seconds without progress after which a client is disconnected: a minute. The listener checks every 4 seconds. */
const STALLED = 64

const byId = Schema.Record({ key: Schema.String, value: Schema.String })
const Names = Schema.Struct({ vaultIds: Schema.Array(Schema.String), labels: byId, symbols: byId })
const none: RowNames = { vaultIds: [], labels: {}, symbols: {} }

/** A part of the rows as text, with the place of its last row; everything but the count is null for an empty part. */
const Part = Schema.Struct({
  lines: Schema.NullOr(Schema.String),
  count: Schema.Number,
  timestamp: Schema.NullOr(Schema.String),
  id: Schema.NullOr(Schema.String),
  names: Schema.NullOr(Schema.parseJson(Names))
})
const decodeParts = decodeRows(Part)
const decodeTaken = decodeRows(Schema.Struct({ taken: Schema.Boolean }))
const decodeLabel = decodeRows(Schema.Struct({ label: Schema.String }))
const decodeCount = decodeRows(Schema.Struct({ count: Schema.Number }))

export class TransactionExport extends Effect.Service<TransactionExport>()("custody/TransactionExport", {
  effect: Effect.fnUntraced(function* (stalledSeconds: number) {
    const sql = yield* SqlClient.SqlClient
    const snapshots = yield* Snapshots
    const { exportMaxRows } = yield* Settings
    const runPromise = Runtime.runPromise(yield* Effect.runtime<never>())

    /** Takes one of an owner's slots while the snapshot is open, whichever process serves it. Returns whether one was free. */
    const takeSlot = Effect.fnUntraced(function* (snapshot: Snapshot, owner: string, slots: number) {
      for (let slot = 1; slot <= slots; slot++) {
        const [row] = yield* decodeTaken(
          snapshot.query(sql`SELECT pg_try_advisory_xact_lock(hashtextextended(${owner}, ${slot}::bigint)) AS taken`)
        )
        if (row?.taken === true) return true
      }
      return false
    })

    const takePlace = Effect.fnUntraced(function* (snapshot: Snapshot, principal: PrincipalState) {
      for (const [owner, slots, whose] of [
        [callerOf(principal), CONCURRENCY, "an API key"],
        [`exports of ${principal.organizationId}`, ORGANIZATION_CONCURRENCY, "an organization"]
      ] as const) {
        if (!(yield* takeSlot(snapshot, owner, slots)))
          return yield* problem("too_many_exports", `At most ${slots} exports can run at a time for ${whose}.`, {
            headers: { "retry-after": "5" }
          })
      }
    })

    // Each vault and asset of a part is looked up once, not once per row.
    const namesOfPart = sql`CASE WHEN count(*) > 0 THEN json_build_object('vaultIds', json_agg(r.vault_id),
      'labels', (SELECT json_object_agg(w.id, w.label) FROM vaults w WHERE w.id = ANY (array_agg(r.vault_id))),
      'symbols', (SELECT json_object_agg(a.id, a.symbol) FROM assets a WHERE a.id = ANY (array_agg(r.asset_id))))::text END`

    const prepare = Effect.fnUntraced(function* (
      principal: PrincipalState,
      vaultId: string,
      format: ExportFormat,
      filter: TransactionFilter
    ) {
      const snapshot = yield* snapshots.open
      const [seen] = yield* decodeLabel(
        snapshot.query(sql`SELECT v.label FROM vaults v WHERE v.id = ${vaultId} AND ${seesVault(sql, principal, sql`${vaultId}::text`)}`)
      )
      if (seen === undefined) return yield* notFound()
      yield* takePlace(snapshot, principal)
      const where: Statement.Fragment = sql`v.vault_id = ${vaultId} ${transactionFilters(sql, filter)}`
      const [found] = yield* decodeCount(
        snapshot.query(sql`SELECT count(*) AS count FROM (SELECT 1 FROM transactions v WHERE ${where} LIMIT ${exportMaxRows + 1}) v`)
      )
      if ((found?.count ?? 0) > exportMaxRows) {
        return yield* problem(
          "too_many_rows",
          `More than ${exportMaxRows} transactions match, and an export has at most ${exportMaxRows}. Narrow the filters.`
        )
      }
      let last: Pick<typeof Part.Type, "timestamp" | "id"> | undefined
      const next = Effect.gen(function* () {
        const behind = and(sql, last !== undefined && sql`(v.timestamp, v.id) < (${last.timestamp}::timestamptz, ${last.id}::uuid)`)
        // One text for a whole part: as rows, each would cost the driver several objects.
        const [part] = yield* decodeParts(
          snapshot.query(sql`
          SELECT string_agg(r.json || E'\\n', '') AS lines, count(*) AS count, min(r.timestamp) AS timestamp, (array_agg(r.id))[count(*)] AS id,
            ${format === "csv" ? namesOfPart : sql`NULL`} AS names
          FROM (SELECT ${sql.literal(JSON_OF_ROW)} AS json, v.timestamp, v.id, v.vault_id, v.asset_id FROM transactions v
            WHERE ${where} ${behind} ORDER BY v.timestamp DESC, v.id DESC LIMIT ${PART}) r`)
        )
        // Without the part's text, which would otherwise stay in memory while the next part is sent.
        last = part && { timestamp: part.timestamp, id: part.id }
        return { lines: part?.lines ?? "", names: part?.names ?? none, isLast: (part?.count ?? 0) < PART }
      })
      return { label: seen.label, next }
    })

    return {
      /** The file as a response; 404 if the vault is not visible. */
      start: Effect.fn("TransactionExport.start")(function* (
        principal: PrincipalState,
        vaultId: string,
        { amounts, format }: { readonly format: ExportFormat; readonly amounts: Amounts },
        filter: TransactionFilter
      ) {
        const { method } = yield* HttpServerRequest.HttpServerRequest
        const context = yield* currentRequest
        const scope = yield* Scope.make()
        const close = () => runPromise(Scope.close(scope, Exit.void))
        const { label, next } = yield* againOnPrimary(prepare(principal, vaultId, format, filter)).pipe(
          Scope.extend(scope),
          Effect.catchTag("SqlError", Effect.die),
          Effect.onError(() => Scope.close(scope, Exit.void))
        )
        const contentType = format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson"
        const headers = { "content-disposition": exportName({ label, vaultId, format, filter }) }
        if (method === "HEAD") {
          yield* Scope.close(scope, Exit.void)
          return HttpServerResponse.raw(new ReadableStream(), { contentType, headers })
        }
        context.allowIdle(stalledSeconds)
        return HttpServerResponse.raw(fileOf({ format, amounts, next: () => runPromise(next), close, stalledSeconds }), {
          contentType,
          headers
        })
      })
    }
  })
}) {
  static readonly layer = this.Default(STALLED)
}
