/**
 * Which organizations have events in the outbox, as known to one dispatcher. Index entries of dispatched events stay in the
 * outbox for as long as a backup holds a snapshot, so nothing is searched twice: each poll reads only the events of
 * transactions that were not finished at the previous poll, and a claim starts after the last event that is known to be
 * dispatched. Once a minute a poll starts from the beginning, because a crash of Postgres can bring back earlier events.
 * Decision D-34.
 */
import type { SqlClient, SqlError } from "@effect/sql"
import { Effect, Schema } from "effect"
import { decodeRows } from "../../runtime/database/decodeRows.ts"

/** How often a poll starts from the beginning, in ms. */
const WHOLE = 60_000

/** An organization with events in the outbox, and a position below all of them. */
export interface WaitingOrganization {
  readonly organizationId: string
  readonly floor: number
}

const decode = decodeRows(
  Schema.Struct({
    /** The snapshot of the poll, as Postgres writes it: `xmin:xmax:running,running`. */
    snapshot: Schema.String,
    organizationId: Schema.NullOr(Schema.String),
    first: Schema.NullOr(Schema.Number)
  })
)

export class WaitingOrganizations {
  readonly #sql: SqlClient.SqlClient
  readonly #floors = new Map<string, number>()
  #wholeAt = Number.NEGATIVE_INFINITY
  /** The first transaction that was not seen, and earlier ones that were running at the last poll. */
  #unseen = 0n
  #running: ReadonlyArray<string> = []
  /** The organization after which the next claim starts. */
  #after = ""

  constructor(sql: SqlClient.SqlClient) {
    this.#sql = sql
  }

  /** Reads the events recorded since the last poll. Returns whether any event waits. */
  get poll(): Effect.Effect<boolean, SqlError.SqlError> {
    return Effect.suspend(() => {
      const begun = performance.now()
      const whole = begun - this.#wholeAt > WHOLE
      return Effect.map(whole ? this.#everything() : this.#recorded(), (found) => {
        if (whole) this.#wholeAt = begun
        const [, end = "0", running = ""] = found[0]?.snapshot.split(":") ?? []
        // Another Postgres server, such as a promoted standby, which was behind the previous one.
        if (BigInt(end) < this.#unseen) this.#wholeAt = Number.NEGATIVE_INFINITY
        this.#unseen = BigInt(end)
        this.#running = running === "" ? [] : running.split(",")
        for (const { first, organizationId } of found) {
          if (organizationId === null || first === null) continue
          this.#floors.set(organizationId, Math.min(first - 1, this.#floors.get(organizationId) ?? Number.POSITIVE_INFINITY))
        }
        return this.#floors.size > 0
      })
    })
  }

  /** The organizations whose turn it is, at most `most`. */
  next(most: number): ReadonlyArray<WaitingOrganization> {
    const ids = [...this.#floors.keys()].sort()
    const start = ids.findIndex((id) => id > this.#after)
    const those = (start < 0 ? ids : [...ids.slice(start), ...ids.slice(0, start)]).slice(0, most)
    this.#after = those.length < ids.length ? (those.at(-1) ?? "") : ""
    return those.map((organizationId) => ({ organizationId, floor: this.#floors.get(organizationId) ?? 0 }))
  }

  /** Records what a claim left of an organization: the position of its first event, null without one. */
  claimed(organizationId: string, first: number | null): void {
    if (first === null) this.#floors.delete(organizationId)
    else this.#floors.set(organizationId, first - 1)
  }

  /** The events of transactions that the last poll did not see. */
  #recorded() {
    const sql = this.#sql
    return decode(sql`
      SELECT pg_current_snapshot()::text AS snapshot, o.organization_id AS "organizationId", o.first
      FROM (SELECT 1) one LEFT JOIN (
        SELECT organization_id, min(position) AS first FROM (
          SELECT organization_id, position FROM event_outbox WHERE xid >= ${String(this.#unseen)}::xid8
          UNION ALL
          SELECT organization_id, position FROM event_outbox WHERE xid = ANY (${this.#running}::xid8[])
        ) recorded GROUP BY organization_id
      ) o ON true`)
  }

  /** The first event of every organization, by the index from one organization to the next. */
  #everything() {
    const sql = this.#sql
    return decode(sql`
      WITH RECURSIVE waiting (organization_id) AS (
        SELECT min(organization_id) FROM event_outbox
        UNION ALL
        SELECT (SELECT min(o.organization_id) FROM event_outbox o WHERE o.organization_id > w.organization_id)
        FROM waiting w WHERE w.organization_id IS NOT NULL
      )
      SELECT pg_current_snapshot()::text AS snapshot, w.organization_id AS "organizationId",
        (SELECT min(o.position) FROM event_outbox o WHERE o.organization_id = w.organization_id) AS first
      FROM waiting w`)
  }
}
