/**
 * From the `Authorization` header to a {@link Principal}. Each request asks the database: the key, its
 * revocation, its expiry, its user's status and role. Nothing is cached, so a revoked key is refused by the
 * first request that begins after the revocation was answered; requests that come together are looked up
 * together (Batch.ts). Spec: Authentication 1, 5 to 7, 10. Decisions D-4, D-10, D-12.
 */
import { RateLimiter } from "@effect/experimental"
import { HttpServerRequest } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import { Clock, Duration, Effect, Either, Layer } from "effect"
import { batched } from "../database/Batch.ts"
import { Exchange } from "../http/Exchange.ts"
import { type ProblemOf, problem } from "../http/Problem.ts"
import * as Format from "../settings/Format.ts"
import { Settings } from "../settings/Settings.ts"
import { FailedAuthentications } from "./FailedAuthentications.ts"
import { KeyUse } from "./KeyUse.ts"
import type { PrincipalState } from "./Principal.ts"
import * as Secret from "./Secret.ts"

interface KeyRow {
  readonly hash: string
  readonly id: string
  readonly userId: string
  readonly organizationId: string
  readonly scopes: ReadonlyArray<string>
  readonly vaultIds: ReadonlyArray<string> | null
  readonly ipAllowlist: ReadonlyArray<string>
  readonly expired: boolean
  readonly revoked: boolean
  readonly isOwner: boolean
}

/** How authentication can fail. Routing comes after it, so every path can answer with these. */
export type AuthenticationProblem = ProblemOf<
  | "missing_credentials"
  | "invalid_api_key"
  | "expired_api_key"
  | "revoked_api_key"
  | "ip_not_allowed"
  | "rate_limited"
  | "too_many_failed_auth"
>

const challenge = { headers: { "www-authenticate": 'Bearer realm="custody"' } }
const rejected = { headers: { "www-authenticate": 'Bearer realm="custody", error="invalid_token"' } }

const missing = () => problem("missing_credentials", "Send `Authorization: Bearer <API key>`.", challenge)
const invalid = () => problem("invalid_api_key", "The API key is not one of ours.", rejected)

/** The credential of a header with the scheme Bearer; two joined headers or another scheme are none. */
const bearer = (header: string | undefined): Either.Either<string, ProblemOf<"missing_credentials" | "invalid_api_key">> => {
  if (header === undefined || header.trim() === "") return Either.left(missing())
  const [, scheme = "", credential = ""] = /^(\S+)(?:\s+(.*))?$/s.exec(header.trim()) ?? []
  if (scheme.toLowerCase() !== "bearer") return Either.left(missing())
  return Secret.isWellFormed(credential) ? Either.right(credential) : Either.left(invalid())
}

