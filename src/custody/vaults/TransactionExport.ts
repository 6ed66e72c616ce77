/**
 * Exports transactions of a vault, or across vaults, as one file from one consistent snapshot: a transaction of its own, read in parts as the
 * client receives them, so memory use does not depend on the size. If the client disconnects, or reads nothing for a
 * minute, everything is released; the response then ends with a broken connection, so it never looks complete. C-6.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Exit, Runtime, Schema, Scope } from "effect"
import { AccessChecks } from "../../access/credentials/AccessChecks.ts"
import { callerOf, type PrincipalState } from "../../access/credentials/Principal.ts"
import { seesVault } from "../../access/visibility/visibility.ts"
import type { Key } from "../../http/Page.ts"
import { inPeriod, type Period } from "../../http/Period.ts"
import { notFound, type ProblemOf, problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { againOnPrimary } from "../../runtime/database/replica/ReadReplica.ts"
import { type Snapshot, Snapshots } from "../../runtime/database/Snapshots.ts"
import { and } from "../../runtime/database/sql.ts"
import { whileUnavailable } from "../../runtime/database/unavailable.ts"
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

/** The rows of a file, of those that its reader can see. */
export interface ExportSource<E = never> {
  /** What the file is named after. Fails if the reader may not have the file. */
  readonly permit: (principal: PrincipalState, snapshot: Snapshot) => Effect.Effect<string, E | SqlError.SqlError>
  /** The label in a name of ASCII characters, if the other has none. */
  readonly plainLabel: string
  readonly period: Period
  /** A row `v` as the text of its line, for SQL. */
  readonly json: string
  /** Up to this many of the rows, in any order. */
  readonly some: (most: number) => Statement.Fragment
  /** The next rows of `transactions v`, newest first. */
  readonly page: (after: Key | null, take: number) => Statement.Fragment
}

/** Concurrent exports of a key, and of an organization with all its keys: while at least half of a process's connections are free. */
const CONCURRENCY = 2,
  ORGANIZATION_CONCURRENCY = 3,
  /** Of an organization otherwise: a few that read slowly must not keep all others from theirs. */
  CROWDED_CONCURRENCY = 1
