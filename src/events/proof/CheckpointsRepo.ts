/** Reads of checkpoints. An entity's chain counts all of its events, so only callers who can see all of them can read it. C-3. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { reachesEntity, seesEveryVault } from "../../access/visibility/visibility.ts"
import type { Key } from "../../http/Page.ts"
import { Bytes, decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"
import { ZERO } from "../log/chain.ts"

const Row = Schema.Struct({
  entityId: Schema.String,
  count: Schema.Number,
  hash: Bytes,
  /** UTC ISO 8601. */
  at: Schema.String,
  /** The position and the id of the organization's newest event at that time. */
  position: Schema.Number,
  eventId: Schema.NullOr(Schema.String)
})
export type CheckpointRow = typeof Row.Type

const decode = decodeRows(Row)
const decodeSeen = decodeRows(Schema.Struct({ seen: Schema.Boolean }))
const decodeLatest = decodeRows(
  Schema.Struct({ ...Row.omit("entityId").fields, count: Schema.NullOr(Schema.Number), hash: Schema.NullOr(Bytes) })
)

export class CheckpointsRepo extends Effect.Service<CheckpointsRepo>()("custody/CheckpointsRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    return {
      /** Whether the reader can see every vault of the entity and has no allowlist. */
      sees: (principal: PrincipalState, entityId: string): Effect.Effect<boolean> =>
        principal.vaultAllowlist !== null
          ? Effect.succeed(false)
          : Effect.map(
              decodeSeen(sql`
                SELECT ${reachesEntity(sql, principal, sql`${entityId}::text`)} AND ${seesEveryVault(sql, principal, sql`p.entity_id = ${entityId}`)} AS seen`),
              ([row]) => row?.seen === true
            ).pipe(Effect.orDie),

      /** Checkpoints of an entity, newest first. */
      list: (entityId: string, after: Key | null, take: number): Effect.Effect<ReadonlyArray<CheckpointRow>> =>
        Effect.orDie(
          decode(sql`
          SELECT entity_id AS "entityId", count, hash, at, position, event_id AS "eventId" FROM event_checkpoints
          WHERE entity_id = ${entityId} ${and(sql, after !== null && sql`at < ${after[0]}::timestamptz`)} ORDER BY at DESC LIMIT ${take}`)
        ),

      /** The current chain of an entity of the principal's organization. */
      latest: (principal: PrincipalState, entityId: string): Effect.Effect<CheckpointRow> =>
        Effect.flatMap(
          decodeLatest(sql`
            SELECT c.count, c.hash, date_trunc('milliseconds', clock_timestamp()) AS at, s.position, s.event_id AS "eventId"
            FROM event_streams s LEFT JOIN entity_chains c ON c.entity_id = ${entityId}
            WHERE s.organization_id = ${principal.organizationId}`),
          ([row]) =>
            row === undefined
              ? Effect.dieMessage("an organization has no event stream")
              : Effect.succeed({ ...row, entityId, count: row.count ?? 0, hash: row.hash ?? ZERO })
        ).pipe(Effect.orDie)
    }
  })
}) {
  static readonly layer = this.Default
}
