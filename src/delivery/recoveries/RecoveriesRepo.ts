/**
 * Reads of recoveries. Each includes the caller's visibility and counts only deliveries whose events the caller can see.
 * Counts use an index by status and vault. C-4.
 */

import type { Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Record, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { seesEvent, seesEveryVault, seesVault, seesWebhook } from "../../access/visibility/visibility.ts"
import { oldestId } from "../../events/log/logWindow.ts"
import { matches } from "../../events/log/matching.ts"
import { jsonOfRow, type Key, type Searched, upToLast } from "../../http/Page.ts"
import { databaseTime } from "../../runtime/database/databaseTime.ts"
import { castRows, decodeRows } from "../../runtime/database/decodeRows.ts"
import { and } from "../../runtime/database/sql.ts"
import { upToBytes } from "../../runtime/database/upToBytes.ts"
import { isToBeSent } from "../webhooks/cancelWaiting.ts"
import { Recovery } from "./Recovery.ts"

/** Maximum number of events examined and counted for a preview. */
const LOOK = 50_000
export const COUNTED = 10_000

const Row = Schema.Struct({
  ...Recovery.omit("progress").fields,
  // As JSON text: there may be 100,000 ids on a page.
  eventKinds: Schema.NullOr(Schema.String),
  vaultIds: Schema.NullOr(Schema.String),
  all: Schema.Boolean,
  scanned: Schema.Number,
  counts: Schema.Record({ key: Schema.String, value: Schema.Number }),
  behind: Schema.Number
})
const cast = castRows(Row)
const decodeMissed = decodeRows(Schema.Struct({ count: Schema.Number, isAll: Schema.Boolean }))

/** About the bytes of a recovery's JSON text. The size of stored `vault_ids` is known without reading them. */
const size = "coalesce(pg_column_size(r.event_kinds), 0) + coalesce(pg_column_size(r.vault_ids), 0) + 500"

/** A recovery of a page, with fields in the order of its contract. */
const listedOf = ({ all, behind: _, completedAt, counts, createdAt, scanned, updatedAt, ...row }: typeof Row.Type) => {
  const of = (...statuses: ReadonlyArray<string>) => statuses.reduce((sum, status) => sum + (counts[status] ?? 0), 0)
  const created = Object.values(counts).reduce((sum, count) => sum + count, 0)
  return {
    ...row,
    progress: {
      scanned: all ? scanned : created,
      created,
      delivered: of("DELIVERED"),
      failed: of("FAILED"),
      canceled: of("CANCELED"),
      pending: of("PENDING", "RETRYING", "HELD")
    },
    createdAt,
    updatedAt,
    completedAt
  }
}
type Listed = ReturnType<typeof listedOf>

const names = Record.keys(Recovery.fields)

/** A recovery of the API as JSON text. */
export const recoveryJson = (row: Listed): string => jsonOfRow(names, row, { eventKinds: row.eventKinds, vaultIds: row.vaultIds })

/** The recovery of a row whose lists were made by `to_json`. */
const recoveryOf = (row: typeof Row.Type): Recovery => ({
  ...listedOf(row),
  eventKinds: JSON.parse(row.eventKinds ?? "null"),
  vaultIds: JSON.parse(row.vaultIds ?? "null")
})

export class RecoveriesRepo extends Effect.Service<RecoveriesRepo>()("custody/RecoveriesRepo", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => {
    /** Recoveries `r` of webhooks `w`, with the part of their progress that the caller can see. */
    const rows = (principal: PrincipalState, where: Statement.Fragment, order: Statement.Fragment) =>
      cast(sql`
      SELECT r.id, r.webhook_id AS "webhookId", r.status, r.since, r.until, to_json(r.event_kinds)::text AS "eventKinds",
        to_json(r.vault_ids)::text AS "vaultIds", r.include,
        r.rate_per_second AS "ratePerSecond", r.created_at AS "createdAt", r.updated_at AS "updatedAt", r.completed_at AS "completedAt", r.scanned, r.behind,
        ${seesEveryVault(
          sql,
          principal,
          sql`p.entity_id IN (SELECT entity_id FROM webhook_entities WHERE webhook_id = w.id) AND (w.vault_ids IS NULL OR p.vault_id = ANY(w.vault_ids))`
        )} AS all,
        (SELECT coalesce(json_object_agg(c.status, c.count), '{}') FROM (
          SELECT k.status, sum(k.count)::float8 AS count FROM (
            SELECT d.status, d.vault_id, count(*) AS count FROM deliveries d
            WHERE d.recovery_id = r.id AND d.vault_id IS NOT NULL GROUP BY d.status, d.vault_id
            UNION ALL
            SELECT d.status, NULL, count(*) FROM deliveries d JOIN events e ON e.id = d.event_id
            WHERE d.recovery_id = r.id AND d.vault_id IS NULL AND ${seesEvent(sql, principal)} GROUP BY d.status
          ) k WHERE k.vault_id IS NULL OR (${seesVault(sql, principal, sql.literal("k.vault_id"))}) GROUP BY k.status) c) AS counts
      FROM (${upToBytes(
        sql,
        sql`SELECT r.*, ${sql.literal(size)} AS size FROM recoveries r JOIN webhooks w ON w.id = r.webhook_id
          WHERE w.deleted_at IS NULL AND ${seesWebhook(sql, principal)} AND ${where} ${order}`,
        "created_at DESC, id DESC"
      )}) r
      JOIN webhooks w ON w.id = r.webhook_id ${order}`)

    return {
      /** A page of a webhook's recoveries; empty if the caller cannot see the webhook. */
      list: (principal: PrincipalState, webhookId: string, after: Key | null, take: number): Effect.Effect<Searched<Listed>> =>
        Effect.orDie(
          Effect.map(
            rows(
              principal,
              sql`r.webhook_id = ${webhookId} ${and(sql, after !== null && sql`(r.created_at, r.id) < (${after[0]}::timestamptz, ${after[1]})`)}`,
              sql`ORDER BY r.created_at DESC, r.id DESC LIMIT ${take}`
            ),
            (found) => {
              const { place, rows } = upToLast(found, ({ createdAt, id }) => [createdAt, id])
              return { rows: rows.map(listedOf), place }
            }
          )
        ),

      /**
       * When the last `hours` began, and how many events recorded since then a recovery would send to the webhook, among the
       * organization's newest {@link LOOK}, counted up to {@link COUNTED}; events that the caller cannot see are left out. `isAll`: no
       * others were recorded since then.
       */
      missed: (principal: PrincipalState, webhookId: string, hours: number) =>
        Effect.orDie(
          Effect.gen(function* () {
            const since = new Date((yield* databaseTime(sql)) - hours * 3_600_000).toISOString()
            const [row] = yield* decodeMissed(sql`
              WITH newest AS MATERIALIZED (
                SELECT e.id, e.organization_id, e.entity_id, e.vault_id, e.kind, e.audience, e.created_at FROM events e
                WHERE e.organization_id = ${principal.organizationId} AND e.id >= ${oldestId("evt")}
                ORDER BY e.position DESC LIMIT ${LOOK})
              SELECT (SELECT count(*) < ${LOOK} OR min(created_at) < ${since}::timestamptz FROM newest) AS "isAll", count(*) FROM (SELECT 1 FROM newest e JOIN webhooks w ON w.id = ${webhookId} AND w.deleted_at IS NULL AND ${seesWebhook(sql, principal)}
                LEFT JOIN webhook_queues q ON q.webhook_id = w.id
                WHERE e.created_at >= ${since}::timestamptz AND ${matches(sql, "e")}
                  AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id AND d.webhook_id = w.id
                    AND (d.status = 'DELIVERED' OR ${isToBeSent(sql)}))
                  AND ${seesEvent(sql, principal)} LIMIT ${COUNTED}) missed`)
            return { since, count: row?.count ?? 0, isAll: row?.isAll ?? true }
          })
        ),

      /** A recovery, if the caller can see its webhook and the webhook is not deleted. */
      find: (principal: PrincipalState, recoveryId: string): Effect.Effect<Option.Option<Recovery>> =>
        Effect.orDie(
          Effect.map(rows(principal, sql`r.id = ${recoveryId}`, sql`LIMIT 1`), ([found]) =>
            Option.map(Option.fromNullable(found), recoveryOf)
          )
        )
    }
  })
}) {
  static readonly layer = this.Default
}
