/**
 * The portal's search over what the signed-in user can see: ids and transaction hashes by their beginning, deposit addresses by
 * exact match, names by substring. Every statement has the API's conditions (access/visibility.ts) and uses an index or one
 * organization's vaults and webhooks; each kind returns a few rows at most. A beginning is looked up among at most
 * {@link LOOK} rows of all organizations, and must be long enough that this is all of them but by chance.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { seesEvent, seesVault, seesWebhook } from "../../access/visibility/visibility.ts"
import { oldestId } from "../../events/log/logWindow.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import * as ChainNames from "../../values/ChainNames.ts"
import * as Id from "../../values/Id.ts"

/** Most rows per kind. */
const FEW = 6
/** Rows that are searched at most: those with a beginning, and the events of a transaction from an hour before its time on. */
const LOOK = 1_000
/** Shortest beginning of a hash, in characters, `0x` included; a shorter text is only looked for in names. */
const HASH_MIN = 8,
  /** Length from which a text may be a whole hash, whose events are looked for. */
  HASH_EVENTS = 20
/** Shortest beginning of an id, without its prefix: for an event or a delivery it stands for one second. */
const ID_MIN = 8,
  /** Length of a whole id, without its prefix. */
  ID_WHOLE = 26

const idForm = /^(evt|del|tx)_(.*)$/

/** A search result. */
export const Found = Schema.Struct({
  is: Schema.Literal("vault", "webhook", "event", "delivery", "transaction", "address", "key"),
  label: Schema.String,
  note: Schema.String,
  /** A time that distinguishes it from others, UTC ISO 8601; null if there is none. */
  at: Schema.NullOr(Schema.String),
  /** Its page in the portal. */
  to: Schema.String
})
export type Found = typeof Found.Type
const decode = decodeRows(Found)

/** What was found, and where: a phrase after “Searched”. */
export const SearchResult = Schema.Struct({ data: Schema.Array(Found), searched: Schema.String })
export type SearchResult = typeof SearchResult.Type

/** The beginning of a hash as it is stored: an EVM hash is lower case. */
const beginningOf = (text: string): string => (/^0x[0-9a-f]*$/i.test(text) ? text.toLowerCase() : text)

const later = (a: string, b: string): string => (a > b ? a : b)

/** The end of the texts with a beginning, in the order of bytes. */
const after = (beginning: string): string => `${beginning}\u{10ffff}`

/** A LIKE pattern for text that contains the input. */
const containing = (text: string): string => `%${text.replaceAll(/[\\%_]/g, (one) => `\\${one}`)}%`

/** A hash may be base64, and has no other place in a page's address than its end. */
const withEncodedHash = (one: Found): Found => ({ ...one, to: one.to.replace(/(?<=&hash=).*/s, encodeURIComponent) })

