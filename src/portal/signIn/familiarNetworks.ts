/**
 * The networks from which the user of an account completed a sign-in lately. Wrong passwords from elsewhere do not lock the
 * account there. Only the audit log is read, which has these addresses anyway, so an unknown account costs the same statement.
 */
import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { networkOf } from "../../http/ClientAddress.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import * as Format from "../../runtime/settings/Format.ts"

/** How long a network is remembered, and the most sign-ins that are looked at. */
const DAYS = 30,
  SIGN_INS = 100

const decode = decodeRows(Schema.Struct({ client: Schema.NullOr(Schema.String) }))

/** Whether a network, as {@link networkOf} names it, is one of the account's with this e-mail address in lower case. */
export const isFamiliar = (sql: SqlClient.SqlClient, email: string, network: string): Effect.Effect<boolean> =>
  decode(sql`
    SELECT a.client_address AS client FROM portal_users p JOIN users u ON u.id = p.id CROSS JOIN LATERAL (
      SELECT a.client_address FROM audit_log a WHERE a.user_id IS NOT NULL
        AND (a.organization_id || '/' || a.user_id || '/' || a.action) = u.organization_id || '/' || u.id || '/account.signed_in'
        AND a.at > now() - make_interval(days => ${DAYS})
      ORDER BY a.at DESC, a.id DESC LIMIT ${SIGN_INS}) a
    WHERE p.email = ${email}`).pipe(
    Effect.map((rows) =>
      rows.some(({ client }) => {
        const address = client === null ? undefined : Format.address(client)
        return address !== undefined && networkOf(address) === network
      })
    ),
    Effect.orDie
  )
