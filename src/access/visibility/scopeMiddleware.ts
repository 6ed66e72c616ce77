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

/** Routes for any valid key, about itself. */
export class Authenticated extends HttpApiMiddleware.Tag<Authenticated>()("custody/Authenticated", {
  provides: Principal,
  failure: authenticationFailure,
  security: { apiKey }
}) {}
/** Lists that need `vault:read`: vaults, assets, networks. */
export class VaultsReadable extends HttpApiMiddleware.Tag<VaultsReadable>()("custody/VaultsReadable", {
  provides: Principal,
  failure: collectionFailure,
  security: { apiKey }
}) {}
/** Routes that name a vault. */
export class VaultReadable extends HttpApiMiddleware.Tag<VaultReadable>()("custody/VaultReadable", {
  provides: Principal,
  failure: resourceFailure,
  security: { apiKey }
}) {}
/** Routes that name a vault and also respond with CSV or NDJSON. */
export class VaultDocumentReadable extends HttpApiMiddleware.Tag<VaultDocumentReadable>()("custody/VaultDocumentReadable", {
  provides: Principal,
  failure: resourceFailure,
  security: { apiKey }
}) {}
/** Lists that need `webhook:read`: webhooks, events. */
export class WebhooksReadable extends HttpApiMiddleware.Tag<WebhooksReadable>()("custody/WebhooksReadable", {
  provides: Principal,
  failure: collectionFailure,
  security: { apiKey }
}) {}
/** Routes that name a webhook, an event or a delivery, including mutations. */
export class WebhookReadable extends HttpApiMiddleware.Tag<WebhookReadable>()("custody/WebhookReadable", {
  provides: Principal,
  failure: resourceFailure,
  security: { apiKey }
}) {}
/** Creation of webhooks: needs `webhook:manage` and an owner. */
export class WebhooksManageable extends HttpApiMiddleware.Tag<WebhooksManageable>()("custody/WebhooksManageable", {
  provides: Principal,
  failure: Schema.Union(collectionFailure, OwnerRequired),
  security: { apiKey }
}) {}

/** The audit log: needs `webhook:read`, an owner, and a key without a vault allowlist. */
export class AuditReadable extends HttpApiMiddleware.Tag<AuditReadable>()("custody/AuditReadable", {
  provides: Principal,
  failure: Schema.Union(collectionFailure, OwnerRequired),
  security: { apiKey }
}) {}

const insufficientScope = (scope: Scope) => problem("insufficient_scope", `The API key lacks the scope ${scope}.`)

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

/**
 * The steps of authorization as effects: authenticate, reject what no handler should see, check the scope. The
 * middlewares above are made of these, and so is the fast path.
 */
export const authorizations = ({ authenticate }: Authentication) => {
  const allowed = <E>(check: (principal: PrincipalState) => Effect.Effect<void, E>, types: ReadonlyArray<string> = []) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.flatMap(authenticate, (principal) => Effect.as(Effect.zipRight(acceptable(request, types), check(principal)), principal))
    )
  const collection = (scope: Scope) => allowed((principal) => (principal.scopes.has(scope) ? Effect.void : insufficientScope(scope)))
  const resource = (scope: Scope, types?: ReadonlyArray<string>) =>
    allowed((principal) => (principal.scopes.has(scope) ? Effect.void : notFound()), types)
  return {
    authenticated: allowed(() => Effect.void),
    vaultsReadable: collection("vault:read"),
    vaultReadable: resource("vault:read"),
    vaultDocumentReadable: resource("vault:read", ["text/csv", "application/x-ndjson"]),
    webhooksReadable: collection("webhook:read"),
    webhookReadable: resource("webhook:read"),
    webhooksManageable: allowed(requireManage),
    auditReadable: allowed(requireAuditor)
  }
}

/** The implementations of the middlewares above. */
export const layer = Effect.map(Authentication, (authentication) => {
  const {
    auditReadable,
    authenticated,
    vaultDocumentReadable,
    vaultReadable,
    vaultsReadable,
    webhookReadable,
    webhooksManageable,
    webhooksReadable
  } = authorizations(authentication)
  return Layer.mergeAll(
    Layer.succeed(Authenticated, { apiKey: () => authenticated }),
    Layer.succeed(VaultsReadable, { apiKey: () => vaultsReadable }),
    Layer.succeed(VaultDocumentReadable, { apiKey: () => vaultDocumentReadable }),
    Layer.succeed(VaultReadable, { apiKey: () => vaultReadable }),
    Layer.succeed(WebhooksReadable, { apiKey: () => webhooksReadable }),
    Layer.succeed(WebhookReadable, { apiKey: () => webhookReadable }),
    Layer.succeed(WebhooksManageable, { apiKey: () => webhooksManageable }),
    Layer.succeed(AuditReadable, { apiKey: () => auditReadable })
  )
}).pipe(Layer.unwrapEffect)
