/**
 * Sessions of the portal. Every request reads its session and its user with the current status and role from the record feed, so
 * a deactivated user loses access at the next request. A session without the second factor gives access only to the steps
 * that complete it.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import type { SqlError } from "@effect/sql"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { type Actor, recordOfUser } from "../../access/audit/AuditTrail.ts"
import { sessionIsOver } from "../../access/credentials/AccessChecks.ts"
import { Authentication } from "../../access/credentials/Authentication.ts"
import { type PrincipalState, scopes } from "../../access/credentials/Principal.ts"
import { Admission } from "../../access/visibility/Admission.ts"
import * as Body from "../../http/Body.ts"
import { notFound, problem, signedOut } from "../../http/Problem.ts"
import { currentRequest } from "../../http/RequestContext.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { dieOnSql } from "../../runtime/database/sql.ts"
import { Identity } from "./Identity.ts"
import { lockAccount } from "./lockAccount.ts"
import type { FactorUsed } from "./SecondFactor.ts"

/** A session with its user's current state. */
const SessionState = Schema.Struct({
  id: Schema.String,
  userId: Schema.String,
  name: Schema.String,
  email: Schema.String,
  organizationId: Schema.String,
  organizationName: Schema.String,
  isOwner: Schema.Boolean,
  /** Whether the user has set up a second factor. */
  enrolled: Schema.Boolean,
  /** When the second factor was confirmed in this session; null if it was not yet. */
  secondFactorAt: Schema.NullOr(Schema.String),
  hasPassword: Schema.Boolean
})
export type SessionState = typeof SessionState.Type

/** A session as listed for its user. */
export const ListedSession = Schema.Struct({
  id: Schema.String,
  current: Schema.Boolean,
  ipAddress: Schema.NullOr(Schema.String),
  userAgent: Schema.NullOr(Schema.String),
  createdAt: Schema.String,
  lastSeenAt: Schema.String
})
export type ListedSession = typeof ListedSession.Type

const decodeSessions = decodeRows(
    Schema.Struct({ ...SessionState.fields, status: Schema.String, over: Schema.Boolean, unseen: Schema.Boolean })
  ),
  decodeListed = decodeRows(ListedSession),
  decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))

