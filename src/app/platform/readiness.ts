/** Readiness of this process, for `/health/ready` on the platform listener. */

import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Schema } from "effect"
import { sealedUntil } from "../../custody/statements/sealedUntil.ts"
import { RETENTION_DAYS } from "../../events/log/logWindow.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { ReadReplica } from "../../runtime/database/replica/ReadReplica.ts"
import { egressProxyFault } from "../../runtime/processes/egressProxy.ts"
import { resolverIsAway } from "../../runtime/processes/resolver.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import { TemporalConnection } from "../../runtime/temporal/Connection.ts"
import { oldestOverdue } from "./oldestOverdue.ts"
import { oldestUndispatched } from "./oldestUndispatched.ts"
import { OK, type Readiness } from "./platformApp.ts"

const decodeWaiting = decodeRows(Schema.Struct({ unsent: Schema.NullOr(Schema.Number), down: Schema.Number, readOnly: Schema.Boolean }))

/** A write without effect. A read-only server rejects it, and the connection is replaced. */
const writing = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`UPDATE notices SET recipient = recipient WHERE false`)

const rounded = (seconds: number) => Math.max(0, Math.round(seconds * 1000) / 1000)

/**
 * The state of the process, by its roles: each dependency with its error. Reads and management work without Temporal. Only a worker
 * uses the resolver and the egress proxy, so no other process says how they are. The cost depends on what is waiting at that moment.
 */
export const readiness = ({ api, worker }: { readonly api: boolean; readonly worker: boolean }) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const connection = yield* TemporalConnection
    const replica = yield* ReadReplica
    const { statementDelay, webhookProxyUrl } = yield* Settings
    const [oldest, overdue] = [oldestUndispatched(sql), oldestOverdue(sql)]
    const look = Effect.gen(function* () {
      const undispatched = yield* oldest
      const [row] = yield* decodeWaiting(sql`
        SELECT (SELECT extract(epoch FROM clock_timestamp() - n.created_at)::float8 FROM notices n
            WHERE n.sent_at IS NULL AND n.created_at > now() - make_interval(days => ${RETENTION_DAYS}) ORDER BY n.created_at LIMIT 1) AS unsent,
          (SELECT count(*)::integer FROM webhook_queues q WHERE q.down) AS down,
          current_setting('transaction_read_only') = 'on' AS "readOnly"`)
      const { overdueSeconds } = yield* sealedUntil(sql, statementDelay)
      return {
        undispatched: undispatched ?? 0,
        unsent: row?.unsent ?? 0,
        unsealed: overdueSeconds,
        down: row?.down ?? 0,
        readOnly: row?.readOnly === true
      }
    })
    return Effect.gen(function* () {
      const seen = Option.getOrUndefined(yield* look.pipe(Effect.timeout("2 seconds"), Effect.option))
      if (seen?.readOnly === true) yield* Effect.ignore(writing)
      // Only a metric: if it takes too long, its value is unknown, and the process is still ready.
      const late = seen === undefined ? Option.none() : yield* overdue.pipe(Effect.timeout("1 second"), Effect.option)
      const temporalAnswers = yield* connection.isAvailable
      const proxyFault = egressProxyFault()
      const replicaFault = replica.fault()
      const state: Readiness = {
        ready: seen !== undefined && ((temporalAnswers && !seen.readOnly) || api),
        dependencies: {
          postgres: seen === undefined ? "Postgres is unavailable" : seen.readOnly ? "Postgres is read-only: is it a standby?" : OK,
          ...(worker
            ? {
                network: resolverIsAway()
                  ? "The DNS resolver does not respond, not even to a query for the root: no attempts are made until it does"
                  : OK
              }
            : {}),
          temporal: temporalAnswers ? OK : "Temporal is unavailable: events are recorded and wait",
          // Not required for readiness: without the replica, the primary serves the same reads.
          // Not required either: what is not sent waits.
          ...(webhookProxyUrl === undefined || !worker
            ? {}
            : { proxy: proxyFault === undefined ? OK : `The egress proxy fails: ${proxyFault}` }),
          ...(replicaFault === undefined ? {} : { replica: replicaFault === null ? OK : `The read replica is not used. ${replicaFault}` })
        },
        ...(replicaFault === undefined ? {} : { replicaLagSeconds: replica.lag() ?? null }),
        oldestUndispatchedSeconds: seen === undefined ? null : rounded(seen.undispatched),
        oldestOverdueSeconds: Option.match(late, { onNone: () => null, onSome: rounded }),
        oldestUnsentNoticeSeconds: seen === undefined ? null : rounded(seen.unsent),
        oldestOverdueStatementSeconds: seen === undefined ? null : rounded(seen.unsealed),
        endpointsDown: seen === undefined ? null : seen.down
      }
      return state
    }).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  })
