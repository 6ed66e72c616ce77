/**
 * Scopes of routes, as middlewares that the contract names beside each route. Each authenticates and provides the {@link
 * Principal}. Without the scope, a collection answers 403, and a path that names a resource answers 404: the scope is
 * part of who can see it. Decision D-5.
 *
 * Mutations also require `webhook:manage` and an owner, after the resource was found: {@link requireManage}.
 */
import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import * as HttpApiSecurity from "@effect/platform/HttpApiSecurity"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as OpenApi from "@effect/platform/OpenApi"
import { Effect, Layer, Schema } from "effect"
import { acceptable } from "../../http/errorBoundary.ts"
import { notFound, type ProblemOf, problem, problems } from "../../http/Problem.ts"
import { Authentication } from "../credentials/Authentication.ts"
import { Principal, type PrincipalState, type Scope } from "../credentials/Principal.ts"

/** 401 of every route. */
const Unauthorized = problems("Unauthorized", "missing_credentials", "invalid_api_key", "expired_api_key", "revoked_api_key")
/** 403 of every route: the address is not allowed. */
const AddressNotAllowed = problems("AddressNotAllowed", "ip_not_allowed")
/** 429 of every route. */
const TooManyRequests = problems("TooManyRequests", "rate_limited", "too_many_failed_auth")
/** 406 of every route. */
const NotAcceptable = problems("NotAcceptable", "not_acceptable")
/** 403 of collections and mutations: the scope is missing. */
export const InsufficientScope = problems("InsufficientScope", "insufficient_scope")
/** 403 of mutations: the user is not an owner. */
export const OwnerRequired = problems("OwnerRequired", "owner_required")
/** 404 of every route that names a resource. */
export const NotFound = problems("NotFound", "not_found")

const authenticationFailure = Schema.Union(Unauthorized, AddressNotAllowed, TooManyRequests, NotAcceptable)
const collectionFailure = Schema.Union(authenticationFailure, InsufficientScope)
const resourceFailure = Schema.Union(authenticationFailure, NotFound)

const apiKey = HttpApiSecurity.bearer.pipe(
  HttpApiSecurity.annotate(OpenApi.Description, "An API key, as `Authorization: Bearer cds_…`"),
  HttpApiSecurity.annotate(OpenApi.Format, "cds_ and 49 letters and digits")
)

/** A middleware that authenticates, and authorizes for a kind of routes. */
const scoped =
  <Self>() =>
  <const Name extends string, Failure extends Schema.Schema.All>(name: Name, failure: Failure) =>
    HttpApiMiddleware.Tag<Self>()(`custody/${name}`, { provides: Principal, failure, security: { apiKey } })

/** Routes for any valid key, about itself. */
export class Authenticated extends scoped<Authenticated>()("Authenticated", authenticationFailure) {}
/** Lists that need `vault:read`: vaults, assets, networks, transactions and balances across vaults. */
export class VaultsReadable extends scoped<VaultsReadable>()("VaultsReadable", collectionFailure) {}
/** Such a list that also responds with CSV or NDJSON. */
export class VaultsDocumentReadable extends scoped<VaultsDocumentReadable>()("VaultsDocumentReadable", collectionFailure) {}
/** The list of entities: needs `vault:read` or `webhook:read`. */
export class EntitiesReadable extends scoped<EntitiesReadable>()("EntitiesReadable", collectionFailure) {}
/** Routes that name a vault. */
export class VaultReadable extends scoped<VaultReadable>()("VaultReadable", resourceFailure) {}
/** Routes that name a vault and also respond with CSV or NDJSON. */
export class VaultDocumentReadable extends scoped<VaultDocumentReadable>()("VaultDocumentReadable", resourceFailure) {}
/** Lists that need `webhook:read`: webhooks, events. */
export class WebhooksReadable extends scoped<WebhooksReadable>()("WebhooksReadable", collectionFailure) {}
/** Routes that name a webhook, an event or a delivery, including mutations. */
export class WebhookReadable extends scoped<WebhookReadable>()("WebhookReadable", resourceFailure) {}
/** Creation of webhooks: needs `webhook:manage` and an owner. */
export class WebhooksManageable extends scoped<WebhooksManageable>()(
  "WebhooksManageable",
  Schema.Union(collectionFailure, OwnerRequired)
) {}
/** The audit log: needs `webhook:read`, an owner, and a key without a vault allowlist. */
export class AuditReadable extends scoped<AuditReadable>()("AuditReadable", Schema.Union(collectionFailure, OwnerRequired)) {}

const insufficientScope = (...needed: ReadonlyArray<Scope>) =>
  problem("insufficient_scope", `The API key lacks the scope ${needed.join(" or ")}.`)

/** Rejects a principal without `webhook:manage`, then one that is not owner-level. Spec: Authentication 12. */
export const requireManage = (principal: PrincipalState): Effect.Effect<void, ProblemOf<"insufficient_scope" | "owner_required">> =>
  !principal.scopes.has("webhook:manage")
    ? insufficientScope("webhook:manage")
    : principal.isOwner
      ? Effect.void
      : problem("owner_required", "The API key's user is not an owner of the organization.")

/**
 * Rejects principals that may not read the organization's audit log. It mentions objects that keys with a vault allowlist
 * cannot see. Decision D-50.
 */
const requireAuditor = (principal: PrincipalState): Effect.Effect<void, ProblemOf<"insufficient_scope" | "owner_required">> =>
  !principal.scopes.has("webhook:read")
    ? insufficientScope("webhook:read")
    : !principal.isOwner
      ? problem("owner_required", "The API key's user is not an owner of the organization.")
      : principal.vaultAllowlist === null
        ? Effect.void
        : problem("insufficient_scope", "The API key is limited to some vaults, and the audit log is of the whole organization.")

/** Media types of files, besides JSON. */
const documents = ["text/csv", "application/x-ndjson"]

/** The middlewares: authenticate, reject what no handler should see, check the scope. */
export const layer = Effect.map(Authentication, ({ authenticate }) => {
  const allowed = <E>(check: (principal: PrincipalState) => Effect.Effect<void, E>, types: ReadonlyArray<string> = []) => {
    const authorized = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.flatMap(authenticate, (principal) => Effect.as(Effect.zipRight(acceptable(request, types), check(principal)), principal))
    )
    return { apiKey: () => authorized }
  }
  const collection = (any: ReadonlyArray<Scope>, types?: ReadonlyArray<string>) =>
    allowed(({ scopes }) => (any.some((scope) => scopes.has(scope)) ? Effect.void : insufficientScope(...any)), types)
  const resource = (scope: Scope, types?: ReadonlyArray<string>) =>
    allowed((principal) => (principal.scopes.has(scope) ? Effect.void : notFound()), types)
  return Layer.mergeAll(
    Layer.succeed(
      Authenticated,
      allowed(() => Effect.void)
    ),
    Layer.succeed(VaultsReadable, collection(["vault:read"])),
    Layer.succeed(VaultsDocumentReadable, collection(["vault:read"], documents)),
    Layer.succeed(EntitiesReadable, collection(["vault:read", "webhook:read"])),
    Layer.succeed(VaultReadable, resource("vault:read")),
    Layer.succeed(VaultDocumentReadable, resource("vault:read", documents)),
    Layer.succeed(WebhooksReadable, collection(["webhook:read"])),
    Layer.succeed(WebhookReadable, resource("webhook:read")),
    Layer.succeed(WebhooksManageable, allowed(requireManage)),
    Layer.succeed(AuditReadable, allowed(requireAuditor))
  )
}).pipe(Layer.unwrapEffect)
