/**
 * Which processes of a role run. Each keeps a row in `processes` and renews it every second; one that stops removes its row.
 * A row that has not been renewed for {@link LOST_S} seconds belongs to a lost process, and another one of its role removes
 * it and frees what it held. Only a process whose own heartbeats had no gap for that long does so: otherwise Postgres was
 * unavailable, and no process could send heartbeats. Decisions D-51, D-52.
 */

import { randomUUID } from "node:crypto"
import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schedule, Schema, type Scope } from "effect"
import { PRESENCE } from "../database/advisoryLocks.ts"
import { decodeRows } from "../database/decodeRows.ts"

/** How old the last heartbeat of a running process may be, in seconds. */
const LOST_S = 4
/** Time between two heartbeats. */
const SEEN_EVERY = "1 second"

type Statements = Effect.Effect<unknown, SqlError.SqlError>

/** The actions of the owner of a presence. */
export interface Hooks {
  /** Called before the row is written: at the start, and after others removed it and freed what this process held. */
  readonly absent?: () => void
  /** Called after each heartbeat with the number of other processes of the role. */
  readonly seen: (others: number) => Statements
  /** Frees what lost processes held, in the transaction that removes them. */
  readonly free?: (lost: ReadonlyArray<string>) => Statements
  /** Frees what this process holds, in the transaction that removes it. */
  readonly leave?: Statements
}

/** This process among those of its role. */
export interface Presence {
  /** Its id in `processes`. */
  readonly id: string
  /** Whether other processes still consider it running: the last heartbeat is younger than {@link LOST_S}. */
  readonly isSeen: () => boolean
  /** Runs an effect between two heartbeats. */
  readonly exclusively: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** If no other process of the role is registered: runs the statements and records that this is the only one. Returns whether it did. */
  readonly claimSole: (statements: Statements) => Effect.Effect<boolean, SqlError.SqlError>
  /** Runs the statements and records that this process is not the only one. */
  readonly releaseSole: (statements: Statements) => Effect.Effect<void, SqlError.SqlError>
  /** Registers the process, and sends heartbeats until the scope closes. While Postgres is unavailable, it retries every second. */
  readonly keep: (hooks: Hooks) => Effect.Effect<void, never, Scope.Scope>
}

const decodeOthers = decodeRows(Schema.Struct({ others: Schema.Number })),
  decodeRenewed = decodeRows(Schema.Struct({ steady: Schema.Boolean, others: Schema.Number, lost: Schema.Number })),
  decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

/** A presence of a role. Other processes see it once it is kept. */
export const presence = (role: "api" | "worker"): Effect.Effect<Presence, never, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const id = randomUUID()
    /** Statements that depend on which other processes run are executed one after the other. */
    const mutex = yield* Effect.makeSemaphore(1)
    /** When the last heartbeat was sent, on the monotonic clock. */
    let seenAt = Number.NEGATIVE_INFINITY

    const lock = sql`SELECT pg_advisory_xact_lock(${PRESENCE}::bigint)`
    const others = Effect.map(
      decodeOthers(sql`SELECT count(*)::int AS others FROM processes WHERE role = ${role} AND id <> ${id}`),
      ([row]) => row?.others ?? 0
    )

    const register = sql.withTransaction(
      Effect.zipRight(
        lock,
        sql`
          INSERT INTO processes (id, role) VALUES (${id}, ${role})
          ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp(), since = clock_timestamp(), alone = false`
      )
    )

    /**
     * Sends a heartbeat, and counts the others. Undefined if they removed this process. `steady`: its heartbeats have had no
     * gap for so long that processes without a recent heartbeat are lost. A heartbeat that is lost in a crash of Postgres is
     * soon followed by the next one, so its commit does not wait for the disk.
     */
    const renew = Effect.map(
      decodeRenewed(sql`
        WITH durability AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), mine AS (
          UPDATE processes p SET seen_at = clock_timestamp(),
            since = CASE WHEN p.seen_at < clock_timestamp() - make_interval(secs => ${LOST_S}) THEN clock_timestamp() ELSE p.since END
          FROM durability WHERE p.id = ${id}
          RETURNING p.since < clock_timestamp() - make_interval(secs => ${LOST_S}) AS steady)
        SELECT mine.steady, o.others, o.lost FROM mine, (
          SELECT count(*)::int AS others, count(*) FILTER (WHERE seen_at < clock_timestamp() - make_interval(secs => ${LOST_S}))::int AS lost
          FROM processes WHERE role = ${role} AND id <> ${id}) o`),
      ([row]) => row
    )

    const remove = (free: (lost: ReadonlyArray<string>) => Statements) =>
      sql.withTransaction(
        Effect.flatMap(
          decodeIds(sql`
            DELETE FROM processes WHERE id IN (
              SELECT id FROM processes WHERE role = ${role} AND id <> ${id}
                AND seen_at < clock_timestamp() - make_interval(secs => ${LOST_S}) ORDER BY id FOR UPDATE)
            RETURNING id`),
          (rows) => (rows.length === 0 ? Effect.void : free(rows.map((row) => row.id)))
        )
      )

    const setSole = (sole: boolean) => sql`UPDATE processes SET alone = ${sole} WHERE id = ${id}`

    const exclusively = mutex.withPermits(1)

    const heartbeat = ({ absent, free, seen }: Hooks) =>
      exclusively(
        Effect.gen(function* () {
          const at = performance.now()
          const renewed = yield* renew
          if (renewed === undefined) {
            absent?.()
            yield* register
          }
          seenAt = at
          const isAnyLost = renewed?.steady === true && renewed.lost > 0
          if (isAnyLost) yield* remove(free ?? (() => Effect.void))
          yield* seen(renewed === undefined || isAnyLost ? yield* others : renewed.others)
        })
      )

    const quietly = <A, E>(what: Effect.Effect<A, E>) =>
      Effect.catchAllCause(what, (cause) => Effect.logDebug(`a heartbeat of the role ${role} failed`, cause))

    return {
      id,
      isSeen: () => performance.now() - seenAt <= LOST_S * 1_000,
      exclusively,
      claimSole: (statements) =>
        sql.withTransaction(
          Effect.zipRight(
            lock,
            Effect.flatMap(others, (count) =>
              count > 0 ? Effect.succeed(false) : Effect.as(Effect.zipRight(setSole(true), statements), true)
            )
          )
        ),
      releaseSole: (statements) => Effect.asVoid(sql.withTransaction(Effect.zipRight(statements, setSole(false)))),
      keep: (hooks) =>
        Effect.gen(function* () {
          const left = sql.withTransaction(Effect.zipRight(hooks.leave ?? Effect.void, sql`DELETE FROM processes WHERE id = ${id}`))
          yield* quietly(heartbeat(hooks))
          yield* Effect.addFinalizer(() => quietly(Effect.timeout(left, "1 second")))
          yield* Effect.forkScoped(Effect.schedule(quietly(heartbeat(hooks)), Schedule.spaced(SEEN_EVERY)))
        })
    }
  })
