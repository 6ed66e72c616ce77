/**
 * Which processes of a role run. Each keeps a row in `processes` and renews it every second; one that stops removes its row.
 * A row that has not been renewed for {@link LOST_S} seconds belongs to a lost process, and another one of its role removes
 * it and takes over what it left. Only a process whose own heartbeats had no gap for that long does so: otherwise Postgres
 * was unavailable, and no process could send heartbeats. After a gap it waits until each of the others has had the time to
 * notice that Postgres is back. Decisions D-51, D-52.
 */

import { randomUUID } from "node:crypto"
import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schedule, Schema, type Scope } from "effect"
import { decodeRows } from "../database/decodeRows.ts"

/** How old the last heartbeat of a running process may be, in seconds. */
const LOST_S = 4
/** How old the last heartbeats of the others are if a process is the only one that can do the role's work, in seconds. */
const ALONE_S = 2
/** How much later than this process another one may reach Postgres again after an outage, in ms: a silent connection ends after 11 s. */
const BACK_MS = 13_000
/** Time between two heartbeats. */
const SEEN_EVERY = "1 second"

type Statements = Effect.Effect<unknown, SqlError.SqlError>

/** The processes of a role as of a heartbeat. */
export interface Peers {
  /** The others, and whether none of them has sent a heartbeat lately. */
  readonly others: ReadonlyArray<string>
  readonly isAlone: boolean
  /** For how long this process has been registered, in seconds, and whether it is the one that has been for longest. */
  readonly ageS: number
  readonly isOldest: boolean
}

/** The actions of the owner of a presence. */
export interface Hooks {
  /** Called after each heartbeat. */
  readonly seen: (peers: Peers) => Statements
  /** Takes over what lost processes left, in the transaction that removes them; for this process when it stops. */
  readonly takeOver?: (lost: ReadonlyArray<string>) => Statements
  /** Whether the process can do its role's work now; default true. */
  readonly canSend?: () => boolean
}

/** This process among those of its role. */
export interface Presence {
  /** Its id in `processes`. */
  readonly id: string
  /** Whether other processes still consider it running: the last heartbeat is younger than {@link LOST_S}. */
  readonly isSeen: () => boolean
  /** Registers the process, and sends heartbeats until the scope closes. While Postgres is unavailable, it retries every second. */
  readonly keep: (hooks: Hooks) => Effect.Effect<void, never, Scope.Scope>
}

const decodeRenewed = decodeRows(
    Schema.Struct({
      steady: Schema.Boolean,
      lost: Schema.Number,
      others: Schema.Array(Schema.String),
      ageS: Schema.Number,
      isOldest: Schema.Boolean,
      isAlone: Schema.Boolean
    })
  ),
  decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

/** A presence of a role. Other processes see it once it is kept. */
export const presence = (role: "api" | "worker" | "dispatcher"): Effect.Effect<Presence, never, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const id = randomUUID()
    /** When the last heartbeat was sent, on the monotonic clock. */
    let seenAt = Number.NEGATIVE_INFINITY
    /** When it may remove others again after a gap. */
    let removesFrom = Number.NEGATIVE_INFINITY

    /** Whether the last heartbeat of a row was too long ago, or is ahead of Postgres' clock, which was set back. */
    const isLost = sql`seen_at NOT BETWEEN clock_timestamp() - make_interval(secs => ${LOST_S}) AND clock_timestamp() + make_interval(secs => ${LOST_S})`

    const register = (canSend: boolean) => sql`
      INSERT INTO processes (id, role, can_send) VALUES (${id}, ${role}, ${canSend})
      ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp(), since = clock_timestamp(), can_send = excluded.can_send`

    /**
     * Sends a heartbeat, and reads the others. Undefined if they removed this process. `steady`: its heartbeats have had no
     * gap for so long that processes without a recent heartbeat are lost; a change of Postgres' clock counts as a gap. A heartbeat that is lost in a crash of Postgres is
     * soon followed by the next one, so its commit does not wait for the disk.
     */
    const renew = (canSend: boolean) =>
      Effect.map(
        decodeRenewed(sql`
          WITH durability AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), mine AS (
            UPDATE processes p SET seen_at = clock_timestamp(), can_send = ${canSend},
              since = CASE WHEN ${isLost} THEN clock_timestamp() ELSE p.since END
            FROM durability WHERE p.id = ${id}
            RETURNING p.since, extract(epoch FROM clock_timestamp() - p.since)::float8 AS age)
          SELECT mine.age > ${LOST_S} AS steady, mine.age AS "ageS", coalesce(o.ids, '{}') AS others, coalesce(o.lost, 0)::int AS lost,
            coalesce(o.since > mine.since, true) AS "isOldest",
            coalesce(o.seen_at < clock_timestamp() - make_interval(secs => ${ALONE_S}), true) AS "isAlone"
          FROM mine, (
            SELECT array_agg(id ORDER BY id) AS ids, min(since) AS since, max(seen_at) AS seen_at,
              count(*) FILTER (WHERE ${isLost}) AS lost
            FROM processes WHERE role = ${role} AND id <> ${id}) o`),
        ([row]) => row
      )

    const removeLost = (takeOver: (lost: ReadonlyArray<string>) => Statements) =>
      sql.withTransaction(
        Effect.flatMap(
          decodeIds(sql`
            DELETE FROM processes WHERE id IN (
              SELECT id FROM processes WHERE role = ${role} AND id <> ${id} AND ${isLost} ORDER BY id FOR UPDATE)
            RETURNING id`),
          (rows) => (rows.length === 0 ? Effect.void : takeOver(rows.map((row) => row.id)))
        )
      )

    const heartbeat = ({ canSend = () => true, seen, takeOver = () => Effect.void }: Hooks) =>
      Effect.gen(function* () {
        const at = performance.now()
        let renewed = yield* renew(canSend())
        if (renewed === undefined) {
          yield* register(canSend())
          renewed = yield* renew(canSend())
        }
        if (seenAt > Number.NEGATIVE_INFINITY && at - seenAt > LOST_S * 1_000) removesFrom = performance.now() + BACK_MS
        seenAt = at
        if (renewed === undefined) return
        if (renewed.steady && renewed.lost > 0 && performance.now() >= removesFrom) yield* removeLost(takeOver)
        yield* seen(renewed)
      })

    const quietly = <A, E>(what: Effect.Effect<A, E>) =>
      Effect.catchAllCause(what, (cause) => Effect.logDebug(`a heartbeat of the role ${role} failed`, cause))

    return {
      id,
      isSeen: () => performance.now() - seenAt <= LOST_S * 1_000,
      keep: (hooks) =>
        Effect.gen(function* () {
          const left = sql.withTransaction(
            Effect.zipRight(sql`DELETE FROM processes WHERE id = ${id}`, hooks.takeOver?.([id]) ?? Effect.void)
          )
          yield* quietly(heartbeat(hooks))
          yield* Effect.addFinalizer(() => quietly(Effect.timeout(left, "1 second")))
          yield* Effect.forkScoped(Effect.schedule(quietly(heartbeat(hooks)), Schedule.spaced(SEEN_EVERY)))
        })
    }
  })
