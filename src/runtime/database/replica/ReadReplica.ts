/**
 * A read replica for lists of custody data: DATABASE_READ_URL. Repositories use a `SqlClient` as always; the one of
 * {@link routed} sends each statement to the replica if its data is current enough for the request, and to the primary
 * otherwise. A statement that fails on the replica, or takes long, is run on the primary, so a lost replica fails no request.
 *
 * A request needs a position of the write-ahead log. Keys are authenticated on the primary; the same statement returns where
 * its log ends, the version of the caller's user row, and the organization's newest event. Every change of a user's
 * roles writes that row, so a replica that has reached the position where this process first saw the version has the current
 * roles; and one that has reached the position where it first saw that event has the data of all events. A
 * cursor needs the position of its first page, so a list never goes back in time. Decision D-58.
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Context, Duration, Effect, Layer, Metric, type Redacted, Schema } from "effect"
import { LRUCache } from "lru-cache"
import * as Database from "../Database.ts"
import { DirectRows } from "../pgWorkarounds.ts"
import { Snapshots } from "../Snapshots.ts"
import { currentReading, type Reading } from "./Reading.ts"
import { TIMELINE, watchReplica } from "./ReplicaWatch.ts"

/** Lag in seconds above which the replica is not used. */
export const MAX_LAG = 5
/** Like the primary's pool, with a statement timeout that leaves time for the primary. A replica that hangs is detected within 3 s. */
const shape: Database.PoolShape = { ...Database.pools.api, name: "replica", statement: Duration.seconds(1) }
/** Users and organizations that are remembered; a forgotten one needs a replica that is up to date. */
const REMEMBERED = 10_000

interface Servers {
  readonly client: SqlClient.SqlClient
  readonly direct: typeof DirectRows.Service
  readonly snapshots: typeof Snapshots.Service
}

/** Where a read goes: `replica`, or the reason why it goes to the primary. */
type Route = "replica" | "absent" | "lagging" | "newer" | "failed"

const reads = Metric.counter("custody_list_reads_total", {
  description:
    "Reads of lists with DATABASE_READ_URL: by the replica, or by the primary because the replica is absent, lagging, not yet at a required change (newer) or failed"
})
const counters = new Map<Route, typeof reads>()
const count = (route: Route) => {
  const known =
    counters.get(route) ?? reads.pipe(Metric.tagged("server", route === "replica" ? "replica" : "primary"), Metric.tagged("reason", route))
  counters.set(route, known)
  known.unsafeUpdate(1, [])
}

/** The replica and the position that it has replayed, or the reason why a read goes to the primary. */
type Serving = { readonly servers: Servers; readonly position: number } | Exclude<Route, "replica">

/**
 * The end of the log and its timeline, the version and the newest event, as columns of a statement over `users u` on the primary.
 * Numbers of transactions and of events repeat after a failover that lost some.
 */
const COLUMNS = `, concat(u.xmin, ' ', u.updated_at) AS version,
  (SELECT s.event_id FROM event_streams s WHERE s.organization_id = u.organization_id) AS event,
  CASE WHEN pg_is_in_recovery() THEN NULL ELSE (pg_current_wal_insert_lsn() - '0/0')::float8 END AS position,
  ${TIMELINE} AS timeline`

/** A user's row with {@link ReadReplica.columns}, which are absent without a replica. */
export const Seen = Schema.Struct({
  userId: Schema.String,
  organizationId: Schema.String,
  version: Schema.optional(Schema.String),
  event: Schema.optional(Schema.NullOr(Schema.String)),
  position: Schema.optional(Schema.NullOr(Schema.Number)),
  timeline: Schema.optional(Schema.NullOr(Schema.String))
})
export type Seen = typeof Seen.Type

/** Remembers, by id, the log position at which a state was first seen: it was written before that. */
const firstSeen = () => {
  const known = new LRUCache<string, { readonly state: string; readonly position: number }>({ max: REMEMBERED })
  return (id: string, state: string, position: number): number => {
    const before = known.get(id)
    if (before?.state === state) return before.position
    known.set(id, { state, position })
    return position
  }
}

export class ReadReplica extends Context.Tag("custody/ReadReplica")<
  ReadReplica,
  {
    /** Columns for the statement that authenticates, over `users u`; empty without a replica. */
    readonly columns: string
    /** Lets a request read from the replica, once its user's row was read on the primary. */
    readonly admit: (reading: Reading, row: Seen) => void
    /** Why the replica is not used, null if it is; undefined without one. */
    readonly fault: () => string | null | undefined
    /** Seconds by which the replica may be behind; undefined if it is absent. */
    readonly lag: () => number | undefined
    /** The replica if its data is current enough for the request. */
    readonly serving: (
      reading: Reading
    ) => Effect.Effect<{ readonly servers: Servers; readonly position: number } | Exclude<Route, "replica">>
  }
