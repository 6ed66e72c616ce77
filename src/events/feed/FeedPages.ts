/**
 * Pages of the event feed: where a reader begins, and the wait for an event that it can see. C-1.
 */

import { Effect } from "effect"
import { AccessChecks } from "../../access/credentials/AccessChecks.ts"
import type { PrincipalState } from "../../access/credentials/Principal.ts"
import { Admission } from "../../access/visibility/Admission.ts"
import { jsonText } from "../../http/Page.ts"
import { problem, signedOut } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { MasterKey } from "../../runtime/crypto/MasterKey.ts"
import { oldestTime } from "../log/logWindow.ts"
import { open, type Place, seal } from "./cursor.ts"
import { FeedFollower, type Waiting } from "./FeedFollower.ts"
import { type FeedFilter, type FeedPage, FeedRepo } from "./FeedRepo.ts"
import { OpenReaders } from "./OpenReaders.ts"

const rejected = { headers: { "www-authenticate": 'Bearer realm="custody", error="invalid_token"' } }

/** Seconds that a connection may be idle beyond the requested wait. */
const BEYOND_WAIT = 15

/** Where a reader begins; at the beginning of the log without either. */
export interface Start {
  readonly after?: string | undefined
  readonly from?: "now" | undefined
}

/** A reader's request. */
export interface Asked extends Start, FeedFilter {
  readonly limit: number
  /** Seconds. */
  readonly wait?: number
}

const invalidCursor = (field: string) =>
  problem("invalid_cursor", "The feed did not issue this cursor for this organization.", {
    fields: [{ in: field === "last-event-id" ? "header" : "query", field, code: "invalid_cursor", detail: "must be a resumeCursor" }]
  })

export const filterOf = ({ entityId, kind, vaultId }: FeedFilter): FeedFilter => ({ kind, entityId, vaultId })

export class FeedPages extends Effect.Service<FeedPages>()("custody/FeedPages", {
  effect: Effect.gen(function* () {
    const { admit } = yield* Admission
    const master = yield* MasterKey
    const feed = yield* FeedRepo
    const follower = yield* FeedFollower
    const readers = yield* OpenReaders
    const access = yield* AccessChecks

    /** The position at which the reader wants to start; undefined for the beginning of the log. */
    const begin = Effect.fnUntraced(function* ({ organizationId }: PrincipalState, { after, from }: Start, lastEventId?: string) {
      const cursor = lastEventId ?? after
      if (cursor === undefined) {
        if (from === undefined) return undefined
        const { at, id, position } = yield* feed.end(organizationId)
        return { at, id, position } satisfies Place
      }
      const place = open(master, organizationId, cursor)
      if (place === undefined) return yield* invalidCursor(lastEventId === undefined ? "after" : "last-event-id")
      const oldestCursor = Effect.map(feed.oldest(organizationId), (oldest) => seal(master, organizationId, oldest))
      if (place.at < oldestTime())
        return yield* problem(
          "cursor_expired",
          "This cursor is older than the log. Continue from oldestCursor; earlier events are no longer available.",
          { members: { oldestCursor: yield* oldestCursor } }
        )
      if (!(yield* feed.has(organizationId, place)))
        return yield* problem(
          "cursor_gone",
          "The log has another event at this cursor's place: it was restored from a backup, or the organization was recorded again. Read everything again from oldestCursor.",
          { members: { oldestCursor: yield* oldestCursor } }
        )
      return place
    })

    /** Fails if a reader specifies two starting points. */
    const notBoth = ({ after, from }: Start) =>
      after !== undefined && from !== undefined
        ? problem("invalid_parameter", "Use either after or from, not both.", {
            fields: [{ in: "query", field: "from", code: "invalid_parameter", detail: "cannot be combined with after" }]
          })
        : Effect.void

    /**
     * Waits for the next event that the reader can see and that matches. Returns the reader's access and position after
     * the wait.
     */
    const waitFor = (principal: PrincipalState, filter: FeedFilter, place: Place, millis: number) =>
      Effect.async<Waiting>((resume) => {
        const done = () => {
          follower.leave(waiting)
          resume(Effect.succeed(waiting))
        }
        const waiting: Waiting = { principal, filter, place, onEvents: done, onBehind: done, onRefused: done }
        if (!follower.join(waiting)) done()
        const timer = setTimeout(done, millis)
        const unregister = follower.onStop(done)
        return Effect.sync(() => {
          clearTimeout(timer)
          unregister()
          follower.leave(waiting)
        })
      })

    /** Delays an empty response until there is an event or the wait is over. */
    const hold = Effect.fnUntraced(function* (
      principal: PrincipalState,
      filter: FeedFilter,
      empty: FeedPage,
      limit: number,
      until: number
    ) {
      let page = empty,
        reader = principal
      const request = yield* currentRequest
      while (page.rows.length === 0 && performance.now() < until && !follower.isStopping()) {
        // If the filter skipped events and there are more to search, it does not wait.
        if (!page.more) {
          const since = performance.now()
          yield* waitFor(reader, filter, page.place, until - since)
          request.waitedMs += performance.now() - since
        }
        const current = (yield* access.current([reader])).get(reader)
        if (current === undefined)
          return yield* reader.keyId === null
            ? Effect.die(signedOut())
            : problem("revoked_api_key", "The API key was revoked, has expired, or is no longer allowed from this address.", rejected)
        if (!current.scopes.has("webhook:read")) return yield* problem("insufficient_scope", "The API key lacks the scope webhook:read.")
        reader = current
        // The database was restored to an earlier time: the next request with the same cursor is told so.
        if (!(yield* feed.has(reader.organizationId, page.place))) break
        page = yield* admit(reader, feed.page(reader, filter, page.place, limit))
      }
      return page
    })

    const read = Effect.fnUntraced(function* (
      principal: PrincipalState,
      filter: FeedFilter,
      start: Place | undefined,
      limit: number,
      wait: number
    ) {
      const until = performance.now() + wait * 1_000
      const page: FeedPage = yield* admit(principal, feed.page(principal, filter, start, limit))
      if (wait === 0 || page.rows.length > 0) return page
      return yield* Effect.acquireUseRelease(
        readers.enter("longPoll", principal),
        () => hold(principal, filter, page, limit, until),
        (leave) => Effect.sync(leave)
      )
    })

    return {
      begin,
      notBoth,

      /** A page as a response. */
      answer: Effect.fnUntraced(function* (principal: PrincipalState, { after, from, limit, wait = 0, ...filters }: Asked) {
        yield* notBoth({ after, from })
        const start = yield* admit(principal, begin(principal, { after, from }))
        if (wait > 0) (yield* currentRequest).allowIdle(wait + BEYOND_WAIT)
        const { more, place, rows } = yield* read(principal, filterOf(filters), start, limit, wait)
        const cursor = seal(master, principal.organizationId, place)
        return jsonText(
          `{"data":[${rows.map(({ json }) => json).join(",")}],"pagination":{"limit":${limit},"nextCursor":${more ? `"${cursor}"` : "null"}},"resumeCursor":"${cursor}"}`
        )
      })
    }
  })
}) {
  static readonly layer = this.Default
}
