/** Reads of statements, each with the caller's visibility. C-6. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { seesVault } from "../../access/visibility/visibility.ts"
import type { Key } from "../../http/Page.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"

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

const decode = decodeRows(Row)

const columns = `s.vault_id AS "vaultId", s.date::text AS date, s.revision, s.sealed_at AS "sealedAt", s.previous_hash AS "previousHash",
  s.hash, s.assets, s.jws`

/** A statement as JSON text. */
export const statementJson = ({ assets, date, hash, jws, previousHash, revision, sealedAt, vaultId }: StatementRow): string =>
  `{"vaultId":${JSON.stringify(vaultId)},"date":"${date}","revision":${revision},"sealedAt":"${sealedAt}",` +
  `"previousHash":${JSON.stringify(previousHash)},"hash":"${hash}","assets":${assets},"jws":"${jws}"}`

export class StatementsRepo extends Effect.Service<StatementsRepo>()("custody/StatementsRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const sees = (principal: PrincipalState, vaultId: string) => seesVault(sql, principal, sql`${vaultId}::text`)

    return {
      /** A page of a vault's newest revisions, newest day first; none if the vault is not visible. */
      list: (principal: PrincipalState, vaultId: string, after: Key | null, take: number) =>
        Effect.gen(function* () {
          const rows = yield* decode(sql`
            SELECT DISTINCT ON (s.date) ${sql.literal(columns)} FROM statements s
            WHERE s.vault_id = ${vaultId} AND ${sees(principal, vaultId)} ${and(sql, after !== null && sql`s.date < ${after[0]}::date`)}
            ORDER BY s.date DESC, s.revision DESC LIMIT ${take}`)
          if (rows.length > 0) return Option.some(rows)
          const seen = yield* sql`SELECT 1 FROM vaults v WHERE v.id = ${vaultId} AND ${sees(principal, vaultId)}`
          return seen.length > 0 ? Option.some(rows) : Option.none()
        }).pipe(Effect.orDie),

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
        )
    }
  })
}) {
  static readonly layer = this.Default
}