>() {
  /** Without a replica. */
  static readonly none = Layer.succeed(ReadReplica, {
    columns: "",
    admit: () => {},
    fault: () => undefined,
    lag: () => undefined,
    serving: () => Effect.succeed("absent" as const)
  })

  /** The replica at `replicaUrl` of the primary at `primaryUrl`. */
  static readonly layer = (primaryUrl: Redacted.Redacted, replicaUrl: Redacted.Redacted) =>
    Layer.scoped(
      ReadReplica,
      Effect.gen(function* () {
        const services = yield* Layer.build(Layer.merge(Database.layer(replicaUrl, shape), Snapshots.layer(replicaUrl)))
        const servers: Servers = {
          client: Context.get(services, SqlClient.SqlClient),
          direct: Context.get(services, DirectRows),
          snapshots: Context.get(services, Snapshots)
        }
        const { reached, standing, timeline: watched } = yield* watchReplica(primaryUrl, replicaUrl)
        const versionSeen = firstSeen(),
          eventSeen = firstSeen()
        return {
          columns: COLUMNS,
          admit: (reading, { event, organizationId, position, timeline, userId, version }) => {
            // A failover that the watch has not seen: positions of the two timelines cannot be compared.
            if (version === undefined || typeof position !== "number" || timeline !== watched()) return
            reading.begun = position
            reading.needs = Math.max(versionSeen(userId, version, position), eventSeen(organizationId, event ?? "", position))
          },
          fault: () => {
            const now = standing()
            if (typeof now === "string") return now
            return now.lag > MAX_LAG ? `It is more than ${MAX_LAG} s behind` : null
          },
          lag: () => {
            const now = standing()
            return typeof now === "string" ? undefined : now.lag
          },
          serving: (reading) =>
            Effect.suspend((): Effect.Effect<Serving> => {
              const now = standing()
              if (typeof now === "string") return Effect.succeed("absent")
              if (now.lag > MAX_LAG) return Effect.succeed("lagging")
              if (now.position >= reading.needs) return Effect.succeed({ servers, position: now.position })
              if (reading.needs === Number.POSITIVE_INFINITY) return Effect.succeed("newer")
              return Effect.map(reached(reading.needs), (is): Serving => (is ? { servers, position: reading.needs } : "newer"))
            })
        }
      })
    )
}

/** Runs a read on the replica if its data is current enough for the request; otherwise, or if that fails, on the primary. */
const route = (replica: typeof ReadReplica.Service, primary: Servers) => {
  const onPrimary = <A, R>(reading: Reading | undefined, why: Route, run: (servers: Servers) => Effect.Effect<A, SqlError.SqlError, R>) => {
    count(why)
    if (reading !== undefined) reading.seen = reading.begun
    return run(primary)
  }
  return <A, R>(run: (servers: Servers) => Effect.Effect<A, SqlError.SqlError, R>): Effect.Effect<A, SqlError.SqlError, R> =>
    Effect.flatMap(currentReading, (reading) =>
      reading === undefined
        ? onPrimary(reading, "newer", run)
        : Effect.flatMap(replica.serving(reading), (found) => {
            if (typeof found === "string") return onPrimary(reading, found, run)
            reading.seen = Math.min(reading.seen ?? found.position, found.position)
            return Effect.matchEffect(run(found.servers), {
              onSuccess: (rows) => {
                count("replica")
                return Effect.succeed(rows)
              },
              onFailure: () => {
                // The rest of the request uses the primary, too.
                reading.needs = Number.POSITIVE_INFINITY
                return onPrimary(reading, "failed", run)
              }
            })
          })
    )
}

/** A client for single reads only: no transactions and no streams. */
const routedClient = (send: ReturnType<typeof route>) => {
  const statement = (text: string, values: ReadonlyArray<unknown>) => (servers: Servers) => servers.client.unsafe(text, [...values])
  const execute = (text: string, values: ReadonlyArray<unknown>) => send(statement(text, values))
  const refused = Effect.dieMessage("a read through the replica has no transaction and no stream")
  return SqlClient.make({
    acquirer: Effect.succeed({
      execute,
      executeUnprepared: execute,
      executeRaw: (text, values) => send((servers) => statement(text, values)(servers).raw),
      executeValues: (text, values) => send((servers) => statement(text, values)(servers).values),
      executeStream: () => refused
    }),
    transactionAcquirer: refused,
    compiler: PgClient.makeCompiler(),
    spanAttributes: []
  })
}

/** The clients of repositories whose reads may be up to {@link MAX_LAG} old. Without a replica, those of the primary. */
export const routed = Layer.unwrapEffect(
  Effect.gen(function* () {
    const replica = yield* ReadReplica
    const primary: Servers = { client: yield* SqlClient.SqlClient, direct: yield* DirectRows, snapshots: yield* Snapshots }
    if (replica.fault() === undefined) {
      return Layer.mergeAll(
        Layer.succeed(SqlClient.SqlClient, primary.client),
        Layer.succeed(DirectRows, primary.direct),
        Layer.succeed(Snapshots, primary.snapshots)
      )
    }
    const send = route(replica, primary)
    return Layer.mergeAll(
      Layer.provide(Layer.effect(SqlClient.SqlClient, routedClient(send)), Reactivity.layer),
      Layer.succeed(DirectRows, { query: (statement) => send(({ direct }) => direct.query(statement)) }),
      Layer.succeed(Snapshots, { open: send(({ snapshots }) => snapshots.open) })
    )
  })
)

/**
 * Runs an effect again on the primary if it failed on the replica: for reads of several statements in one snapshot. The
 * effect must not have returned any data yet.
 */
export const againOnPrimary = <A, E, R>(effect: Effect.Effect<A, E | SqlError.SqlError, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
  Effect.catchAll(effect, (error) =>
    Effect.flatMap(currentReading, (reading) => {
      const isFirst = error instanceof SqlError.SqlError && reading?.seen !== undefined && reading.needs !== Number.POSITIVE_INFINITY
      if (!isFirst) return Effect.fail(error)
      reading.needs = Number.POSITIVE_INFINITY
      return effect
    })
  )
