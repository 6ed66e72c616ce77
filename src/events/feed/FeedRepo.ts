/**
 * Reads an organization's events in the order of recording. A reader follows the organization's stream while it can see
 * much of it; if a bounded search does not fill the page, it follows each vault that it can see. So a page has the same
 * events and cost however much happens that the reader cannot see, but for thousands of events without a vault: then it ends
 * early and has more. Filters by kind and entity search a bounded number of visible events, so they do not reveal more either. C-1.
 */

import type { SqlError, Statement } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { allows, seesEvent } from "../../access/visibility/visibility.ts"
import { castRows, decodeRows } from "../../runtime/database/decodeRows.ts"
import { DirectRows } from "../../runtime/database/pgWorkarounds.ts"
import { and } from "../../runtime/database/sql.ts"
import * as Id from "../../values/Id.ts"
import { midnight } from "../log/chain.ts"
import { oldestId, oldestTime, WITHOUT_VAULT } from "../log/logWindow.ts"
import { BEGINNING, type Place } from "./cursor.ts"
import { FeedRow, feedColumns, isWhole, Key, KeyRow } from "./FeedRow.ts"
import { type End, endOf, StreamRow } from "./streamEnd.ts"

/** Filters of the feed; each matches any of its values. */
export interface FeedFilter {
  readonly kind?: ReadonlyArray<string> | undefined
  readonly vaultId?: ReadonlyArray<string> | undefined
  readonly entityId?: ReadonlyArray<string> | undefined
}

/** Events after a position. */
export interface FeedPage {
  readonly rows: ReadonlyArray<FeedRow>
  /** The position after the last event examined. */
  readonly place: Place
  /** Whether there are more recorded events that the reader can see. */
  readonly more: boolean
}

/** A reader who sees more vaults than this probably sees much of the organization's events. */
const FEW_VAULTS = 32
/** Events of the organization that are searched for such a reader before each vault is. */
const LOOK = 3_000
/** The same for readers who see few vaults, per requested event. */
const LOOK_FEW = 4
/** The time range that is searched first, as a multiple of the time that as many events take on average. */
const WIDE = 8
const DAY = 86_400_000
/** Visible events that are searched for those that match a filter. */
const FILTERED = 1_000
/** How long the oldest cursor in a problem stays usable, in ms. */
const USABLE = 300_000

/** A time in ms: every event after this one has an id of it or later. The clock may have been set back since the place was given. */
export const idsFrom = (id: string | null): number => Math.max(id === null ? 0 : (Id.time(id) ?? 0), oldestTime())

/** The position after an event. */
export const placeOf = ({ id, position }: Pick<FeedRow, "id" | "position">): Place => ({ position, at: Id.time(id) ?? 0, id })

/** The place at the end of a stream. */
const placeAt = ({ at, id, position }: Place): Place => ({ position, at, id })

interface ReadPlan {
  /** Whether the reader sees many vaults. */
  readonly many: boolean
  /** Whether whole rows are read instead of keys. */
  readonly whole: boolean
}

const decodeStreams = decodeRows(StreamRow),
  decodeCounted = decodeRows(Schema.Struct({ ...StreamRow.fields, vaults: Schema.Number })),
  decodeKeys = decodeRows(Key)
// A page has up to a thousand rows, and readers that catch up request one page after the other.
const castKeys = castRows(KeyRow),
  castEvents = castRows(FeedRow)

