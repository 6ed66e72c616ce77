/**
 * The complete public contract. The server, the OpenAPI document, the typed client and the route golden file are derived
 * from it.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as OpenApi from "@effect/platform/OpenApi"
import { CredentialApi } from "./access/CredentialApi.ts"
import { AuditLogApi } from "./auditLog/AuditLogApi.ts"
import { CatalogApi } from "./catalog/CatalogApi.ts"
import { DeliveriesApi } from "./deliveries/DeliveriesApi.ts"
import { FeedApi } from "./eventFeed/FeedApi.ts"
import { EventsApi } from "./events/EventsApi.ts"
import { problems } from "./http/Problem.ts"
import { ProofApi } from "./proof/ProofApi.ts"
import { RecoveriesApi } from "./recoveries/RecoveriesApi.ts"
import { StatementsApi } from "./statements/StatementsApi.ts"
import { VaultsApi } from "./vaults/VaultsApi.ts"
import { WebhooksApi } from "./webhooks/WebhooksApi.ts"

/** Errors of every route. */
const UriTooLong = problems("UriTooLong", "uri_too_long")
const InternalError = problems("InternalError", "internal_error")
const ServiceUnavailable = problems("ServiceUnavailable", "service_unavailable")

export class Api extends HttpApi.make("custody")
  .add(VaultsApi)
  .add(StatementsApi)
  .add(CatalogApi)
  .add(WebhooksApi)
  .add(EventsApi)
  .add(FeedApi)
  .add(DeliveriesApi)
  .add(RecoveriesApi)
  .add(CredentialApi)
  .add(ProofApi)
  .add(AuditLogApi)
  .prefix("/v1")
  .addError(UriTooLong)
  .addError(InternalError)
  .addError(ServiceUnavailable)
  .annotate(OpenApi.Title, "Custody Data Service API")
  .annotate(OpenApi.Version, "1.0.0") {}
