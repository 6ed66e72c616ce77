/** Reads of statements, each with the caller's visibility. C-6. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Option, Schema, Struct } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { seesVault } from "../../access/visibility/visibility.ts"
import { type Key, type Searched, upToLast } from "../../http/Page.ts"
import { notFound } from "../../http/Problem.ts"
import { castRows, decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"
import { upToBytes } from "../../runtime/database/upToBytes.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { type StatementLine, StatementSummary } from "../../values/Statement.ts"
import type { ExportFile, ExportReader } from "../vaults/Exports.ts"
import { csvOfDay, daysHeader, isMoved } from "./statementCsv.ts"

const Row = Schema.Struct({
  vaultId: Schema.String,
  date: Schema.String,
  revision: Schema.Number,
  sealedAt: Schema.String,
  previousHash: Schema.NullOr(Schema.String),
  hash: Schema.String,
  assets: Schema.String,
  jws: Schema.String
})
/** A stored statement; `assets` is the JSON text of its lines. */
export type StatementRow = typeof Row.Type

const decode = decodeRows(Row),
  castPage = castRows(Schema.Struct({ ...Row.fields, behind: Schema.Number }))

/** Days of a file that are read at a time: at most so many, and more than one only up to so many bytes of their lines. */
const PART_DAYS = 31,
  PART_BYTES = 65_536
const decodeDays = decodeRows(Schema.Struct({ date: Schema.String, revision: Schema.Number, assets: Schema.String }))

/** The lines in a stored statement: the sealer serialized the text from lines. */
export const linesIn = ({ assets }: { readonly assets: string }) => JSON.parse(assets) as ReadonlyArray<StatementLine>

/** The days of a vault's statements: the first, and the one after the last. Without statements, both are where they will begin. */
export const SealedDays = Schema.Struct({ first: Schema.String, next: Schema.String })
const decodeSealed = decodeRows(SealedDays)
const decodeSummary = decodeRows(Schema.Struct(Struct.pick(StatementSummary.fields, "firstHash", "lastHash", "assets")))

/** Days, both inclusive. */
export interface DayRange {
  readonly from?: string | undefined
  readonly to?: string | undefined
}

const columns = `s.vault_id AS "vaultId", s.date::text AS date, s.revision, s.sealed_at AS "sealedAt", s.previous_hash AS "previousHash",
  s.hash, s.assets, s.jws`

/** A statement as JSON text. */
export const statementJson = ({ assets, date, hash, jws, previousHash, revision, sealedAt, vaultId }: StatementRow): string =>
  `{"vaultId":${JSON.stringify(vaultId)},"date":"${date}","revision":${revision},"sealedAt":"${sealedAt}",` +
  `"previousHash":${JSON.stringify(previousHash)},"hash":"${hash}","assets":${assets},"jws":"${jws}"}`