export class Authentication extends Effect.Service<Authentication>()("custody/Authentication", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { rateLimit } = yield* Settings
    const limiter = yield* RateLimiter.RateLimiter
    const keyUse = yield* KeyUse
    const failures = new FailedAuthentications()

    const find = yield* batched(
      (hashes: ReadonlyArray<Buffer>) =>
        Effect.map(
          sql<KeyRow>`
          SELECT encode(k.secret_hash, 'hex') AS hash, k.id, k.user_id AS "userId", u.organization_id AS "organizationId",
            k.scopes, k.vault_ids AS "vaultIds", k.ip_allowlist AS "ipAllowlist",
            coalesce(k.expires_at <= clock_timestamp(), false) AS expired,
            k.revoked_at IS NOT NULL OR u.status <> 'active' AS revoked,
            u.organization_role = 'owner' AS "isOwner"
          FROM api_keys k JOIN users u ON u.id = k.user_id
          WHERE k.secret_hash = ANY(${hashes}::bytea[])`,
          (rows) => {
            const byHash = new Map(rows.map((row) => [row.hash, row]))
            return hashes.map((hash) => byHash.get(hash.toString("hex")) ?? null)
          }
        ),
      { size: 64, parallel: 2 }
    )

    const spend = Effect.fnUntraced(function* (keyId: string) {
      if (rateLimit === null) return
      const exchange = yield* Exchange
      const window = Duration.millis((Duration.toMillis(rateLimit.period) * rateLimit.burst) / rateLimit.tokens)
      const seconds = Math.max(1, Math.ceil(Duration.toSeconds(window)))
      exchange.headers["ratelimit-policy"] = `"key";q=${rateLimit.burst};w=${seconds}`
      const spent = yield* Effect.either(
        limiter.consume({ algorithm: "token-bucket", onExceeded: "fail", limit: rateLimit.burst, window, key: keyId })
      )
      if (Either.isRight(spent)) {
        exchange.headers.ratelimit = `"key";r=${spent.right.remaining};t=${Math.ceil(Duration.toSeconds(spent.right.resetAfter))}`
        return
      }
      const wait = spent.left.reason === "Exceeded" ? Math.max(1, Math.ceil(Duration.toSeconds(spent.left.retryAfter))) : 1
      exchange.headers.ratelimit = `"key";r=0;t=${wait}`
      return yield* problem(
        "rate_limited",
        `This API key may send ${rateLimit.tokens} requests per ${Format.showDuration(rateLimit.period)}.`,
        { headers: { "retry-after": String(wait) } }
      )
    })

    const verify = Effect.fnUntraced(function* (header: string | undefined) {
      const credential = yield* bearer(header)
      const row = yield* Effect.orDie(find(Secret.hash(credential)))
      return row === null ? yield* invalid() : row
    })

    /** The caller, or why there is none. Counts the request against the key's rate. */
    const authenticate: Effect.Effect<PrincipalState, AuthenticationProblem, HttpServerRequest.HttpServerRequest | Exchange> = Effect.gen(
      function* () {
        const exchange = yield* Exchange
        const request = yield* HttpServerRequest.HttpServerRequest
        const now = yield* Clock.currentTimeMillis
        const guarded = rateLimit !== null && exchange.client !== undefined
        const wait = guarded && exchange.client !== undefined ? failures.blockedFor(exchange.client, now) : 0
        if (wait > 0) {
          return yield* problem("too_many_failed_auth", "Too many API keys from this address were not valid.", {
            headers: { "retry-after": String(wait) }
          })
        }
        const row = yield* Effect.tapError(verify(request.headers.authorization), (failure) =>
          Effect.sync(() => {
            if (guarded && exchange.client !== undefined && failure.code === "invalid_api_key") failures.failed(exchange.client, now)
          })
        )
        exchange.keyId = row.id
        if (row.revoked) return yield* problem("revoked_api_key", "The API key was revoked.", rejected)
        if (row.expired) return yield* problem("expired_api_key", "The API key has expired.", rejected)
        if (!allows(row.ipAllowlist, exchange.client)) {
          return yield* problem("ip_not_allowed", `The API key is not allowed from ${exchange.client?.toString() ?? "an unknown address"}.`)
        }
        yield* spend(row.id)
        yield* keyUse.used(row.id, now)
        return {
          keyId: row.id,
          userId: row.userId,
          organizationId: row.organizationId,
          scopes: new Set(row.scopes),
          vaultAllowlist: row.vaultIds,
          isOwner: row.isOwner
        }
      }
    )

    return { authenticate }
  })
}) {
  static readonly layer = Layer.provide(this.Default, [KeyUse.layer, Layer.provide(RateLimiter.layer, RateLimiter.layerStoreMemory)])
}

/** Whether an IP allowlist lets the address in: an empty one lets all in, an unknown address never passes another. Spec: Authentication 6. */
const allows = (allowlist: ReadonlyArray<string>, client: Parameters<typeof Format.holds>[1] | undefined): boolean => {
  if (allowlist.length === 0) return true
  if (client === undefined) return false
  return Format.holds(
    allowlist.flatMap((text) => Either.match(Format.cidr(text), { onLeft: () => [], onRight: (one) => [one] })),
    client
  )
}
