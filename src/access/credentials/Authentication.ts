/**
 * Turns the `Authorization` header into a {@link Principal}. Each request queries the database for the key, its
 * revocation and expiry, and its user's status and role. Nothing is cached, so a revoked key is rejected from the first
 * request after the revocation. Concurrent requests share a query (Batch.ts). Spec: Authentication 1, 5 to 7, 10.
 * Decisions D-4, D-10, D-12, D-51. C-13.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as SqlClient from "@effect/sql/SqlClient"
import { Context, Duration, Effect, Layer, Option, Schema } from "effect"
import { type ProblemOf, problem } from "../../http/Problem.ts"
import { current, type RequestState, unshared } from "../../http/RequestContext.ts"
import { batched } from "../../runtime/database/Batch.ts"
import { decodeRows } from "../../runtime/database/decodeRows.ts"
import { DirectRows } from "../../runtime/database/pgWorkarounds.ts"
import { ReadReplica, Seen } from "../../runtime/database/replica/ReadReplica.ts"
import * as Format from "../../runtime/settings/Format.ts"
import { Settings } from "../../runtime/settings/Settings.ts"
import * as SharedCounts from "../limits/SharedCounts.ts"
import { tokenBuckets } from "../limits/TokenBuckets.ts"
import { FIRST_STEP } from "./expirySteps.ts"
import { failedAuthentications } from "./FailedAuthentications.ts"
import { allowsAddress } from "./ipAllowlist.ts"
import { KeyUse } from "./KeyUse.ts"
import * as Secret from "./keySecret.ts"
import { type PrincipalState, SignedIn } from "./Principal.ts"

const KeyRow = Schema.Struct({
  ...Seen.fields,
  hash: Schema.String,
  id: Schema.String,
  scopes: Schema.Array(Schema.String),
  vaultIds: Schema.NullOr(Schema.Array(Schema.String)),
  ipAllowlist: Schema.Array(Schema.String),
  expired: Schema.Boolean,
  /** When it expires, if that is soon. */
  expiresAt: Schema.NullOr(Schema.String),
  revoked: Schema.Boolean,
  isOwner: Schema.Boolean
})
type KeyRow = typeof KeyRow.Type
const decodeKeys = decodeRows(KeyRow)

/** Errors of authentication. Routing comes later, so every route can answer with these. */
export type AuthenticationProblem = ProblemOf<
  | "missing_credentials"
  | "invalid_api_key"
  | "expired_api_key"
  | "revoked_api_key"
  | "ip_not_allowed"
  | "rate_limited"
  | "too_many_failed_auth"
>

/** Most keys per statement, and the sizes of statements. */
const BATCH = 16,
  SIZES = [1, 4, BATCH]

const challenge = { headers: { "www-authenticate": 'Bearer realm="custody"' } }
const rejected = { headers: { "www-authenticate": 'Bearer realm="custody", error="invalid_token"' } }

const missing = () => problem("missing_credentials", "Send `Authorization: Bearer <API key>`.", challenge)
const invalid = () => problem("invalid_api_key", "The API key is not valid.", rejected)

/** The credential of a Bearer header; undefined for another scheme. Two headers joined into one are not a valid credential. */
const bearer = (header: string | undefined): string | undefined => {
  const [, scheme = "", credential = ""] = /^(\S+)(?:\s+(.*))?$/s.exec((header ?? "").trim()) ?? []
  return scheme.toLowerCase() === "bearer" ? credential : undefined
}

