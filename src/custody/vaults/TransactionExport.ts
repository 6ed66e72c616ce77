/** Exports of transactions of a vault, or across vaults, as one file. C-6. */
import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { seesVault } from "../../access/visibility/visibility.ts"
import type { Key } from "../../http/Page.ts"
import { inPeriod, type Period } from "../../http/Period.ts"
import { notFound, type ProblemOf, problem } from "../../http/Problem.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import type { Snapshot } from "../../runtime/database/Snapshots.ts"
import { and } from "../../runtime/database/sql.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { type ExportFile, type ExportReader, Exports } from "./Exports.ts"
import { type ExportFormat, exportName } from "./exportName.ts"
import { type Amounts, csvHeader, csvLines, type RowNames } from "./transactionCsv.ts"
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
  /** The only vault; null for all. */
  readonly vaultId: string | null
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

/** Rows per part: about as much as a connection takes at once. */
const PART = 150
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
const decodeLabel = decodeRows(Schema.Struct({ label: Schema.String }))
const decodeCount = decodeRows(Schema.Struct({ count: Schema.Number }))

/** How a file is written; NDJSON always has amounts plain. */
interface Form {
  readonly format: ExportFormat
  readonly amounts: Amounts
}

export class TransactionExport extends Effect.Service<TransactionExport>()("custody/TransactionExport", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const exports = yield* Exports
    const { exportMaxRows } = yield* Settings

    // Each vault and asset of a part is looked up once, not once per row.
    const namesOfPart = sql`CASE WHEN count(*) > 0 THEN json_build_object('vaultIds', json_agg(v.vault_id),
      'labels', (SELECT json_object_agg(w.id, w.label) FROM vaults w WHERE w.id = ANY (array_agg(v.vault_id))),
      'symbols', (SELECT json_object_agg(a.id, a.symbol) FROM assets a WHERE a.id = ANY (array_agg(v.asset_id))))::text END`

    const ofVault = (vaultId: string, filter: TransactionFilter): ExportSource<ProblemOf<"not_found">> => {
      const where: Statement.Fragment = sql`v.vault_id = ${vaultId} ${transactionFilters(sql, filter)}`
      return {
        vaultId,
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

    const open = Effect.fnUntraced(function* <E>(
      { page, permit, some, ...source }: ExportSource<E>,
      { amounts, format }: Form,
      { place, principal, snapshot }: ExportReader
    ) {
      const label = yield* permit(principal, snapshot)
      yield* place
      const [found] = yield* decodeCount(snapshot.query(sql`SELECT count(*) AS count FROM (${some(exportMaxRows + 1)}) v`))
      if ((found?.count ?? 0) > exportMaxRows) {
        return yield* problem(
          "too_many_rows",
          `More than ${exportMaxRows} transactions match, and an export has at most ${exportMaxRows}. Narrow the filters.`
        )
      }
      let last: Key | null = null
      let head = format === "csv" ? csvHeader : ""
      // One text for a whole part: as rows, each would cost the driver several objects.
      const next = Effect.gen(function* () {
        const [part] = yield* decodeParts(
          snapshot.query(sql`
          SELECT string_agg(${sql.literal(source.json)} || E'\\n', '') AS lines, count(*) AS count, min(v.timestamp) AS timestamp, (array_agg(v.id))[count(*)] AS id,
            ${format === "csv" ? namesOfPart : sql`NULL`} AS names
          FROM (${page(last, PART)}) v`)
        )
        // Without the part's text, which would otherwise stay in memory while the next part is sent.
        last = part === undefined || part.timestamp === null || part.id === null ? null : [part.timestamp, part.id]
        const lines = part?.lines ?? ""
        const text = head + (format === "csv" ? csvLines(lines, part?.names ?? none, amounts) : lines)
        head = ""
        return { text, isLast: (part?.count ?? 0) < PART }
      })
      const file: ExportFile = {
        contentType: format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson",
        headers: { "content-disposition": exportName({ label, format, ...source }) },
        next
      }
      return file
    })

    return {
      /** The transactions of a vault. */
      ofVault,

      /** The file as a response; 404 if its vault is not visible. */
      start: <E>(principal: PrincipalState, source: ExportSource<E>, form: Form) =>
        exports.start(principal, source.vaultId, (reader) => open(source, form, reader))
    }
  })
}) {
  static readonly layer = this.Default
}