/** Rows per part: about as much as a connection takes at once. */
const PART = 150
/** Seconds without progress after which a client is disconnected: a minute. The listener checks every 4 seconds. */
const STALLED = 64
/** How often the access of an export is checked, in ms. */
const RECHECK = 4_000

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
  effect: Effect.fnUntraced(function* (stalledSeconds: number, recheckMillis: number) {
    const sql = yield* SqlClient.SqlClient
    const snapshots = yield* Snapshots
    const access = yield* AccessChecks
    const { exportMaxRows } = yield* Settings
    const runPromise = Runtime.runPromise(yield* Effect.runtime<never>())

    // A file of half an hour does not break off because one check found Postgres unavailable.
    const checked = (principals: ReadonlyArray<PrincipalState>) =>
      access.current(principals).pipe(Effect.catchAllDefect(Effect.fail), whileUnavailable("500 millis", "10 seconds"), Effect.orDie)

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
      const ofOrganization = snapshot.isCrowded ? CROWDED_CONCURRENCY : ORGANIZATION_CONCURRENCY
      for (const [owner, slots, limit] of [
        [callerOf(principal), CONCURRENCY, `${CONCURRENCY} exports can run at a time for an API key`],
        [
          `exports of ${principal.organizationId}`,
          ofOrganization,
          `${ORGANIZATION_CONCURRENCY} exports can run at a time for an organization, ${CROWDED_CONCURRENCY} while many others run`
        ]
      ] as const) {
        if (!(yield* takeSlot(snapshot, owner, slots)))
          return yield* problem("too_many_exports", `At most ${limit}.`, { headers: { "retry-after": "5" } })
      }
    })

    // Each vault and asset of a part is looked up once, not once per row.
    const namesOfPart = sql`CASE WHEN count(*) > 0 THEN json_build_object('vaultIds', json_agg(v.vault_id),
      'labels', (SELECT json_object_agg(w.id, w.label) FROM vaults w WHERE w.id = ANY (array_agg(v.vault_id))),
      'symbols', (SELECT json_object_agg(a.id, a.symbol) FROM assets a WHERE a.id = ANY (array_agg(v.asset_id))))::text END`

    const ofVault = (vaultId: string, filter: TransactionFilter): ExportSource<ProblemOf<"not_found">> => {
      const where: Statement.Fragment = sql`v.vault_id = ${vaultId} ${transactionFilters(sql, filter)}`
      return {
        permit: (principal, snapshot) =>
          Effect.flatMap(
            decodeLabel(
              snapshot.query(
                sql`SELECT v.label FROM vaults v WHERE v.id = ${vaultId} AND ${seesVault(sql, principal, sql`${vaultId}::text`)}`
              )
            ),
            ([seen]) => (seen === undefined ? notFound() : Effect.succeed(seen.label))
          ),
        plainLabel: vaultId,
        period: filter,
        json: JSON_OF_ROW,
        some: (most) => sql`SELECT 1 FROM transactions v WHERE ${where} LIMIT ${most}`,
        page: (after, take) => sql`
          SELECT v.* FROM transactions v WHERE ${where}
          ${and(sql, after !== null && sql`(v.timestamp, v.id) < (${after[0]}::timestamptz, ${after[1]}::uuid)`)}
          ORDER BY v.timestamp DESC, v.id DESC LIMIT ${take}`
      }
    }

    const prepare = Effect.fnUntraced(function* <E>(
      principal: PrincipalState,
      { json, page, permit, some }: ExportSource<E>,
      format: ExportFormat
    ) {
      const snapshot = yield* snapshots.open
      const label = yield* permit(principal, snapshot)
      yield* takePlace(snapshot, principal)
      const [found] = yield* decodeCount(snapshot.query(sql`SELECT count(*) AS count FROM (${some(exportMaxRows + 1)}) v`))
      if ((found?.count ?? 0) > exportMaxRows) {
        return yield* problem(
          "too_many_rows",
          `More than ${exportMaxRows} transactions match, and an export has at most ${exportMaxRows}. Narrow the filters.`
        )
      }
      let last: Key | null = null
      // One text for a whole part: as rows, each would cost the driver several objects.
      const next = Effect.gen(function* () {
        const [part] = yield* decodeParts(
          snapshot.query(sql`
          SELECT string_agg(${sql.literal(json)} || E'\\n', '') AS lines, count(*) AS count, min(v.timestamp) AS timestamp, (array_agg(v.id))[count(*)] AS id,
            ${format === "csv" ? namesOfPart : sql`NULL`} AS names
          FROM (${page(last, PART)}) v`)
        )
        // Without the part's text, which would otherwise stay in memory while the next part is sent.
        last = part === undefined || part.timestamp === null || part.id === null ? null : [part.timestamp, part.id]
        return { lines: part?.lines ?? "", names: part?.names ?? none, isLast: (part?.count ?? 0) < PART }
      })
      return { label, next }
    })

    return {
      /** The transactions of a vault. */
      ofVault,

      /** The file as a response; 404 if its vault is not visible. */
      start: Effect.fn("TransactionExport.start")(function* <E>(
        principal: PrincipalState,
        source: ExportSource<E>,
        { amounts, format }: { readonly format: ExportFormat; readonly amounts: Amounts }
      ) {
        const { method } = yield* HttpServerRequest.HttpServerRequest
        const context = yield* currentRequest
        const scope = yield* Scope.make()
        const close = () => runPromise(Scope.close(scope, Exit.void))
        const { label, next } = yield* againOnPrimary(prepare(principal, source, format)).pipe(
          Scope.extend(scope),
          Effect.catchTag("SqlError", Effect.die),
          Effect.onError(() => Scope.close(scope, Exit.void))
        )
        const contentType = format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson"
        const headers = { "content-disposition": exportName({ label, format, ...source }) }
        if (method === "HEAD") {
          yield* Scope.close(scope, Exit.void)
          return HttpServerResponse.raw(new ReadableStream(), { contentType, headers })
        }
        context.allowIdle(stalledSeconds)
        let checkedAt = performance.now()
        /** The next part, unless the key or session was rejected meanwhile; then the file breaks off. */
        const permitted = Effect.suspend(() => {
          if (performance.now() - checkedAt < recheckMillis) return next
          checkedAt = performance.now()
          return Effect.filterOrDieMessage(
            Effect.map(checked([principal]), (current) => current.get(principal)),
            (current) => current?.scopes.has("vault:read") === true,
            "the access of an export has ended"
          ).pipe(Effect.zipRight(next))
        })
        return HttpServerResponse.raw(fileOf({ format, amounts, next: () => runPromise(permitted), close, stalledSeconds }), {
          contentType,
          headers
        })
      })
    }
  })
}) {
  static readonly layer = this.Default(STALLED, RECHECK)
}
