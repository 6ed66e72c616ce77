/**
 * Follows the record feed with the address of an account, in lower case. An account loses the address if the feed gives its
 * user another one, or deactivated the user; the account of the active user who now has it gets it, unless there are two.
 */
import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"

export const followAddress = (sql: SqlClient.SqlClient, email: string) =>
  sql
    .withTransaction(
      Effect.gen(function* () {
        yield* sql`
          UPDATE portal_users p SET email = 'moved-' || p.id || '@invalid.example', updated_at = now() FROM users u
          WHERE u.id = p.id AND (p.email <> lower(u.email) OR u.status <> 'active') AND p.email NOT LIKE 'moved-%@invalid.example' AND p.id = ANY (ARRAY(
            SELECT q.id FROM portal_users q WHERE q.email = ${email}
            UNION ALL SELECT a.id FROM users a WHERE lower(a.email) = ${email}))`
        yield* sql`
          UPDATE portal_users p SET email = lower(u.email), name = u.name, updated_at = now() FROM users u
          WHERE u.id = p.id AND NOT EXISTS (SELECT 1 FROM portal_users o WHERE o.email = ${email}) AND p.id =
            (SELECT min(a.id) FROM users a JOIN portal_users q ON q.id = a.id
             WHERE lower(a.email) = ${email} AND a.status = 'active' HAVING count(*) = 1)`
      })
    )
    .pipe(Effect.asVoid, Effect.orDie)