export class Search extends Effect.Service<Search>()("custody/portal/Search", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const byName = (principal: PrincipalState, text: string) =>
      decode(sql`
        (SELECT 'vault' AS "is", v.label, v.id AS note, NULL::timestamptz AS at, '/vaults/' || v.id AS "to" FROM vaults v
          WHERE v.organization_id = ${principal.organizationId} AND (starts_with(v.id, ${text}) OR v.label ILIKE ${containing(text)})
            AND ${seesVault(sql, principal, sql.literal("v.id"))} ORDER BY v.label, v.id LIMIT ${FEW})
        UNION ALL
        (SELECT 'webhook', CASE WHEN w.description = '' THEN w.url ELSE w.description END, w.id, NULL, '/webhooks/' || w.id FROM webhooks w
          WHERE w.organization_id = ${principal.organizationId} AND w.deleted_at IS NULL
            AND (starts_with(w.id, ${text}) OR w.description ILIKE ${containing(text)} OR w.url ILIKE ${containing(text)})
            AND ${seesWebhook(sql, principal)} ORDER BY w.created_at DESC, w.id DESC LIMIT ${FEW})
        UNION ALL
        (SELECT 'key', CASE WHEN k.label = '' THEN k.id ELSE k.label END, k.id, k.created_at, '/keys/' || k.id FROM api_keys k
          WHERE k.user_id = ${principal.userId} AND k.revoked_at IS NULL AND (starts_with(k.id, ${text}) OR k.label ILIKE ${containing(text)})
          ORDER BY k.created_at DESC, k.id DESC LIMIT ${FEW})`)

    /** Events and deliveries by an id or its beginning. */
    const byId = (principal: PrincipalState, id: string) =>
      decode(sql`
        (SELECT 'event' AS "is", e.kind AS label, e.id AS note, e.occurred_at AS at, '/events/' || e.id AS "to"
          FROM (SELECT n.* FROM events n WHERE n.id >= ${later(id, oldestId("evt"))} AND n.id < ${after(id)}
            ORDER BY n.id LIMIT ${LOOK}) e
          WHERE ${seesEvent(sql, principal)} ORDER BY e.id LIMIT ${FEW})
        UNION ALL
        (SELECT 'delivery', d.kind, d.status, d.created_at, '/events/' || e.id || '#' || d.id
          FROM (SELECT n.* FROM deliveries n WHERE n.id >= ${later(id, oldestId("del"))} AND n.id < ${after(id)}
            ORDER BY n.id LIMIT ${LOOK}) d
          JOIN webhooks w ON w.id = d.webhook_id JOIN events e ON e.id = d.event_id
          WHERE e.id >= ${oldestId("evt")} AND ${seesWebhook(sql, principal)} AND ${seesEvent(sql, principal)} ORDER BY d.id LIMIT ${FEW})`)

    /** Transactions of a range of rows `n`. */
    const transactions = (principal: PrincipalState, range: Statement.Fragment) =>
      decode(sql`
        SELECT 'transaction' AS "is", CASE t.direction WHEN 'inbound' THEN 'Received' ELSE 'Sent' END || ', ' || t.status AS label,
          v.label AS note, t.timestamp AS at, '/vaults/' || v.id || '?show=transactions&hash=' || t.hash AS "to"
        FROM (SELECT n.* FROM transactions n WHERE ${range} LIMIT ${LOOK}) t
        JOIN vaults v ON v.id = t.vault_id
        WHERE ${seesVault(sql, principal, sql.literal("t.vault_id"))}
        ORDER BY t.timestamp DESC, t.id DESC LIMIT ${FEW}`).pipe(Effect.map((rows) => rows.map(withEncodedHash)))

    /** Transactions by a hash or its beginning. */
    const byHash = (principal: PrincipalState, hash: string) =>
      transactions(principal, sql`n.hash >= ${hash} AND n.hash < ${after(hash)} ORDER BY n.hash`)

    /** Transactions by an id or its beginning. */
    const byTransactionId = (principal: PrincipalState, id: string) => {
      const bound = (digit: string) => Id.uuidIn("tx", id.padEnd("tx_".length + ID_WHOLE, digit)) ?? null
      return transactions(principal, sql`n.id BETWEEN ${bound("0")}::uuid AND ${bound("z")}::uuid ORDER BY n.id`)
    }

    /** Events of the transactions with a whole hash. */
    const eventsOfHash = (principal: PrincipalState, hash: string) =>
      decode(sql`
        SELECT 'event' AS "is", e.kind AS label, e.id AS note, e.occurred_at AS at, '/events/' || e.id AS "to"
        FROM (SELECT DISTINCT ON (t.vault_id) t.vault_id, t.timestamp FROM transactions t
            WHERE t.hash = ${hash} AND ${seesVault(sql, principal, sql.literal("t.vault_id"))} ORDER BY t.vault_id, t.timestamp LIMIT ${FEW}) t
        CROSS JOIN LATERAL (SELECT n.* FROM events n
            WHERE n.vault_id = t.vault_id AND n.id >= ${oldestId("evt")} AND n.occurred_at >= t.timestamp - interval '1 hour'
            ORDER BY n.occurred_at, n.id LIMIT ${LOOK}) e
        WHERE e.kind LIKE 'transaction.%' AND position(${JSON.stringify(hash)} IN e.payload) > 0 AND ${seesEvent(sql, principal)}
        ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${FEW}`)

    const byAddress = (principal: PrincipalState, address: string) =>
      decode(sql`
        SELECT 'address' AS "is", d.address AS label, v.label || ', ' || d.network AS note, NULL::timestamptz AS at,
          '/vaults/' || v.id || '?show=addresses' AS "to"
        FROM deposit_addresses d JOIN vaults v ON v.id = d.vault_id
        WHERE d.address = ${address} AND v.organization_id = ${principal.organizationId} AND ${seesVault(sql, principal, sql.literal("v.id"))}
        ORDER BY v.label, v.id LIMIT ${FEW}`)

    return {
      /** Matches for a text, those of ids and hashes first. */
      find: (principal: PrincipalState, text: string): Effect.Effect<SearchResult> => {
        const names = byName(principal, text)
        const inNames = "names, URLs and ids of vaults, webhooks and API keys"
        const [, prefix, rest = ""] = idForm.exec(text) ?? []
        const hash = beginningOf(text)
        const [searched, parts] = prefix
          ? rest.length < ID_MIN
            ? [`nothing yet: at least ${ID_MIN} characters after ${prefix}_ are needed`, []]
            : [
                `ids of ${prefix === "tx" ? "transactions" : "events and deliveries"}${rest.length < ID_WHOLE ? " that begin so" : ""}`,
                [prefix === "tx" ? byTransactionId(principal, text) : byId(principal, text)]
              ]
          : text.length < HASH_MIN || text.includes(" ")
            ? [inNames, [names]]
            : [
                `transaction hashes that begin so${text.length < HASH_EVENTS ? "" : ", events of a whole one"}, deposit addresses, and ${inNames}`,
                [
                  byHash(principal, hash),
                  ...(text.length < HASH_EVENTS ? [] : [eventsOfHash(principal, hash)]),
                  byAddress(principal, ChainNames.address(text)),
                  names
                ]
              ]
        return Effect.orDie(Effect.map(Effect.all(parts), (found) => ({ data: found.flat(), searched })))
      }
    }
  })
}) {
  static readonly layer = this.Default
}
