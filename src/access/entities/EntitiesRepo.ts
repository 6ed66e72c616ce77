/** Reads of entities: those that the caller reaches. C-11. Decision D-8. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { Key } from "../../http/Page.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"
import type { PrincipalState } from "../credentials/Principal.ts"
import { Entity } from "../visibility/Entity.ts"
import { reachedEntities } from "../visibility/visibility.ts"

const decode = decodeRows(Entity)

export class EntitiesRepo extends Effect.Service<EntitiesRepo>()("custody/EntitiesRepo", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => ({
    /** At most `take` entities after the key, by id. */
    list: (principal: PrincipalState, after: Key | null, take: number): Effect.Effect<ReadonlyArray<Entity>> =>
      Effect.orDie(
        decode(sql`
          SELECT n.id, n.name FROM (
            SELECT r.id FROM (${reachedEntities(sql, principal)}) r WHERE true ${and(sql, after !== null && sql`r.id > ${after[0]}`)}
            ORDER BY r.id LIMIT ${take}
          ) r JOIN entities n ON n.id = r.id ORDER BY r.id`)
      )
  }))
}) {
  static readonly layer = this.Default
}