export class Authentication extends Effect.Service<Authentication>()("custody/Authentication", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const direct = yield* DirectRows
    const { rateLimit } = yield* Settings
    const buckets = rateLimit === null ? undefined : yield* tokenBuckets(rateLimit)
    const keyUse = yield* KeyUse
    const replica = yield* ReadReplica
    const failures = yield* failedAuthentications

    const find = yield* batched(
      (hashes: ReadonlyArray<Buffer>) => {
        // Only a few sizes, padded with repeated hashes: a statement per size keeps its query plan, while one with an array
        // would be planned each time.
        const size = SIZES.find((one) => one >= hashes.length) ?? BATCH
        const filled = Array.from({ length: size }, (_, index) => hashes[index] ?? hashes[0])
        return Effect.map(
          decodeKeys(
            direct.query(sql`
          SELECT encode(k.secret_hash, 'hex') AS hash, k.id, k.user_id AS "userId", u.organization_id AS "organizationId",
            k.scopes, k.vault_ids AS "vaultIds", k.ip_allowlist AS "ipAllowlist",
            coalesce(k.expires_at <= clock_timestamp(), false) AS expired,
            CASE WHEN k.expires_at <= clock_timestamp() + make_interval(days => ${FIRST_STEP}) THEN k.expires_at END AS "expiresAt",
            k.revoked_at IS NOT NULL OR u.status <> 'active' AS revoked,
            u.organization_role = 'owner' AS "isOwner"${sql.literal(replica.columns)}
          FROM api_keys k JOIN users u ON u.id = k.user_id
          WHERE k.secret_hash IN ${sql.in(filled)}`)
          ),
          (rows) => {
            const byHash = new Map(rows.map((row) => [row.hash, row]))
            return hashes.map((hash) => byHash.get(hash.toString("hex")) ?? null)
          }
        )
      },
      { size: BATCH, parallel: 2 }
    )

    /** Counts a request against the key's rate limit and adds the remaining quota to the response. */
    const spend = (keyId: string, context: RequestState, who = "This API key"): Effect.Effect<void, ProblemOf<"rate_limited">> => {
      if (rateLimit === null || buckets === undefined) return Effect.void
      const { burst, period, tokens } = rateLimit
      const window = Math.max(1, Math.ceil((Duration.toSeconds(period) * burst) / tokens))
      context.headers["ratelimit-policy"] = `"key";q=${burst};w=${window}`
      return Effect.flatMap(buckets.take(keyId), ({ remaining, seconds }) => {
        context.headers.ratelimit = `"key";r=${Math.max(0, remaining)};t=${seconds}`
        return remaining >= 0
          ? Effect.void
          : problem("rate_limited", `${who} may send ${tokens} requests per ${Format.showDuration(period)}.`, {
              headers: { "retry-after": String(seconds) }
            })
      })
    }

    /** Fails, and counts that against the client's address; clients behind a proxy that does not send their address count as one. */
    const counted = <A, E>(context: RequestState, failure: Effect.Effect<A, E>, keyId?: string): Effect.Effect<A, E> => {
      if (rateLimit !== null) failures.failed(context.client, keyId)
      return failure
    }

    /** Continues unless the client's address, or this key at this address, failed too often. */
    const unlessBlocked = <A, E>(
      context: RequestState,
      keyId: string | undefined,
      next: () => Effect.Effect<A, E>
    ): Effect.Effect<A, E | ProblemOf<"too_many_failed_auth">> =>
      rateLimit === null
        ? next()
        : Effect.flatMap(
            failures.blockedFor(context.client, keyId),
            (wait): Effect.Effect<A, E | ProblemOf<"too_many_failed_auth">> =>
              wait === 0
                ? next()
                : problem(
                    "too_many_failed_auth",
                    keyId === undefined
                      ? "Too many requests with invalid API keys came from this address."
                      : "Too many requests with this API key, which may not be used, came from this address.",
                    { headers: { "retry-after": String(wait) } }
                  )
          )

    /** Why a key that exists may not be used; undefined if it may. */
    const refusal = (row: KeyRow, { client }: RequestState): Effect.Effect<never, AuthenticationProblem> | undefined => {
      if (row.revoked) return problem("revoked_api_key", "The API key was revoked.", rejected)
      if (row.expired) return problem("expired_api_key", "The API key has expired.", rejected)
      if (allowsAddress(row.ipAllowlist, client)) return undefined
      return problem("ip_not_allowed", `The API key is not allowed from ${client?.toString() ?? "an unknown address"}.`)
    }

    /** The principal of a key row, or why the key may not be used. */
    const admit = (row: KeyRow, context: RequestState): Effect.Effect<PrincipalState, AuthenticationProblem> => {
      context.keyId = row.id
      context.organizationId = row.organizationId
      const refused = refusal(row, context)
      if (refused !== undefined) return unlessBlocked(context, row.id, () => counted(context, refused, row.id))
      if (row.expiresAt !== null) context.headers["x-key-expires-at"] = row.expiresAt
      keyUse.used(row.id, Date.now(), context.client)
      replica.admit(context.reading, row)
      const principal: PrincipalState = {
        keyId: row.id,
        sessionId: null,
        userId: row.userId,
        organizationId: row.organizationId,
        scopes: new Set(row.scopes),
        vaultAllowlist: row.vaultIds,
        isOwner: row.isOwner,
        client: context.client
      }
      return Effect.as(spend(row.id, context), principal)
    }

    /** The principal of an `Authorization` header. */
    const identify = (authorization: string | undefined, context: RequestState): Effect.Effect<PrincipalState, AuthenticationProblem> => {
      const credential = bearer(authorization)
      if (credential === undefined) return missing()
      if (!Secret.isWellFormed(credential)) return counted(context, invalid())
      return Effect.matchEffect(find(Secret.hash(credential)), {
        onSuccess: (row) => (row === null ? counted(context, invalid()) : admit(row, context)),
        onFailure: Effect.die
      })
    }

    /**
     * The caller, or why there is none. Counts the request against the key's rate limit. Kept short, because every
     * request runs it.
     */
    const authenticate: Effect.Effect<PrincipalState, AuthenticationProblem, HttpServerRequest.HttpServerRequest> = Effect.flatMap(
      HttpServerRequest.HttpServerRequest,
      ({ headers }) =>
        Effect.withFiberRuntime<PrincipalState, AuthenticationProblem>((fiber) => {
          const context = current(fiber)
          Object.assign(context.headers, unshared)
          const session = Context.getOption(fiber.currentContext, SignedIn)
          // The portal limited it when it looked up the session.
          if (Option.isSome(session)) return Effect.succeed(session.value)
          return unlessBlocked(context, undefined, () => identify(headers.authorization, context))
        })
    )

    return {
      authenticate,

      /** Counts a request of a portal session against the rate limit of its user, or of the session, whichever path it requests. */
      limitSession: (callerId: string): Effect.Effect<void, ProblemOf<"rate_limited">> =>
        Effect.withFiberRuntime<void, ProblemOf<"rate_limited">>((fiber) => spend(callerId, current(fiber), "Your session"))
    }
  })
}) {
  /** Includes the shared counts of limits, which other services also use. */
  static readonly layer = this.Default.pipe(Layer.provide(KeyUse.layer), Layer.provideMerge(SharedCounts.layer))
}