export class Sessions extends Effect.Service<Sessions>()("custody/portal/Sessions", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const identity = yield* Identity
    const { limitSession } = yield* Authentication

    const over = sessionIsOver(sql)

    const find = (token: string) =>
      decodeSessions(sql`
        SELECT s.id, s.user_id AS "userId", u.name, u.email, u.organization_id AS "organizationId", o.name AS "organizationName",
          u.organization_role = 'owner' AS "isOwner", f.verified_at IS NOT NULL AS enrolled, s.second_factor_at AS "secondFactorAt",
          EXISTS (SELECT 1 FROM portal_accounts a WHERE a.user_id = s.user_id AND a.password IS NOT NULL) AS "hasPassword",
          CASE WHEN o.deleting_at IS NULL THEN u.status ELSE 'deactivated' END AS status,
          ${over} AS over,
          s.last_seen_at < clock_timestamp() - interval '1 minute' AS unseen
        FROM portal_sessions s JOIN users u ON u.id = s.user_id JOIN organizations o ON o.id = u.organization_id
        LEFT JOIN portal_second_factors f ON f.user_id = s.user_id
        WHERE s.token = ${token}`)

    /** The session of a token, if it has not ended. */
    const ofToken = (token: string) =>
      Effect.gen(function* () {
        const [found] = yield* find(token)
        if (found === undefined) return null
        const { over, status, unseen, ...session } = found
        if (status !== "active") {
          yield* sql`DELETE FROM portal_sessions WHERE user_id = ${session.userId}`
          return null
        }
        if (over) {
          yield* sql`DELETE FROM portal_sessions WHERE id = ${session.id}`
          return null
        }
        // A page that refreshes in the background does not count as activity; the page reports activity itself.
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        if (unseen && headers["x-portal-active"] === "1") {
          yield* sql`UPDATE portal_sessions SET last_seen_at = clock_timestamp() WHERE id = ${session.id}`
        }
        Object.assign(yield* currentRequest, { isKnown: true, organizationId: session.organizationId, userId: session.userId })
        return session satisfies SessionState
      }).pipe(Effect.orDie)

    /**
     * The request's session, complete or not; null if nobody is signed in. Counts against its user's rate limit, or only against
     * its own without the second factor: whoever has the password alone blocks nobody.
     */
    const current = Effect.flatMap(identity.token, (token) => (token === null ? Effect.succeed(null) : ofToken(token))).pipe(
      Effect.tap((session) =>
        session === null ? Effect.void : limitSession(session.secondFactorAt === null ? session.id : session.userId)
      )
    )

    /** The request's session, with or without the second factor. */
    const started = Effect.flatMap(current, (session) => (session === null ? signedOut() : Effect.succeed(session)))

    /** The request's session, complete. */
    const complete = Effect.flatMap(started, (session) =>
      session.enrolled && session.secondFactorAt !== null
        ? Effect.succeed(session)
        : problem(
            "second_factor_required",
            session.enrolled ? "Enter a code from your authenticator app." : "Set up an authenticator app first."
          )
    )

    /** The request's session, complete and of an owner of the organization. */
    const owner = Effect.flatMap(complete, (session) =>
      session.isOwner ? Effect.succeed(session) : problem("owner_required", "Only owners of the organization can do this.")
    )

    /** Ends sessions of a user and records that it was done. */
    const audited = (by: SessionState, userId: string, ending: Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>) =>
      Effect.tap(ending, (ended) =>
        ended.length === 0 ? Effect.void : recordOfUser(sql, userId, sessionActor(by), "account.sessions_ended")
      ).pipe(sql.withTransaction, Effect.orDie)

    return {
      current,
      started,
      complete,
      owner,

      /**
       * Creates a complete session for a user who has just confirmed the second factor, and returns its cookies. It
       * replaces the session in which the factor was confirmed: a token planted before the sign-in gives access to nothing
       * afterwards, and a session that was ended meanwhile is not completed. A passkey that confirmed it must still be there.
       * Also deletes the user's other ended sessions.
       */
      begin: (userId: string, secondFactor: FactorUsed, by: { readonly session: string } | { readonly passkey: string }) =>
        Effect.gen(function* () {
          // Before the other is deleted: whoever ends all sessions meanwhile finds one of the two.
          const { body, cookies } = yield* identity.startSession(userId)
          const token = body["token"]
          if (typeof token !== "string") return yield* signedOut()
          const before = "session" in by ? by.session : null
          const gone = yield* Effect.orDie(
            decodeIds(sql`
              DELETE FROM portal_sessions s WHERE s.user_id = ${userId} AND (s.id = ${before} OR ${over}) RETURNING s.id`)
          )
          if (before !== null && !gone.some(({ id }) => id === before)) {
            yield* Effect.orDie(sql`DELETE FROM portal_sessions WHERE token = ${token}`)
            return yield* signedOut()
          }
          yield* Effect.gen(function* () {
            if ("passkey" in by) yield* lockAccount(sql, userId, by)
            const [begun] = yield* decodeIds(sql`
              UPDATE portal_sessions SET second_factor_at = clock_timestamp() WHERE token = ${token} RETURNING id`)
            // It was ended already.
            if (begun === undefined) return yield* signedOut()
            const actor: Actor = { type: "session", id: begun.id, userId }
            yield* recordOfUser(sql, userId, actor, "account.signed_in", { secondFactor: { old: null, new: secondFactor } })
          }).pipe(
            sql.withTransaction,
            Effect.tapError(() => sql`DELETE FROM portal_sessions WHERE token = ${token}`),
            dieOnSql
          )
          return cookies
        }),

      /** Rejects a session that has ended since its request began, such as by a reset of the account, in the transaction of a change. */
      stillThere: ({ id, userId }: SessionState): Effect.Effect<void> => Effect.orDie(lockAccount(sql, userId, { session: id })),

      /** The user's active sessions, latest first. */
      list: ({ id, userId }: SessionState): Effect.Effect<ReadonlyArray<ListedSession>> =>
        Effect.orDie(
          decodeListed(sql`
            SELECT s.id, s.id = ${id} AS current, s.ip_address AS "ipAddress", s.user_agent AS "userAgent", s.created_at AS "createdAt",
              s.last_seen_at AS "lastSeenAt" FROM portal_sessions s
            WHERE s.user_id = ${userId} AND s.second_factor_at IS NOT NULL AND NOT ${over}
            ORDER BY s.last_seen_at DESC, s.id LIMIT 100`)
        ),

      /** Ends one of the user's sessions. */
      end: (session: SessionState, sessionId: string) =>
        Effect.gen(function* () {
          const ended = yield* audited(
            session,
            session.userId,
            sql`DELETE FROM portal_sessions WHERE id = ${sessionId} AND user_id = ${session.userId} RETURNING id`
          )
          if (ended.length === 0) return yield* notFound()
        }),

      /** Ends the user's sessions, with or without the current one. */
      endAll: (session: SessionState, keepCurrent: boolean) =>
        audited(
          session,
          session.userId,
          sql`DELETE FROM portal_sessions WHERE user_id = ${session.userId} AND (id <> ${session.id} OR NOT ${keepCurrent}::boolean) RETURNING id`
        ),

      /** Ends every session of a member of the owner's organization. */
      endOfMember: (owner: SessionState, userId: string) =>
        audited(
          owner,
          userId,
          sql`
            DELETE FROM portal_sessions s USING users u
            WHERE u.id = s.user_id AND u.id = ${userId} AND u.organization_id = ${owner.organizationId} RETURNING s.id`
        )
    }
  })
}) {
  static readonly layer = this.Default
}

/** A session in the audit log. */
export const sessionActor = ({ id, userId }: Pick<SessionState, "id" | "userId">): Actor => ({ type: "session", id, userId })

/** The principal of a complete session: what its user may do, with every scope and no allowlist. */
export const principalOf = ({ id, isOwner, organizationId, userId }: SessionState): PrincipalState => ({
  keyId: null,
  sessionId: id,
  userId,
  organizationId,
  scopes: new Set(scopes),
  vaultAllowlist: null,
  isOwner,
  client: undefined
})

/**
 * The session and the body of a request. The session is read again after the body, which may take seconds: it may have ended
 * meanwhile.
 */
export const withBody = <A, I>(who: "started" | "complete", schema: Schema.Schema<A, I>) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    yield* sessions[who]
    const body = yield* Body.json(schema)
    return { session: yield* sessions[who], body }
  })

/** Runs a request of the signed-in user, or of an owner only, when the organization gets a slot. */
export const inTurn = <A, E, R>(who: "complete" | "owner", run: (session: SessionState) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const session = yield* (yield* Sessions)[who]
    return yield* (yield* Admission).admit(principalOf(session), run(session))
  })
