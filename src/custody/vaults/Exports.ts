/**
 * Exports: files from one consistent snapshot, a transaction of its own, read in parts as the client receives them. So memory use does
 * not depend on the size, and other requests are served between two parts. If the client disconnects, or reads nothing for a
 * minute, everything is released; the response then ends with a broken connection, so it never looks complete. C-6.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Exit, Runtime, Schema, Scope } from "effect"
import { AccessChecks } from "../../access/credentials/AccessChecks.ts"
import { callerOf, type PrincipalState } from "../../access/credentials/Principal.ts"
import { allows } from "../../access/visibility/visibility.ts"
import { type ProblemOf, problem } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { againOnPrimary } from "../../runtime/database/replica/ReadReplica.ts"
import { type Snapshot, Snapshots } from "../../runtime/database/Snapshots.ts"
import { and } from "../../runtime/database/sql.ts"
import { whileUnavailable } from "../../runtime/database/unavailable.ts"
import { fileOf, type Part } from "./exportFile.ts"

/** What a file is read from. */
export interface ExportReader {
  readonly principal: PrincipalState
  readonly snapshot: Snapshot
  /** Takes one of the places of concurrent exports, after the reader's access was checked and before anything costly. */
  readonly place: Effect.Effect<void, ProblemOf<"too_many_exports"> | SqlError.SqlError>
}

/** A file that its reader may have. */
export interface ExportFile {
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  /** The next part. */
  readonly next: Effect.Effect<Part, SqlError.SqlError>
}

/** Concurrent exports of a key, and of an organization with all its keys: while at least half of a process's connections are free. */
const CONCURRENCY = 2,
  ORGANIZATION_CONCURRENCY = 3,
  /** Of an organization otherwise: a few that read slowly must not keep all others from theirs. */
  CROWDED_CONCURRENCY = 1
/** Seconds without progress after which a client is disconnected: a minute. The listener checks every 4 seconds. */
const STALLED = 64
/** How often the access of an export is checked, in ms. */
const RECHECK = 4_000

const decodeVaults = decodeRows(Schema.Struct({ id: Schema.String }))
const decodeTaken = decodeRows(Schema.Struct({ taken: Schema.Boolean }))

export class Exports extends Effect.Service<Exports>()("custody/Exports", {
  effect: Effect.fnUntraced(function* (stalledSeconds: number, recheckMillis: number) {
    const sql = yield* SqlClient.SqlClient
    const snapshots = yield* Snapshots
    const access = yield* AccessChecks
    const runPromise = Runtime.runPromise(yield* Effect.runtime<never>())

    /** The vaults that a reader sees now, or the one of the file; none without access. */
    const visible = Effect.fnUntraced(function* (reader: PrincipalState, vaultId: string | null) {
      const now = (yield* access.current([reader])).get(reader)
      if (now?.scopes.has("vault:read") !== true) return []
      return yield* decodeVaults(sql`SELECT r.vault_id AS id FROM vault_roles r WHERE ${ofReader(now, vaultId)}`)
    })
    const ofReader = ({ userId, vaultAllowlist }: PrincipalState, vaultId: string | null) => sql`r.user_id = ${userId}
      AND ${allows(sql, vaultAllowlist, sql.literal("r.vault_id"))} ${and(sql, vaultId !== null && sql`r.vault_id = ${vaultId}`)}`

    /** Dies if the reader has lost access to a vault that it saw in the snapshot. */
    const requireAccess = Effect.fnUntraced(function* (reader: PrincipalState, vaultId: string | null, snapshot: Snapshot) {
      // A file of half an hour does not break off because one check found Postgres unavailable.
      const vaults = yield* Effect.suspend(() => visible(reader, vaultId)).pipe(
        Effect.catchAllDefect(Effect.fail),
        whileUnavailable("500 millis", "10 seconds"),
        Effect.orDie
      )
      const lost = yield* snapshot.query(sql`
        SELECT 1 FROM vault_roles r WHERE ${ofReader(reader, vaultId)}
          AND r.vault_id NOT IN (SELECT unnest(${vaults.map(({ id }) => id)}::text[])) LIMIT 1`)
      if (vaults.length === 0 || lost.length > 0) return yield* Effect.dieMessage("the access of an export has ended")
    })

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

    return {
      /** The file of one vault, or of all that its reader sees, as a response. */
      start: Effect.fn("Exports.start")(function* <E>(
        principal: PrincipalState,
        vaultId: string | null,
        open: (reader: ExportReader) => Effect.Effect<ExportFile, E | SqlError.SqlError>
      ) {
        const { method } = yield* HttpServerRequest.HttpServerRequest
        const context = yield* currentRequest
        const scope = yield* Scope.make()
        const close = () => runPromise(Scope.close(scope, Exit.void))
        const opened = Effect.flatMap(snapshots.open, (snapshot) =>
          Effect.map(open({ principal, snapshot, place: takePlace(snapshot, principal) }), (file) => ({ ...file, snapshot }))
        )
        const { contentType, headers, next, snapshot } = yield* againOnPrimary(opened).pipe(
          Scope.extend(scope),
          Effect.catchTag("SqlError", Effect.die),
          Effect.onError(() => Scope.close(scope, Exit.void))
        )
        if (method === "HEAD") {
          yield* Scope.close(scope, Exit.void)
          return HttpServerResponse.raw(new ReadableStream(), { contentType, headers })
        }
        context.allowIdle(stalledSeconds)
        let checkedAt = performance.now()
        /** The next part, unless the reader has lost access meanwhile; then the file breaks off. */
        const permitted = Effect.suspend(() => {
          if (performance.now() - checkedAt < recheckMillis) return next
          checkedAt = performance.now()
          return Effect.zipRight(requireAccess(principal, vaultId, snapshot), next)
        })
        const file = fileOf({ next: () => runPromise(permitted), close, stalledSeconds })
        return HttpServerResponse.raw(file, { contentType, headers })
      })
    }
  })
}) {
  static readonly layer = this.Default(STALLED, RECHECK)
}