export class FeedRepo extends Effect.Service<FeedRepo>()("custody/FeedRepo", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const direct = yield* DirectRows

    const rowColumns = sql.literal(feedColumns)
    const keyColumns = sql.literal(`e.id, e.position, e.kind, e.entity_id AS "entityId"`)

    const streamColumns =
      sql.literal(`position, event_id AS id, CASE WHEN isfinite(clock) THEN floor(extract(epoch FROM clock) * 1000)::float8 ELSE 0 END AS clock,
      floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`)

    /** The current end of the stream. */
    const end = (organizationId: string): Effect.Effect<End> =>
      Effect.map(
        decodeStreams(direct.query(sql`SELECT ${streamColumns} FROM event_streams WHERE organization_id = ${organizationId}`)),
        ([found]) => endOf(found)
      ).pipe(Effect.orDie)

    /** Rows of `events e` or of another table by day, with ids of a range of times: Postgres opens no other day. */
    const within = (column: string, from: number, before: number) =>
      sql`${sql.literal(column)} >= ${Id.floor("evt", from)} AND ${sql.literal(column)} < ${Id.floor("evt", before)}`

    /** Events between two positions, the first excluded and the last included, recorded before a time. */
    const between = (after: Place, until: End, before = until.latest + 1) =>
      sql`e.position > ${after.position} AND e.position <= ${until.position} AND ${within("e.id", after.at, before)}`

    const dispatches = (from: number, before: number) =>
      sql`LEFT JOIN event_dispatches x ON x.event_id = e.id AND ${within("x.event_id", from, before)}`

    /** The current end of the stream, and whether the reader sees many vaults. */
    const endFor = ({ organizationId, userId, vaultAllowlist }: PrincipalState) =>
      Effect.map(
        decodeCounted(
          direct.query(sql`
            SELECT ${streamColumns}, (SELECT count(*) FROM (SELECT 1 FROM vault_roles WHERE user_id = ${userId} LIMIT ${FEW_VAULTS + 1}) r) AS vaults
            FROM event_streams WHERE organization_id = ${organizationId}`)
        ),
        ([found]) => ({
          until: endOf(found),
          many: (found?.vaults ?? 0) > FEW_VAULTS && (vaultAllowlist === null || vaultAllowlist.length > FEW_VAULTS)
        })
      )

    /** The midnight before which this many more events were probably recorded. */
    const probably = (after: Place, until: End, events: number): number => {
      const share = Math.min(1, (WIDE * events) / (until.position - after.position))
      return Math.min(until.latest + 1, midnight(after.at + share * (until.latest - after.at)) + DAY)
    }

    /**
     * The organization's next events that the reader can see; undefined if there are more events than were searched. It first
     * searches the days that probably contain them.
     */
    const alongOrganization = Effect.fnUntraced(function* (
      principal: PrincipalState,
      after: Place,
      until: End,
      take: number,
      { many, whole }: ReadPlan
    ) {
      const look = many ? LOOK : LOOK_FEW * take
      const read = (before: number) => {
        const next = sql`SELECT * FROM events e WHERE e.organization_id = ${principal.organizationId} AND ${between(after, until, before)}
          ORDER BY e.position LIMIT ${look}`
        const seen = sql`SELECT ${whole ? sql.literal("e.*") : keyColumns} FROM (${next}) e WHERE ${seesEvent(sql, principal)} ORDER BY e.position LIMIT ${take}`
        const rows = direct.query(
          whole ? sql`SELECT ${rowColumns} FROM (${seen}) e ${dispatches(after.at, before)} ORDER BY e.position` : seen
        )
        return (whole ? castEvents : castKeys)(rows)
      }
      const last = until.latest + 1
      const first = probably(after, until, take)
      let found = yield* read(first)
      if (found.length === take) return found
      // For a reader of few vaults, each vault is searched next, which costs no more.
      if (first < last && many) found = yield* read(last)
      else if (first < last) return undefined
      return found.length === take || until.position - after.position <= look ? found : undefined
    })

    /** Up to where a page is searched: the end, or an earlier event if there are many without a vault before it. */
    const searchable = (principal: PrincipalState, after: Place, until: End): Effect.Effect<End, SqlError.SqlError> =>
      Effect.map(
        decodeKeys(
          direct.query(sql`
            SELECT e.id, e.position FROM events e
            WHERE e.organization_id = ${principal.organizationId} AND e.vault_id IS NULL AND ${between(after, until)}
            ORDER BY e.position OFFSET ${WITHOUT_VAULT - 1} LIMIT 1`)
        ),
        ([last]) => {
          if (last === undefined) return until
          const place = placeOf(last)
          return { ...place, latest: place.at }
        }
      )

    /** The next events of each vault that the reader can see, merged. */
    const alongVaults = (
      principal: PrincipalState,
      vaultIds: ReadonlyArray<string> | undefined,
      after: Place,
      until: End,
      take: number
    ) => {
      const keys = (where: Statement.Fragment) => sql`
        SELECT ${keyColumns} FROM events e WHERE ${where} AND ${between(after, until)} ORDER BY e.position LIMIT ${take}`
      const entityScoped = sql`UNION ALL (${keys(sql`e.vault_id IS NULL AND ${seesEvent(sql, principal)}`)})`
      return castKeys(
        direct.query(sql`
          SELECT id, position, kind, "entityId" FROM (
            SELECT seen.* FROM vault_roles r CROSS JOIN LATERAL (
              ${keys(sql`e.vault_id = r.vault_id AND e.organization_id = ${principal.organizationId}`)}) seen
            WHERE r.user_id = ${principal.userId}
              AND ${allows(sql, principal.vaultAllowlist, sql.literal("r.vault_id"))}
              ${and(sql, vaultIds !== undefined && sql`r.vault_id = ANY(${vaultIds}::text[])`)}
            ${vaultIds === undefined ? entityScoped : sql.literal("")}
          ) seen ORDER BY position LIMIT ${take}`)
      )
    }

    /** The first `take` events between two positions that the reader can see, or all if there are fewer, and where the search ended. */
    const visible = Effect.fnUntraced(function* (
      principal: PrincipalState,
      vaultIds: ReadonlyArray<string> | undefined,
      after: Place,
      until: End,
      take: number,
      reading: ReadPlan
    ) {
      if (until.position <= after.position) return { found: [], end: until }
      if (vaultIds !== undefined) return { found: yield* alongVaults(principal, vaultIds, after, until, take), end: until }
      const found = yield* alongOrganization(principal, after, until, take, reading)
      if (found !== undefined) return { found, end: until }
      const end = yield* searchable(principal, after, until)
      return { found: yield* alongVaults(principal, undefined, after, end, take), end }
    })

    const rowsOf = (keys: ReadonlyArray<KeyRow>): Effect.Effect<ReadonlyArray<FeedRow>, SqlError.SqlError> => {
      const [first, last] = [keys[0], keys.at(-1)]
      if (first === undefined || last === undefined) return Effect.succeed([])
      if (keys.every(isWhole)) return Effect.succeed(keys)
      const [from, before] = [Id.time(first.id) ?? 0, (Id.time(last.id) ?? 0) + 1]
      return Effect.map(
        castEvents(
          direct.query(sql`
            SELECT ${rowColumns} FROM events e ${dispatches(from, before)}
            WHERE e.id = ANY(${keys.map(({ id }) => id)}::text[]) AND ${within("e.id", from, before)}`)
        ),
        (rows) => [...rows].sort((one, other) => one.position - other.position)
      )
    }

    return {
      /** The current end of the stream. Every event after it is recorded later. */
      end,

      /**
       * Whether the log has the place of a cursor: its event has its position. Not so after a restored backup, or when the
       * organization was deleted and recorded again. An event that is older than the log can no longer be compared, and before the
       * first event there is nothing that could have been replaced. C-9.
       */
      has: (organizationId: string, { id, position }: Place): Effect.Effect<boolean> =>
        position === BEGINNING
          ? Effect.succeed(true)
          : Effect.map(
              direct.query(sql`
            SELECT 1 FROM event_streams s WHERE s.organization_id = ${organizationId} AND CASE
              WHEN ${position}::bigint > s.position THEN false
              WHEN ${id}::text IS NULL THEN true
              WHEN ${position}::bigint = s.position THEN s.event_id = ${id}
              WHEN ${id} < ${oldestId("evt")} THEN true
              ELSE EXISTS (SELECT 1 FROM events e WHERE e.id = ${id} AND e.organization_id = s.organization_id AND e.position = ${position}) END`),
              (rows) => rows.length > 0
            ).pipe(Effect.orDie),

      /** The position before the first event that can still be read. */
      oldest: Effect.fn("FeedRepo.oldest")(function* (organizationId: string) {
        const until = yield* end(organizationId)
        const at = oldestTime() + USABLE
        const [first] = yield* decodeKeys(
          direct.query(sql`
            SELECT e.id, e.position FROM events e WHERE e.organization_id = ${organizationId}
              AND ${between({ position: BEGINNING, at, id: null }, until)} ORDER BY e.position LIMIT 1`)
        )
        return first === undefined ? placeAt(until) : { position: first.position - 1, at: Id.time(first.id) ?? 0, id: null }
      }, Effect.orDie),

      /** A page of the events that the reader can see after a position, or from the beginning of the log. */
      page: Effect.fn("FeedRepo.page")(function* (principal: PrincipalState, filter: FeedFilter, given: Place | undefined, limit: number) {
        const { many, until } = yield* endFor(principal)
        const { id, position } = given ?? { id: null, position: BEGINNING }
        const after = { position, id, at: idsFrom(id) }
        const filtered = filter.kind !== undefined || filter.entityId !== undefined
        const take = filtered ? Math.max(FILTERED, limit) + 1 : limit + 1
        const { end, found } = yield* visible(principal, filter.vaultId, after, until, take, { many, whole: !filtered })
        const wanted = found.filter(
          ({ entityId, kind }) => (filter.kind?.includes(kind) ?? true) && (filter.entityId?.includes(entityId) ?? true)
        )
        const rows = wanted.slice(0, limit)
        const last = wanted.length > limit ? rows.at(-1) : found.length === take ? found.at(-2) : undefined
        const rest = last === undefined && end.position < until.position
        // The event after the last one is not examined: it is on the next page.
        const kept = last === undefined ? rows : rows.filter(({ position }) => position <= last.position)
        return {
          rows: yield* rowsOf(kept),
          place: last === undefined ? (end.position >= after.position ? placeAt(end) : after) : placeOf(last),
          more: last !== undefined || rest
        } satisfies FeedPage
      }, Effect.orDie)
    }
  })
}) {
  static readonly layer = this.Default
}