export class StatementsRepo extends Effect.Service<StatementsRepo>()("custody/StatementsRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const history = Duration.toSeconds((yield* Settings).statementHistory)
    const sees = (principal: PrincipalState, vaultId: string) => seesVault(sql, principal, sql`${vaultId}::text`)

    return {
      /** A page of the newest revisions of a vault's days, newest day first; none if the vault is not visible. */
      list: (principal: PrincipalState, vaultId: string, { from, to }: DayRange, after: Key | null, take: number) =>
        Effect.gen(function* () {
          const found = sql`
            SELECT DISTINCT ON (s.date) ${sql.literal(columns)}, octet_length(s.assets) + octet_length(s.jws) AS size FROM statements s
            WHERE s.vault_id = ${vaultId} AND ${sees(principal, vaultId)} ${and(
              sql,
              after !== null && sql`s.date < ${after[0]}::date`,
              from !== undefined && sql`s.date >= ${from}::date`,
              to !== undefined && sql`s.date <= ${to}::date`
            )}
            ORDER BY s.date DESC, s.revision DESC LIMIT ${take}`
          const page: Searched<StatementRow> = upToLast(yield* castPage(upToBytes(sql, found, "date DESC")), ({ date }) => [date])
          if (page.rows.length > 0) return Option.some(page)
          const seen = yield* sql`SELECT 1 FROM vaults v WHERE v.id = ${vaultId} AND ${sees(principal, vaultId)}`
          return seen.length > 0 ? Option.some(page) : Option.none()
        }).pipe(Effect.orDie),

      /** The newest revisions of a period as CSV, oldest day first, with all lines or those that moved; 404 if the vault is not visible. */
      csv: (vaultId: string, { from, to }: Required<DayRange>, movedOnly: boolean) =>
        Effect.fnUntraced(function* ({ place, principal, snapshot }: ExportReader) {
          const seen = yield* snapshot.query(sql`SELECT 1 FROM vaults v WHERE v.id = ${vaultId} AND ${sees(principal, vaultId)}`)
          if (seen.length === 0) return yield* notFound()
          yield* place
          let last: string | undefined
          const next = Effect.gen(function* () {
            const newest = sql`
              SELECT DISTINCT ON (s.date) s.date::text AS date, s.revision, s.assets, octet_length(s.assets) AS size FROM statements s
              WHERE s.vault_id = ${vaultId} AND s.date <= ${to}::date
                AND ${last === undefined ? sql`s.date >= ${from}::date` : sql`s.date > ${last}::date`}
              ORDER BY s.date, s.revision DESC LIMIT ${PART_DAYS}`
            const days = yield* decodeDays(snapshot.query(upToBytes(sql, newest, "date", PART_BYTES)))
            let text = last === undefined ? daysHeader : ""
            for (const day of days) text += csvOfDay(day.date, day.revision, movedOnly ? linesIn(day).filter(isMoved) : linesIn(day))
            last = days.at(-1)?.date
            return { text, isLast: last === undefined || last === to }
          })
          const file: ExportFile = { contentType: "text/csv; charset=utf-8", headers: { vary: "accept" }, next }
          return file
        }),

      /** The statement of a sealed day of a visible vault: the given revision, or the newest. */
      find: (principal: PrincipalState, vaultId: string, date: string, revision: number | undefined) =>
        Effect.orDie(
          Effect.map(
            decode(sql`
              SELECT ${sql.literal(columns)} FROM statements s
              WHERE s.vault_id = ${vaultId} AND s.date = ${date}::date AND ${sees(principal, vaultId)}
              ${and(sql, revision !== undefined && sql`s.revision = ${revision}`)} ORDER BY s.revision DESC LIMIT 1`),
            (rows) => Option.fromNullable(rows[0])
          )
        ),

      /** The days of a visible vault's statements. */
      sealed: (principal: PrincipalState, vaultId: string) =>
        Effect.orDie(
          Effect.map(
            decodeSealed(sql`
              SELECT coalesce(c.first_date, start.date)::text AS first, coalesce(c.next_date, start.date)::text AS next
              FROM vaults v LEFT JOIN statement_chains c ON c.vault_id = v.id
              CROSS JOIN LATERAL (SELECT (v.recorded_at - ${history}::float8 * interval '1 second')::date AS date) start
              WHERE v.id = ${vaultId} AND ${sees(principal, vaultId)}`),
            (rows) => Option.fromNullable(rows[0])
          )
        ),

      /** The lines of a period of a visible vault, whose days are all sealed, with the hashes of its first and last day. */
      summary: (principal: PrincipalState, vaultId: string, { from, to }: Required<DayRange>) =>
        Effect.orDie(
          decodeSummary(sql`
            WITH days AS MATERIALIZED (
              SELECT DISTINCT ON (s.date) s.date, s.hash, s.assets FROM statements s
              WHERE s.vault_id = ${vaultId} AND s.date >= ${from}::date AND s.date <= ${to}::date AND ${sees(principal, vaultId)}
              ORDER BY s.date DESC, s.revision DESC
            ), lines AS (
              SELECT l.asset, coalesce(max(l.opening) FILTER (WHERE d.date = ${from}::date), 0) AS opening, sum(l.inbound) AS inbound,
                sum(l.outbound) AS outbound, sum(l.fees) AS fees, coalesce(max(l.closing) FILTER (WHERE d.date = ${to}::date), 0) AS closing,
                sum(l."transactionCount")::bigint AS count
              FROM days d CROSS JOIN LATERAL jsonb_to_recordset(d.assets::jsonb)
                AS l (asset text, opening numeric, inbound numeric, outbound numeric, fees numeric, closing numeric, "transactionCount" int)
              GROUP BY l.asset
            )
            SELECT (SELECT hash FROM days WHERE date = ${from}::date) AS "firstHash", (SELECT hash FROM days WHERE date = ${to}::date) AS "lastHash",
              coalesce((
                SELECT json_agg(json_build_object('asset', a.id, 'symbol', a.symbol, 'opening', trim_scale(l.opening)::text,
                  'inbound', trim_scale(l.inbound)::text, 'outbound', trim_scale(l.outbound)::text, 'fees', trim_scale(l.fees)::text,
                  'other', trim_scale(l.closing - l.opening - l.inbound + l.outbound + l.fees)::text, 'closing', trim_scale(l.closing)::text,
                  'transactionCount', l.count) ORDER BY a.network, a.id <> a.network || '/native', a.symbol, a.id)
                FROM lines l JOIN assets a ON a.id = l.asset), '[]'::json) AS assets`)
        )
    }
  })
}) {
  static readonly layer = this.Default
}
